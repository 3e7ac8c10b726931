package gate

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

// withdrawals is a pool whose bookings can be cancelled by their id, by lesson and
// student, or by both, and confirmed by their id. POOL varies.
const withdrawals = `
upstream: { url: "http://127.0.0.1:9", timeout: 2s }
pools:
  lessons: { hold_ttl: 30s, POOL }
rules:
  - name: book
    match: { methods: [POST], path: "/lessons/{lesson}/bookings" }
    action: book
    pool: lessons
    slot: path:lesson
    subject: json:/student
    reference: json:/id
  - name: cancel-by-id
    match: { methods: [DELETE], path: "/bookings/{booking}" }
    action: cancel
    pool: lessons
    hold: path:booking
  - name: cancel-by-student
    match: { methods: [DELETE], path: "/lessons/{lesson}/students/{student}" }
    action: cancel
    pool: lessons
    slot: path:lesson
    subject: path:student
  - name: cancel-by-both
    match: { methods: [DELETE], path: "/lessons/{lesson}/students/{student}/bookings/{booking}" }
    action: cancel
    pool: lessons
    slot: path:lesson
    subject: path:student
    hold: path:booking
  - name: pay
    match: { methods: [POST], path: "/bookings/{booking}/payment" }
    action: confirm
    pool: lessons
    hold: path:booking
`

func withPool(yaml, pool string) string { return strings.Replace(yaml, "POOL", pool, 1) }

// wantTaken compares what lesson 1 has confirmed and held.
func (f *fixture) wantTaken(confirmed, held int64) {
	f.t.Helper()
	if s := f.slot("1"); s.Confirmed != confirmed || s.Held != held {
		f.t.Fatalf("confirmed %d, held %d; want %d and %d: %+v", s.Confirmed, s.Held, confirmed, held, s.Holds)
	}
}

func (f *fixture) wantOutcome(r *Reply, status int, o rules.Outcome) {
	f.t.Helper()
	f.want(r, decision.DecisionAdmitted, status)
	if r.Outcome != o || r.Hold != "" {
		f.t.Fatalf("outcome %v, hold %q; want %v and none", r.Outcome, r.Hold, o)
	}
}

func TestACancelFreesItsBookingOnce(t *testing.T) {
	for name, path := range map[string]string{
		"by id":      "/bookings/1",
		"by student": "/lessons/1/students/ann",
		"by both":    "/lessons/1/students/ann/bookings/1",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixtureYAML(t, withPool(withdrawals, "capacity: 2"))
			f.want(f.book(call{}), decision.DecisionAdmitted, 201) // its id is 1
			f.want(f.book(call{student: "bob"}), decision.DecisionAdmitted, 201)
			f.wantTaken(2, 0)
			f.backend.set(func(string, string) (*BackendAnswer, error) { return answers(204, ""), nil })
			for range 10 {
				f.wantOutcome(f.call("DELETE", path, "", call{}), 204, rules.Done)
				f.wantTaken(1, 0)
			}
			f.backend.set(nil)
			f.want(f.book(call{student: "cid"}), decision.DecisionAdmitted, 201)
			f.want(f.book(call{student: "dan"}), decision.DecisionSoldOut, 409)
		})
	}
}

func TestCancelsThatComeAtOnceFreeOneUnit(t *testing.T) {
	f := newFixtureYAML(t, withPool(withdrawals, "capacity: 9"))
	f.book(call{})
	f.book(call{student: "bob"})
	f.backend.set(func(string, string) (*BackendAnswer, error) { return answers(204, ""), nil })
	var all sync.WaitGroup
	for i := range 10 {
		path := []string{"/bookings/1", "/lessons/1/students/ann"}[i%2]
		all.Go(func() { f.call("DELETE", path, "", call{}) })
	}
	all.Wait()
	f.wantTaken(1, 0)
}

func TestACancelThatDidNotTakeEffectFreesNothing(t *testing.T) {
	lost := &BackendError{Failure: TimedOut, Err: errors.New("late")}
	for name, c := range map[string]struct {
		answer  *BackendAnswer
		err     error
		status  int
		outcome rules.Outcome
		told    decision.Decision
	}{
		"refused":   {answers(404, "no"), nil, 404, rules.Refused, decision.DecisionAdmitted},
		"unknown":   {answers(500, "?"), nil, 500, rules.Unknown, decision.DecisionAdmitted},
		"timed out": {nil, lost, 504, rules.Unknown, decision.DecisionUpstreamTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixtureYAML(t, withPool(withdrawals, "capacity: 2"))
			f.book(call{})
			f.backend.set(func(string, string) (*BackendAnswer, error) { return c.answer, c.err })
			r := f.want(f.call("DELETE", "/bookings/1", "", call{}), c.told, c.status)
			if r.Outcome != c.outcome {
				t.Fatalf("outcome %v", r.Outcome)
			}
			f.wantTaken(1, 0)
		})
	}
}

