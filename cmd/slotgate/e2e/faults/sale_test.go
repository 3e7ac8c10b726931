package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
)

// order is what one student wants: a seat of one lesson, under one key.
type order struct {
	pool      string
	lesson    int
	student   string
	key       string
	principal string
}

// told is one request and what came of it.
type told struct {
	order
	gate           int
	sent, answered time.Time
	answer         stage.Answer
}

func (a told) decision() string { return a.answer.Header.Get("Gate-Decision") }

// failed: the client got nothing that helps it, for reasons that are not the
// lesson's.
func (a told) failed() bool { return a.answer.Err != nil || a.answer.Status >= 500 }

// away: it failed for want of a store, or of a gate. What the backend did not answer
// in time, or a twin was told of it, is no word on these.
func (a told) away() bool {
	return a.failed() && !strings.HasPrefix(a.decision(), "upstream-") && a.decision() != "replayed" && a.answer.Header.Get("Gate-Outcome") == ""
}

// unsettled: a client that is in earnest asks again.
func (a told) unsettled() bool {
	return a.failed() || a.decision() == "outcome-unknown" || a.decision() == "in-flight"
}

// booking is the booking that the answer shows, 0 none.
func (a told) booking() int64 {
	if a.answer.Status != 201 {
		return 0
	}
	var body struct {
		Data struct {
			ID int64 `json:"booking_id"`
		}
	}
	_ = json.Unmarshal(a.answer.Body, &body) // what is no JSON shows none
	return body.Data.ID
}

// sale is a crowd of students who come one after the other, at an even pace, so that
// a fault falls into the midst of them.
type sale struct {
	hall  *hall
	midst chan struct{} // closed when a quarter of them has come

	mu   sync.Mutex
	told []told
	late time.Duration // the most that a student came after its time
}

// Some students do more than to ask once, each so many of them.
const (
	doubleClick = 4 // sends the same request to both gates at the same time
	thief       = 7 // is copied by another principal at the same time, key and all
	secondTab   = 5 // asks again under a new key once answered
	attempts    = 6 // of a client that was told nothing certain
)

// again is how long a client waits before it asks again.
const again = 300 * time.Millisecond

// open begins a sale that takes about so long. wait returns all answers.
func (h *hall) open(lasts time.Duration) (s *sale, wait func() []told) {
	orders := h.orders()
	s = &sale{hall: h, midst: make(chan struct{})}
	pace := lasts / time.Duration(len(orders))
	began := time.Now()
	var students sync.WaitGroup
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n, o := range orders {
			due := began.Add(time.Duration(n) * pace)
			time.Sleep(time.Until(due))
			s.late = max(s.late, time.Since(due))
			if n == len(orders)/4 {
				close(s.midst)
			}
			students.Go(func() { s.student(n, o) })
		}
		students.Wait()
	}()
	return s, func() []told {
		<-done
		return s.told
	}
}

// orders spreads students evenly: pool after pool, lesson after lesson.
func (h *hall) orders() []order {
	var list []order
	for student := range crowd * size() {
		for lesson := range lessons {
			for _, pool := range pools {
				name := fmt.Sprintf("%s-%d-%d", pool, lesson+1, student)
				list = append(list, order{
					pool: pool, lesson: lesson + 1, student: name, principal: "Bearer " + name,
					key: fmt.Sprintf("key-0123456789abcdef-%s", name),
				})
			}
		}
	}
	return list
}

// size multiplies the sale.
func size() int {
	if os.Getenv("SLOTGATE_SOAK") != "" {
		return 5
	}
	return 1
}

func (s *sale) student(n int, o order) {
	var others sync.WaitGroup
	gate := n % 2
	if n%doubleClick == 1 {
		others.Go(func() { s.ask(1-gate, o) })
	}
	if n%thief == 2 {
		others.Go(func() {
			o := o
			o.principal = "Bearer thief"
			s.ask(gate, o)
		})
	}
	for try := range attempts {
		if a := s.ask((gate+try)%2, o); !a.unsettled() {
			break
		}
		time.Sleep(again)
	}
	if n%secondTab == 3 {
		second := o // the others may still send the first
		second.key += "-second"
		s.ask(1-gate, second)
	}
	others.Wait()
}

func (s *sale) ask(gate int, o order) told {
	a := told{order: o, gate: gate, sent: time.Now()}
	a.answer = stage.Send("POST", fmt.Sprintf("%s/%s/api/lessons/%d/bookings", s.hall.gate(gate).URL, o.pool, o.lesson),
		fmt.Sprintf(`{"student_id":%q}`, o.student), "Idempotency-Key: "+o.key, "Authorization: "+o.principal)
	a.answered = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, a)
	return a
}

// stolen lists the bookings that were shown to more than one principal, and answers
// that hold another's bytes.
func stolen(all []told) []string {
	owner := map[string]string{}
	var found []string
	for _, a := range all {
		if bytes.Contains(a.answer.Body, []byte("stray")) {
			found = append(found, fmt.Sprintf("%s was shown bytes that nobody asked for: %v", a.student, a.answer))
		}
		id := a.booking()
		if id == 0 {
			continue
		}
		if !bytes.Contains(a.answer.Body, []byte(`"`+a.student+`"`)) {
			found = append(found, fmt.Sprintf("%s was shown %s", a.student, a.answer.Body))
		}
		booking := fmt.Sprint(a.pool, id)
		if first, known := owner[booking]; known && first != a.principal {
			found = append(found, fmt.Sprintf("booking %s was shown to %s and to %s", booking, first, a.principal))
		}
		owner[booking] = a.principal
	}
	return found
}
