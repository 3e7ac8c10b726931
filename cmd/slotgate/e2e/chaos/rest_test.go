package chaos

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
)

// status is what a gate says of itself.
type status struct {
	Mode    string `json:"mode"`
	Backlog int    `json:"settle_backlog"`
	Lost    int64  `json:"settle_lost"`
	failed  string
}

func (s status) unrest() string {
	switch {
	case s.failed != "":
		return s.failed
	case s.Mode != "normal" || s.Backlog != 0:
		return fmt.Sprintf("mode %s, %d settlements wait", s.Mode, s.Backlog)
	}
	return ""
}

func (a *arena) status(i int) (s status) {
	answer := stage.Send("GET", a.gate(i).Admin+"/v1/status", "")
	if answer.Err != nil || answer.Status != http.StatusOK {
		return status{failed: answer.String()}
	}
	if err := json.Unmarshal(answer.Body, &s); err != nil {
		return status{failed: err.Error()}
	}
	return s
}

// slot reads a lesson's counters; found is false where the store has none.
func (a *arena) slot(i, lesson int) (view stage.Slot, found bool, err error) {
	answer := stage.Send("GET", fmt.Sprintf("%s/v1/slots/lessons/%d", a.gate(i).Admin, lesson), "")
	switch {
	case answer.Err != nil:
		return view, false, answer.Err
	case answer.Status == http.StatusNotFound:
		return view, false, nil
	case answer.Status != http.StatusOK:
		return view, false, fmt.Errorf("slot %d: %v", lesson, answer)
	}
	return view, true, json.Unmarshal(answer.Body, &view)
}

// rest waits until nothing moves by itself any more: the gates go by their store,
// everything is settled, no hold is open that will end, and the counters are the
// database's.
func (s *storm) rest() {
	s.t.Helper()
	s.arena.store.settled()
	since := time.Now()
	stage.Eventually(s.t, rested, func() string {
		what := s.unrest()
		switch {
		case what != "":
			since = time.Now()
		case time.Since(since) < stillness:
			return "nothing, but not for long"
		}
		return what
	})
}

const (
	// rested is how long a storm may take to come to rest.
	rested = 40 * time.Second
	// stillness is rest for so long that the last look saw no booking younger than lag,
	// which it would have counted twice (design section 5).
	stillness = lag + 2*hot
)

func (s *storm) unrest() string {
	for i := range gates {
		if what := s.arena.status(i).unrest(); what != "" {
			return fmt.Sprintf("gate %d: %s", i, what)
		}
	}
	for _, sale := range s.sales() {
		if what := s.lessonUnrest(sale); what != "" {
			return what
		}
	}
	return ""
}

func (s *storm) lessonUnrest(sale sale) string {
	slot, found, err := s.arena.slot(0, sale.lesson)
	switch {
	case err != nil:
		return err.Error()
	case !found:
		return "" // nothing is remembered, so nothing is wrong
	}
	kept := 0
	for _, hold := range slot.Holds {
		if hold.State == "unknown" && s.plan.keepUnknown {
			kept++
		}
	}
	switch {
	case int(slot.Held) != kept:
		return fmt.Sprintf("lesson %d has open holds: %v %v", sale.lesson, slot, slot.Holds)
	case slot.Available == nil && s.plan.truth:
		return fmt.Sprintf("lesson %d is not looked at: %v", sale.lesson, slot)
	case s.plan.truth && *slot.Available != max(0, int64(sale.remain)-slot.Held):
		return fmt.Sprintf("lesson %d has %d left in the database, its slot says %v %v", sale.lesson, sale.remain, slot, slot.Holds)
	}
	return ""
}

// held is the units of a lesson that are kept for unanswered bookings.
func (s *storm) held(lesson int) int {
	slot, _ := s.slot(lesson)
	return int(slot.Held)
}

// slot reads a lesson's counters, as soon as the store lets it: on a busy machine a
// master may miss its replicas for a moment.
func (s *storm) slot(lesson int) (view stage.Slot, found bool) {
	s.t.Helper()
	stage.Eventually(s.t, rested, func() (what string) {
		var err error
		if view, found, err = s.arena.slot(0, lesson); err != nil {
			what = err.Error()
		}
		return what
	})
	return view, found
}

// sale is what the database says of a lesson.
type sale struct{ lesson, remain, booked int }

// sales reads the storm's lessons.
func (s *storm) sales() (sales []sale) {
	s.t.Helper()
	rows, err := s.arena.db.QueryContext(s.t.Context(), `SELECT l.slot_id, l.remain, COUNT(b.id)
		FROM lesson_slot l LEFT JOIN lesson_booking b ON b.slot_id = l.slot_id
		WHERE l.slot_id BETWEEN $1 AND $2 GROUP BY l.slot_id, l.remain ORDER BY l.slot_id`, s.first, s.first+lessons-1)
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var one sale
		if err := rows.Scan(&one.lesson, &one.remain, &one.booked); err != nil {
			s.t.Fatal(err)
		}
		sales = append(sales, one)
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
	return sales
}