// A reference that the gate never saw is somebody else's booking, or one made before
// the gate: the backend is asked, no unit moves.
func TestACancelOfAnUnknownBookingIsForwarded(t *testing.T) {
	f := newFixtureYAML(t, withPool(withdrawals, "capacity: 2"))
	f.book(call{}) // its id is 1
	f.backend.set(func(string, string) (*BackendAnswer, error) { return answers(204, ""), nil })
	for _, path := range []string{"/bookings/99", "/lessons/1/students/ann/bookings/99", "/lessons/1/students/eve", "/lessons/2/students/ann"} {
		f.wantOutcome(f.call("DELETE", path, "", call{}), 204, rules.Done)
		f.wantTaken(1, 0)
	}
	if f.backend.count() != 5 {
		t.Fatalf("the backend saw %d requests", f.backend.count())
	}
}

// H9: a cancel waits while a booking of its subject is at the backend, and the other
// way round.
func TestBookingAndCancelOfASubjectDoNotOverlap(t *testing.T) {
	for name, order := range map[string][2]string{"a cancel waits": {"POST", "DELETE"}, "a booking waits": {"DELETE", "POST"}} {
		t.Run(name, func(t *testing.T) {
			f := newFixtureYAML(t, withPool(withdrawals, "capacity: 9"))
			f.book(call{})
			ask := func(method string) *Reply {
				if method == "POST" {
					return f.book(call{})
				}
				return f.call("DELETE", "/lessons/1/students/ann", "", call{})
			}
			arrived, answer := make(chan struct{}, 2), make(chan struct{})
			f.backend.set(func(string, string) (*BackendAnswer, error) {
				arrived <- struct{}{}
				<-answer
				return answers(200, `{"id":7}`), nil
			})
			first, second := make(chan *Reply, 1), make(chan *Reply, 1)
			go func() { first <- ask(order[0]) }()
			<-arrived
			go func() { second <- ask(order[1]) }()
			for f.store.decided() < 3 { // the first booking's, the first's, and the second's
				runtime.Gosched()
			}
			select {
			case <-arrived:
				t.Error("both are at the backend")
			case <-second:
				t.Error("the second did not wait")
			default:
			}
			close(answer)
			f.want(<-first, decision.DecisionAdmitted, 200)
			f.want(<-second, decision.DecisionAdmitted, 200)
		})
	}
}

func TestAPendingBookingIsConfirmedByItsPayment(t *testing.T) {
	f := newFixtureYAML(t, withPool(withdrawals, "capacity: 2, pending_ttl: 10m"))
	f.book(call{})
	f.wantTaken(0, 1)
	if h := f.slot("1").Holds[0]; h.State != decision.Pending || h.Reference != "1" {
		t.Fatalf("%+v", h)
	}
	f.backend.set(func(string, string) (*BackendAnswer, error) { return answers(200, "paid"), nil })
	f.wantOutcome(f.call("POST", "/bookings/1/payment", "", call{}), 200, rules.Done)
	f.wantTaken(1, 0)
	f.wantOutcome(f.call("POST", "/bookings/1/payment", "", call{}), 200, rules.Done)
	f.wantTaken(1, 0)
}

func TestACancelPassesWhileTheStoreIsAway(t *testing.T) {
	f := newFixtureYAML(t, withPool(withdrawals, "capacity: 2"))
	f.book(call{})
	f.backend.set(func(string, string) (*BackendAnswer, error) { return answers(204, ""), nil })
	f.store.set(func(string) error { return errors.New("away") }, nil)
	r := f.want(f.call("DELETE", "/lessons/1/students/ann", "", call{}), decision.DecisionPassthrough, 204)
	if r.Mode != ModeDegraded || r.Outcome != rules.Done {
		t.Fatalf("%+v", r)
	}
	f.store.set(nil, nil)
	f.wantTaken(1, 0) // which booking it was is not known; a resync or a look finds out
}
