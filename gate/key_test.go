package gate

import (
	"bytes"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store/memstore"
)

const deriving = "idempotency: { derive: 10s }"

var asAnn, asEve = []string{"Authorization: Bearer ann"}, []string{"Authorization: Bearer eve"}

// newDeriving has a clock of its own in the store.
func newDeriving(t *testing.T, rule string) (f *fixture, ahead *atomic.Int64) {
	t.Helper()
	ahead = new(atomic.Int64)
	start := time.Now()
	memory := &flaky{Store: memstore.New(memstore.Options{Clock: func() time.Time {
		return start.Add(time.Since(start) + time.Duration(ahead.Load()))
	}})}
	t.Cleanup(func() { memory.Store.Close() })
	f = newFixtureOn(t, strings.NewReplacer("POOL", "capacity: 9", "RULE", rule).Replace(lessons), nil, memory)
	f.store = memory
	f.backend.set(bookOne)
	return f, ahead
}

func TestADoubleClickIsOneBooking(t *testing.T) {
	f, _ := newDeriving(t, deriving)
	first := f.want(f.book(call{fields: asAnn}), decision.DecisionAdmitted, 201)
	if again := f.want(f.book(call{fields: asAnn}), decision.DecisionReplayed, 201); !bytes.Equal(again.Body, first.Body) {
		t.Errorf("the second click is answered %s", again.Body)
	}
	f.want(f.book(call{student: "bob", fields: asAnn}), decision.DecisionAdmitted, 201)
	f.want(f.book(call{lesson: "2", fields: asAnn}), decision.DecisionAdmitted, 201)
	key := append([]string{"Idempotency-Key: k"}, asAnn...)
	f.want(f.book(call{fields: key}), decision.DecisionAdmitted, 201) // who sends a key means what it says
	f.want(f.book(call{fields: key}), decision.DecisionReplayed, 201)
}

func TestASecondClickWaitsForTheFirst(t *testing.T) {
	f, _ := newDeriving(t, deriving)
	release, first := f.held(call{fields: asAnn})
	second := make(chan *Reply, 1)
	go func() { second <- f.book(call{fields: asAnn}) }()
	for f.store.watching() == 0 {
		time.Sleep(time.Millisecond)
	}
	release(answers(201, "booked"), nil)
	f.want(<-first, decision.DecisionAdmitted, 201)
	if r := f.want(<-second, decision.DecisionReplayed, 201); string(r.Body) != "booked" || f.backend.count() != 1 {
		t.Errorf("%s, and the backend saw %d", r.Body, f.backend.count())
	}
}

// TestTheSameFromSomebodyElse is no double click, but the same booking all the same: two
// consultants, or a parent beside one. What the first got is not shown, and where that was
// no booking the second is on its own.
func TestTheSameFromSomebodyElse(t *testing.T) {
	for name, second := range map[string][]string{"another": asEve, "nobody": nil} {
		t.Run(name, func(t *testing.T) {
			f, _ := newDeriving(t, deriving)
			f.want(f.book(call{fields: asAnn}), decision.DecisionAdmitted, 201)
			r := f.want(f.book(call{fields: second}), decision.DecisionDuplicate, 409)
			if bytes.Contains(r.Body, []byte(`"id"`)) || !bytes.Contains(r.Body, []byte("a moment ago")) {
				t.Errorf("it is told %s", r.Body)
			}
			f.want(f.book(call{fields: asAnn}), decision.DecisionReplayed, 201)
		})
	}
	for status, want := range map[int]decision.Decision{401: decision.DecisionAdmitted, 201: decision.DecisionDuplicate} {
		f, _ := newDeriving(t, deriving)
		release, first := f.held(call{fields: asEve})
		second := make(chan *Reply, 1)
		go func() { second <- f.book(call{fields: asAnn}) }()
		for f.store.watching() == 0 {
			time.Sleep(time.Millisecond)
		}
		release(answers(status, ""), nil)
		<-first
		if r := <-second; r.Decision != want {
			t.Errorf("the first was answered %d, the other %s %s", status, r.Decision, r.Body)
		}
	}
	f, _ := newDeriving(t, deriving) // nobody, twice: nothing tells that they are the same
	f.want(f.book(call{}), decision.DecisionAdmitted, 201)
	f.want(f.book(call{}), decision.DecisionDuplicate, 409)
}

func TestTheWindowOfADerivedKey(t *testing.T) {
	f, ahead := newDeriving(t, "idempotency: { derive: 10m }")
	forward := func(d time.Duration) { ahead.Add(int64(d)) }
	release, first := f.held(call{fields: asAnn})
	forward(3 * time.Minute) // the backend takes its time
	release(answers(201, "booked"), nil)
	f.want(<-first, decision.DecisionAdmitted, 201)
	forward(9 * time.Minute) // 12 from the click
	f.want(f.book(call{fields: asAnn}), decision.DecisionReplayed, 201)
	forward(time.Minute) // a replay does not lengthen it
	f.backend.set(bookOne)
	f.want(f.book(call{fields: asAnn}), decision.DecisionAdmitted, 201)
	if f.backend.count() != 2 {
		t.Errorf("the backend saw %d", f.backend.count())
	}
}

func TestWhatIsNotKnownOutlastsTheWindow(t *testing.T) {
	f, ahead := newDeriving(t, deriving)
	f.backend.set(func(string, string) (*BackendAnswer, error) {
		return nil, &BackendError{Failure: TimedOut, Err: errors.New("late")}
	})
	f.want(f.book(call{fields: asAnn}), decision.DecisionUpstreamTimeout, 504)
	f.backend.set(bookOne)
	for range 2 {
		ahead.Add(int64(10 * time.Second))
		f.want(f.book(call{fields: asAnn}), decision.DecisionOutcomeUnknown, 409)
	}
	ahead.Add(int64(11 * time.Second)) // 31 s: hold_ttl has passed, and with it what the backend may do
	f.want(f.book(call{fields: asAnn}), decision.DecisionAdmitted, 201)
}

func TestARefusalEndsTheWindow(t *testing.T) {
	f, _ := newDeriving(t, deriving)
	f.backend.set(func(string, string) (*BackendAnswer, error) { return answers(422, "no"), nil })
	f.want(f.book(call{fields: asAnn}), decision.DecisionAdmitted, 422)
	f.backend.set(bookOne)
	f.want(f.book(call{fields: asAnn}), decision.DecisionAdmitted, 201)
}

func TestWithoutTheStoreADoubleClickIsStillOne(t *testing.T) {
	f, _ := newDeriving(t, deriving)
	f.store.set(func(string) error { return errors.New("down") }, nil)
	f.want(f.book(call{fields: asAnn}), decision.DecisionPassthrough, 201)
	f.want(f.book(call{fields: asAnn}), decision.DecisionReplayed, 201)
	f.store.set(nil, nil)
	if f.backend.count() != 1 {
		t.Errorf("the backend saw %d", f.backend.count())
	}
}
