package faults

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
)

// result is what one pool's sale came to.
type result struct {
	answers  map[string]int // by status and decision
	failed   int            // requests that were answered 5xx or not at all
	away     int            // of them, those that count against the faulty part
	outage   time.Duration  // from the first of these sent, after the fault struck, to the last of them answered
	longest  time.Duration  // that an answer took
	passed   int            // went through without the store
	bound    int64          // units that gates declared for the outage, over all lessons
	sold     int            // bookings in the database
	oversold int            // of them, beyond the seats of their lesson
	twice    int            // bookings of a student who has the lesson already
	lost     int            // told to a student as booked, and no hold of it stands in the store
	unknown  int            // in the database, and unknown to the store, which keeps the units
	errors   int            // answers with status 500 that are not the backend's own
}

// measure reads what clients were told, the databases and the store; counts tells
// which requests make an outage.
func (h *hall) measure(all []told, counts func(told) bool, struck time.Time) map[string]*result {
	h.t.Helper()
	results := map[string]*result{}
	for _, pool := range pools {
		r := &result{answers: map[string]int{}}
		results[pool] = r
		told := slices.DeleteFunc(slices.Clone(all), func(a told) bool { return a.pool != pool })
		r.hear(told, counts, struck)
		h.count(pool, r, told)
	}
	return results
}

func (r *result) hear(all []told, counts func(told) bool, struck time.Time) {
	var first, last time.Time
	bounds := map[[2]int]int64{} // by gate and lesson
	for _, a := range all {
		r.answers[a.summary()]++
		r.longest = max(r.longest, a.answered.Sub(a.sent))
		if a.answer.Status == 500 && !bytes.Contains(a.answer.Body, []byte(stage.ErrorBody)) {
			r.errors++
		}
		if a.decision() == "passthrough" {
			r.passed++
			if n, err := strconv.ParseInt(a.answer.Header.Get("Gate-Bound"), 10, 64); err == nil {
				bounds[[2]int{a.gate, a.lesson}] = max(n, bounds[[2]int{a.gate, a.lesson}])
			}
		}
		if a.failed() {
			r.failed++
		}
		if counts(a) && a.answered.After(struck) {
			r.away++
			if sent := latest(a.sent, struck); first.IsZero() || sent.Before(first) {
				first = sent
			}
			last = latest(last, a.answered)
		}
	}
	r.outage = last.Sub(first)
	for _, n := range bounds {
		r.bound += n
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// noAnswer: the connection broke, or there was none.
const noAnswer = "no answer"

// summary is how a row tells of an answer.
func (a told) summary() string {
	if a.answer.Err != nil {
		return noAnswer
	}
	decision := a.decision()
	if decision == "admitted" || decision == "passthrough" {
		decision = strings.TrimSpace(decision + " " + a.answer.Header.Get("Gate-Outcome"))
	}
	return fmt.Sprintf("%d %s", a.answer.Status, decision)
}

func (h *hall) count(pool string, r *result, all []told) {
	h.t.Helper()
	booked := h.tables[pool].Booked(h.t)
	states := map[int]map[string]string{} // of holds, by lesson and subject
	for lesson := 1; lesson <= lessons; lesson++ {
		states[lesson] = map[string]string{}
		slot := h.slot(pool, lesson)
		for _, hold := range slot.Holds {
			// A student's confirmed hold is what counts, whatever else there is.
			if states[lesson][hold.Subject] != "confirmed" {
				states[lesson][hold.Subject] = hold.State
			}
		}
		sold := 0
		for student, n := range booked[int64(lesson)] {
			sold += n
			r.twice += n - 1
			if state := states[lesson][student]; state != "" && state != "confirmed" {
				r.unknown++
			}
		}
		r.sold += sold
		if over := sold - seats*size(); over > 0 {
			r.oversold += over
			ledger := stage.Send("GET", fmt.Sprintf("%s/v1/slots/%s/%d/ledger", h.gate(0).Admin, pool, lesson), "")
			h.t.Logf("%s lesson %d is oversold by %d; its ledger: %s", pool, lesson, over, ledger.Body)
		}
	}
	missed := map[string]bool{}
	for _, a := range all {
		if a.booking() != 0 && states[a.lesson][a.student] != "confirmed" {
			missed[a.student] = true
		}
	}
	r.lost = len(missed)
}

// slot is what the store knows of a lesson, empty where it knows none.
func (h *hall) slot(pool string, lesson int) (slot stage.Slot) {
	h.t.Helper()
	stage.Eventually(h.t, 15*time.Second, func() string {
		var a stage.Answer
		if slot, a = h.gate(0).Read(pool, strconv.Itoa(lesson)); a.Status == 200 || a.Status == 404 {
			return ""
		}
		return a.String()
	})
	return slot
}

// String lists the answers, the most frequent first, and the sums.
func (r *result) String() string {
	var parts []string
	for _, what := range slices.SortedFunc(maps.Keys(r.answers), func(a, b string) int { return r.answers[b] - r.answers[a] }) {
		parts = append(parts, fmt.Sprintf("%d × %s", r.answers[what], what))
	}
	return fmt.Sprintf("%s; failed %d, away %d in %v, passed %d (bound %d), sold %d, oversold %d, twice %d, lost %d, unknown %d",
		strings.Join(parts, ", "), r.failed, r.away, r.outage.Round(time.Millisecond), r.passed, r.bound, r.sold, r.oversold, r.twice, r.lost, r.unknown)
}
