package stage

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/storm"
)

// Seen is what the clients of a storm were answered, by request number; twins
// have one more.
type Seen struct {
	mu      sync.Mutex
	Answers map[int][]Exchange
	Busy    int // answers in which the backend itself said so
}

// Exchange is one request of a storm and its answer.
type Exchange struct {
	Subject, Slot int
	Key, URL      string
	Status        int
	Decision      string
	Body          []byte
}

// Note is a storm's OnResponse.
func (s *Seen) Note(x storm.Exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Answers == nil {
		s.Answers = map[int][]Exchange{}
	}
	if x.Header.Get("Gate-Outcome") == "busy" {
		s.Busy++
	}
	s.Answers[x.N] = append(s.Answers[x.N], Exchange{
		Subject: x.Subject, Slot: int(x.Slot), Key: x.Key, URL: x.URL, Status: x.Status,
		Decision: x.Header.Get("Gate-Decision"), Body: bytes.Clone(x.Body),
	})
}

// Crowd sends a storm of bookings of lessons 1 to n through the gates in turn.
func Crowd(t testing.TB, targets []string, lessons, requests, clients, subjects int, twins float64) (*storm.Report, *Seen) {
	t.Helper()
	s := &Seen{}
	o := storm.Options{
		Header:  []string{"Authorization: Bearer {subject}", "Content-Type: application/json"},
		Body:    `{"student_id":"s{subject}"}`,
		Clients: clients, Requests: requests, Subjects: subjects, RetriesSameKey: twins,
		Timeout: 30 * time.Second, MaxTime: 3 * time.Minute, Seed: 7,
		OnResponse: s.Note,
	}
	if twins > 0 {
		o.Header = append(o.Header, "Idempotency-Key: {key}")
	}
	for _, target := range targets {
		o.Targets = append(o.Targets, fmt.Sprintf("%s/api/lessons/{n%%%d+1}/bookings", target, lessons))
	}
	report, err := storm.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if n := report.Status5xx() + report.TransportErrors() - s.Busy; n != 0 {
		var text bytes.Buffer
		report.WriteText(&text, nil)
		t.Errorf("%d answers were 5xx or none at all\n%s", n, &text)
	}
	return report, s
}

// Sale is a crowd at its own pace, so that an outage falls into the middle of it.
func Sale(t testing.TB, targets []string, lessons, requests int, perSecond float64) (wait func() (*storm.Report, *Seen)) {
	t.Helper()
	s := &Seen{}
	o := storm.Options{
		Header:  []string{"Authorization: Bearer {subject}", "Content-Type: application/json", "Idempotency-Key: {key}"},
		Body:    `{"student_id":"s{subject}"}`,
		Clients: 64, Requests: requests, Subjects: requests / 2, Rate: perSecond,
		Timeout: 30 * time.Second, MaxTime: 2 * time.Minute, Seed: 11, OnResponse: s.Note,
	}
	for _, target := range targets {
		o.Targets = append(o.Targets, fmt.Sprintf("%s/api/lessons/{n%%%d+1}/bookings", target, lessons))
	}
	type result struct {
		report *storm.Report
		err    error
	}
	ended := make(chan result, 1)
	go func() {
		report, err := storm.Run(t.Context(), o)
		ended <- result{report, err}
	}()
	return func() (*storm.Report, *Seen) {
		t.Helper()
		r := <-ended
		if r.err != nil {
			t.Fatal(r.err)
		}
		return r.report, s
	}
}

// Winners are the requests that booked, one exchange each, and checks that their
// twins were given the same answer.
func (s *Seen) Winners(t testing.TB) []Exchange {
	t.Helper()
	var list []Exchange
	for n, twins := range s.Answers {
		booked := 0
		for _, x := range twins {
			if x.Status == 201 {
				booked++
			}
		}
		if booked == 0 {
			continue
		}
		list = append(list, twins[0])
		for _, x := range twins[1:] {
			if x.Status != 201 || !bytes.Equal(x.Body, twins[0].Body) {
				t.Errorf("request %d: its twins were answered %d %s and %d %s", n, twins[0].Status, twins[0].Body, x.Status, x.Body)
			}
		}
	}
	return list
}

// NoSubjectTwice checks that no subject won a lesson twice.
func NoSubjectTwice(t testing.TB, won []Exchange) {
	t.Helper()
	has := map[[2]int]bool{}
	for _, x := range won {
		place := [2]int{x.Slot, x.Subject}
		if has[place] {
			t.Errorf("subject %d has lesson %d twice", x.Subject, x.Slot)
		}
		has[place] = true
	}
}

// No500 checks that every request was answered, and none with 500.
func No500(t testing.TB, r *storm.Report) {
	t.Helper()
	if n := r.Statuses[500]; n != 0 || r.TransportErrors() != 0 {
		t.Errorf("%d answers were 500, %d requests got none", n, r.TransportErrors())
	}
}
