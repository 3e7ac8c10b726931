package memstore

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// followed is the n-th request of slots whose counters follow truth.
func followed(n int) *store.Decide {
	d := booking(n)
	d.SubjectLimit, d.ClientLimit, d.SlotLimit = store.Limit{}, store.Limit{}, store.Limit{}
	d.Capacity, d.Truth, d.Hot, d.Refresh = store.Learned, store.TruthRemaining, 5*time.Second, time.Minute
	return d
}

func lookAt(d *store.Decide) *store.Look {
	return &store.Look{
		Query: store.SlotQuery{Pool: d.Pool, Slot: d.Slot, Capacity: d.Capacity, Truth: d.Truth, HoldTTL: d.HoldTTL, Retain: d.Retain},
		ID:    "look of " + d.ID, Lease: 10 * time.Second,
	}
}

func look(t testing.TB, s *Store, d *store.Decide) *store.Reading {
	t.Helper()
	l := lookAt(d)
	got, err := s.Look(background, l)
	if err != nil {
		t.Fatal(err)
	}
	return &store.Reading{Look: l, Looked: got, Found: true, Value: 5, Total: store.Learned, Hot: d.Hot, Refresh: d.Refresh}
}

func apply(t testing.TB, s *Store, r *store.Reading) store.Applied {
	t.Helper()
	got, err := s.Apply(background, r)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// bookAndCancel leaves a booking with a reference, and a cancel of it under way.
func bookAndCancel(t testing.TB, s *Store, d *store.Decide) {
	t.Helper()
	apply(t, s, look(t, s, d))
	st := settlement(d, decide(t, s, d).Hold, rules.Booked)
	st.Truth, st.Reference = d.Truth, "booking of "+d.ID
	settle(t, s, st)
	c := *d
	c.ID, c.Action, c.Key = "cancel-"+d.ID, store.Cancel, ""
	if got := decide(t, s, &c); got.Verdict != decision.Admitted || got.Hold != d.ID {
		t.Fatalf("decided %+v", got)
	}
}

func TestEstimateOfTruthAndCancels(t *testing.T) {
	const n = 10_000
	before := heap()
	s, c := open(t, Options{})
	for i := range n {
		d := followed(i)
		bookAndCancel(t, s, d)
		look(t, s, d)
	}
	grown, used := heap()-before, s.MemoryUsed()
	t.Logf("%d slots: %d bytes each on the heap, %d by estimate", n, grown/n, used/n)
	if used < grown || used > 3*grown {
		t.Errorf("the estimate is %d bytes, the heap grew by %d", used, grown)
	}
	runtime.KeepAlive(s)

	c.advance(2 * time.Hour)
	s.sweep()
	if used := s.MemoryUsed(); used != 0 {
		t.Errorf("%d bytes in use after everything has expired", used)
	}
	if _, _, err := s.Find(background, "lessons", "booking of "+followed(0).ID); err != store.ErrNoHold {
		t.Errorf("a reference outlived its slot: %v", err)
	}
	if slots, next, err := s.Due(background, "lessons", 9, time.Second); len(slots) > 0 || next != -1 || err != nil {
		t.Errorf("slots that are gone are due: %q in %v, %v", slots, next, err)
	}
}

func TestCancelsAndLookLeasesAreForgottenWithoutAnyCall(t *testing.T) {
	s, c := open(t, Options{})
	d := followed(0)
	bookAndCancel(t, s, d)
	before := s.MemoryUsed()
	for i := range 1000 {
		unseen := followed(i + 1)
		look(t, s, unseen)
		another := *d
		another.ID, another.Action, another.Key = fmt.Sprintf("another-cancel-%04d", i), store.Cancel, ""
		decide(t, s, &another)
		st := settlement(&another, d.ID, rules.Refused)
		st.Action, st.Truth = store.Cancel, store.TruthRemaining
		settle(t, s, st)
	}
	if used := s.MemoryUsed(); used < before+1000*(cancelCost+lookCost) {
		t.Fatalf("%d bytes in use, %d before", used, before)
	}
	c.advance(d.Lease + store.CopyWindow + time.Second)
	s.sweep()
	if used := s.MemoryUsed(); used > before {
		t.Errorf("%d bytes in use, %d before", used, before)
	}
}

func TestFullStoreRefusesLooksAndCancelsAndKeepsItsBookings(t *testing.T) {
	s, _ := open(t, Options{MaxMemory: 1 << 20})
	known := followed(0)
	r := look(t, s, known)
	apply(t, s, r)
	hold := decide(t, s, known).Hold
	again := look(t, s, known)
	s.memory.charge(s.memory.limit - s.MemoryUsed())

	_, newLook := s.Look(background, lookAt(followed(1)))
	c := *known
	c.ID, c.Action, c.Subject, c.Target, c.Key = "cancel-0000000001", store.Cancel, "nobody", "", ""
	_, newCancel := s.Decide(background, &c)
	for what, err := range map[string]error{"look": newLook, "cancel": newCancel} {
		if !isFull(err) {
			t.Errorf("a new %s: %v, want a full store", what, err)
		}
	}

	st := settlement(known, hold, rules.Booked)
	st.Truth, st.Reference = known.Truth, "a reference that is not kept"
	if got := settle(t, s, st); got.Hold != decision.Confirmed {
		t.Errorf("settled %+v", got)
	}
	if _, _, err := s.Find(background, known.Pool, st.Reference); err != store.ErrNoHold {
		t.Errorf("found: %v", err)
	}
	if got := apply(t, s, again); !got.Applied {
		t.Errorf("applied %+v", got)
	}
}

// A slot that was idle for retain and is made anew is another one.
func TestALookOfASlotsFormerLifeIsRefused(t *testing.T) {
	s, c := open(t, Options{})
	d := followed(0)
	apply(t, s, look(t, s, d))
	former := look(t, s, d)
	c.advance(2 * d.Retain)
	s.sweep()
	if got := apply(t, s, former); got.Applied {
		t.Errorf("a slot that is gone: applied %+v", got)
	}
	apply(t, s, look(t, s, d))
	if got := apply(t, s, former); got.Applied {
		t.Errorf("a slot that lives anew: applied %+v", got)
	}
}
