package gate

import (
	"errors"
	"fmt"
	"testing"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

func down(maybe bool) func(string) error {
	return func(op string) error {
		return &store.Error{Op: op, Kind: store.KindConnection, Maybe: maybe, Err: errors.New("down")}
	}
}

func TestAStoreThatIsAwayPassesOrRejects(t *testing.T) {
	limits := "passthrough: { slot: { rate: 1/m, burst: 2 }, rule: { rate: 1/m, burst: 3 }, max_inflight: 9 }"
	f := newFixture(t, "capacity: 1", limits)
	f.store.set(down(false), nil)
	for range 2 {
		r := f.want(f.book(call{}), decision.DecisionPassthrough, 201)
		if r.Mode != ModeDegraded || r.Bound != "backend" || r.Hold != "" || r.Outcome != rules.Booked {
			t.Fatalf("%+v", r)
		}
	}
	r := f.want(f.book(call{}), decision.DecisionStoreDown, 503)
	if r.Mode != ModeDegraded || field(r, "Retry-After") == "" {
		t.Fatalf("%+v", r)
	}
	f.want(f.book(call{lesson: "2"}), decision.DecisionPassthrough, 201)
	f.want(f.book(call{lesson: "3"}), decision.DecisionStoreDown, 503) // the rule's own limit
	if f.backend.count() != 3 {
		t.Fatalf("the backend saw %d", f.backend.count())
	}

	f = newFixture(t, "capacity: 1", "on_store_failure: reject")
	f.store.set(down(false), nil)
	f.want(f.book(call{}), decision.DecisionStoreDown, 503)
	if f.backend.count() != 0 {
		t.Fatal("forwarded")
	}
}

// goAway takes the store away until the breaker has opened.
func (f *fixture) goAway() {
	f.t.Helper()
	f.store.set(down(false), nil)
	for i := 0; !f.Status().Degraded; i++ {
		if i > 20 {
			f.t.Fatal("the breaker stays closed")
		}
		f.book(call{lesson: fmt.Sprint("probe", i)}) // of which none is known to be sold out
	}
}

// comeBack gives the store back and waits until the gate goes by it again.
func (f *fixture) comeBack() {
	f.t.Helper()
	f.store.set(nil, nil)
	waitFor(f.t, func() bool { return !f.Status().Degraded && f.Status().SettleBacklog == 0 && !f.slot("1").Dirty })
}

const generous = "passthrough: { slot: { rate: 1000/s, burst: 1000 }, rule: { rate: 1000/s, burst: 1000 }, max_inflight: 100 }"

func TestWithoutTheStoreTheProcessStillDedupes(t *testing.T) {
	f := newFixture(t, "capacity: 9, one_per_subject: true", keyed+"\n    "+generous)
	before := []string{"Idempotency-Key: before", "Cookie: a=1"}
	f.want(f.book(call{student: "early", fields: before}), decision.DecisionAdmitted, 201)
	f.goAway()
	seen := f.backend.count()

	f.want(f.book(call{student: "early", fields: before}), decision.DecisionReplayed, 201)
	who := []string{"Idempotency-Key: k", "Cookie: a=1"}
	release, first := f.held(call{fields: who})
	twin := make(chan *Reply, 1)
	watched := f.waitingTwins()
	go func() { twin <- f.book(call{fields: who}) }()
	f.want(f.book(call{student: "bob", fields: who}), decision.DecisionKeyMismatch, 422)
	_ = watched
	release(answers(201, "yes"), nil)
	a, b := f.want(<-first, decision.DecisionPassthrough, 201), f.want(<-twin, decision.DecisionReplayed, 201)
	if string(a.Body) != string(b.Body) || b.Mode != ModeDegraded {
		t.Fatalf("%+v and %+v", a, b)
	}
	f.want(f.book(call{fields: who}), decision.DecisionReplayed, 201)
	f.want(f.book(call{}), decision.DecisionDuplicate, 409)
	if n := f.backend.count() - seen; n != 1 {
		t.Fatalf("%d requests reached the backend", n)
	}

	f.comeBack()
	again := f.want(f.book(call{fields: who}), decision.DecisionReplayed, 201)
	if string(again.Body) != "yes" || again.Mode != ModeNormal {
		t.Fatalf("after the return: %+v", again)
	}
	f.want(f.book(call{}), decision.DecisionDuplicate, 409)
}

func TestAFloodWithoutTheStoreKeepsNobodyOutLater(t *testing.T) {
	f := newFixture(t, "capacity: 9", keyed+"\n    passthrough: { slot: { rate: 1/m, burst: 2 }, rule: { rate: 1000/s, burst: 1000 } }")
	f.goAway()
	who := []string{"Idempotency-Key: first", "Cookie: a=1"}
	f.want(f.book(call{student: "first", fields: who}), decision.DecisionPassthrough, 201)
	f.want(f.book(call{student: "second"}), decision.DecisionPassthrough, 201)
	before := f.local.MemoryUsed()
	for i := range 2000 {
		f.want(f.book(call{student: fmt.Sprint(i), fields: []string{fmt.Sprintf("Idempotency-Key: k%d", i)}}), decision.DecisionStoreDown, 503)
	}
	if grown := f.local.MemoryUsed() - before; grown > 4<<10 {
		t.Errorf("2000 requests over the limit left %d bytes", grown)
	}
	// Over the limit, a repeat still gets its answer.
	f.want(f.book(call{student: "first", fields: who}), decision.DecisionReplayed, 201)
}

func TestOnReturnTheCountersHaveWhatWasPassedThrough(t *testing.T) {
	f := newFixture(t, "capacity: 4", generous)
	f.want(f.book(call{student: "early"}), decision.DecisionAdmitted, 201)
	f.goAway()
	f.want(f.book(call{student: "a"}), decision.DecisionPassthrough, 201)
	f.backend.set(func(string, string) (*BackendAnswer, error) { return answers(422, "no"), nil })
	f.want(f.book(call{student: "b"}), decision.DecisionPassthrough, 422)
	f.backend.set(func(string, string) (*BackendAnswer, error) {
		return nil, &BackendError{Failure: TimedOut, Err: errors.New("late")}
	})
	f.want(f.book(call{student: "c"}), decision.DecisionUpstreamTimeout, 504)
	release, running := f.held(call{student: "d"}) // still at the backend when the store returns
	f.comeBack()

	s := f.slot("1")
	if s.Confirmed != 2 || s.Held != 2 || s.Dirty {
		t.Fatalf("confirmed %d, held %d, dirty %v; want 2, 2 (one unknown, one running) and false", s.Confirmed, s.Held, s.Dirty)
	}
	f.want(f.book(call{student: "e"}), decision.DecisionSoldOut, 409)
	release(answers(201, "ok"), nil)
	f.want(<-running, decision.DecisionPassthrough, 201)
	waitFor(t, func() bool { return f.slot("1").Confirmed == 3 })
	if s := f.slot("1"); s.Held != 1 {
		t.Fatalf("held %d", s.Held)
	}
}

func TestLocalAdmitsOnlyItsShareOfWhatItLastKnew(t *testing.T) {
	f := newFixture(t, "capacity: 10", "on_store_failure: local\n    passthrough: { share: 0.5, slot: { rate: 1000/s, burst: 1000 }, rule: { rate: 1000/s, burst: 1000 } }")
	for i := range 3 {
		f.want(f.book(call{student: fmt.Sprint("early", i)}), decision.DecisionAdmitted, 201)
	}
	f.goAway()
	passed := 0
	for i := range 10 {
		r := f.book(call{student: fmt.Sprint(i)})
		if r.Bound != "3" { // half of the 7 that were left
			t.Fatalf("bound %q", r.Bound)
		}
		switch r.Decision {
		case decision.DecisionPassthrough:
			passed++
		case decision.DecisionStoreDown:
		default:
			t.Fatalf("%+v", r)
		}
	}
	if passed != 3 {
		t.Fatalf("%d passed", passed)
	}
	f.want(f.book(call{lesson: "never-seen"}), decision.DecisionStoreDown, 503)
	f.comeBack()
	if s := f.slot("1"); s.Confirmed != 6 || s.Held != 0 {
		t.Fatalf("confirmed %d, held %d", s.Confirmed, s.Held)
	}
}

func TestAWaitingTwinIsNotSentWhenTheStoreGoesAway(t *testing.T) {
	f := newFixture(t, "capacity: 9", keyed)
	who := []string{"Idempotency-Key: k", "Cookie: a=1"}
	release, first := f.held(call{fields: who})
	twin := make(chan *Reply, 1)
	go func() { twin <- f.book(call{fields: who}) }()
	waitFor(t, func() bool { return f.waitingTwins() == 1 })
	f.store.set(down(false), nil)
	f.want(<-twin, decision.DecisionInFlight, 409)
	f.store.set(nil, nil)
	release(answers(201, ""), nil)
	f.want(<-first, decision.DecisionAdmitted, 201)
	if f.backend.count() != 1 {
		t.Fatal("sent twice")
	}
}

func TestADecideThatMayHaveRunIsSettledLater(t *testing.T) {
	for _, policy := range []string{"pass", "reject", "local"} { // local knows of nothing left, and refuses
		f := newFixture(t, "capacity: 1, keep_unknown: true", "on_store_failure: "+policy)
		f.store.set(nil, func(op string) error {
			if op == "decide" {
				return down(true)(op)
			}
			return nil
		})
		f.book(call{}) // the store took the hold, its reply was lost
		waitFor(t, func() bool { return f.Status().SettleBacklog == 0 })
		s := f.slot("1")
		if want := int64(map[string]int{"pass": 1}[policy]); s.Confirmed != want || s.Held != 0 {
			t.Fatalf("%s: confirmed %d, held %d", policy, s.Confirmed, s.Held)
		}
	}
}

func TestASettlementTheStoreDidNotTakeIsRetried(t *testing.T) {
	f := newFixture(t, "capacity: 5", keyed)
	f.store.set(func(op string) error {
		if op == "settle" {
			return down(false)(op)
		}
		return nil
	}, nil)
	for i := range 2 {
		f.want(f.book(call{student: fmt.Sprint(i), fields: []string{fmt.Sprintf("Idempotency-Key: k%d", i), "Cookie: a=1"}}), decision.DecisionAdmitted, 201)
	}
	if f.Status().SettleBacklog != 2 {
		t.Fatalf("backlog %d", f.Status().SettleBacklog)
	}
	f.store.set(nil, nil)
	waitFor(t, func() bool { return f.Status().SettleBacklog == 0 })
	if s := f.slot("1"); s.Confirmed != 2 || s.Held != 0 {
		t.Fatalf("%+v", s)
	}
	f.want(f.book(call{student: "0", fields: []string{"Idempotency-Key: k0", "Cookie: a=1"}}), decision.DecisionReplayed, 201)
}
