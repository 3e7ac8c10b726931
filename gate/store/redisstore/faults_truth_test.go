package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/luascripts"
	"github.com/slotgate/slotgate/rules"
)

// truthful is ordinary in a pool whose counters follow truth.
func truthful(id string) *store.Decide {
	d := ordinary(id)
	d.Capacity, d.Truth, d.Hot, d.Refresh = store.Learned, store.TruthRemaining, 5*time.Second, time.Minute
	return d
}

// cancelling asks to cancel, or to confirm, what d booked.
func cancelling(d *store.Decide, id string, action store.Action) *store.Decide {
	c := *d
	c.ID, c.Action, c.Group, c.Units = id, action, "cancel", 0
	return &c
}

// reading begins a look by the clear store, of which the source will say value.
func (w *wire) reading(d *store.Decide, id string, value int64) *store.Reading {
	w.Helper()
	l := &store.Look{Query: query(d), ID: id, Lease: time.Minute}
	looked, err := w.clear.Look(context.Background(), l)
	if err != nil || looked.Busy != 0 {
		w.Fatalf("look: %+v, %v", looked, err)
	}
	return &store.Reading{Look: l, Looked: looked, Found: true, Value: value, Total: store.Learned, Hot: d.Hot, Refresh: d.Refresh}
}

func (w *wire) sync(d *store.Decide, id string, value int64) store.Applied {
	w.Helper()
	applied, err := w.clear.Apply(context.Background(), w.reading(d, id, value))
	if err != nil || !applied.Applied {
		w.Fatalf("apply: %+v, %v", applied, err)
	}
	return applied
}

// free is how many units are available, signed.
func (w *wire) free(d *store.Decide, want int64) {
	w.Helper()
	slot, err := w.clear.Slot(context.Background(), query(d))
	n, known := slot.Available()
	if err != nil || !known || n-slot.Debt != want {
		w.Errorf("%d available (%t), debt %d, %v; want %d", n, known, slot.Debt, err, want)
	}
}

// booked makes a booking that waits for its confirm, called booking-1 by the backend.
func (w *wire) booked(d *store.Decide, pending time.Duration) store.Settled {
	w.Helper()
	s := settling(d, w.decide(d, decision.Admitted), rules.Booked)
	s.PendingTTL, s.Reference = pending, "booking-1"
	settled, err := w.store.Settle(context.Background(), s)
	if err != nil {
		w.Fatal(err)
	}
	return settled
}

// truthWrites are the writes of pools with truth, and of cancels.
var truthWrites = []write{
	{"look", luascripts.Look, func(w *wire) func() {
		d := truthful("request-one-000001")
		w.sync(d, "look-one", 3)
		return func() {
			got, err := w.store.Look(context.Background(), &store.Look{Query: query(d), ID: "look-two", Lease: time.Minute})
			if err != nil || got.Busy != 0 || !got.Known || got.At == 0 {
				w.Errorf("looked %+v, %v", got, err)
			}
		}
	}},
	{"look, lapsing", luascripts.Look, func(w *wire) func() {
		d := truthful("request-one-000001")
		w.sync(d, "look-one", 3)
		w.decide(d, decision.Admitted)
		advance(time.Minute, w.store, w.clear)
		return func() {
			got, err := w.store.Look(context.Background(), &store.Look{Query: query(d), ID: "look-two", Lease: time.Minute})
			if err != nil || got.Busy != 0 || got.Open != 0 || got.Admitted != 1 {
				w.Errorf("looked %+v, %v", got, err)
			}
		}
	}},
	{"look, of an unknown slot", luascripts.Look, func(w *wire) func() {
		d := truthful("request-one-000001")
		return func() {
			got, err := w.store.Look(context.Background(), &store.Look{Query: query(d), ID: "look-one", Lease: time.Minute})
			if err != nil || got.Busy != 0 || got.Known || got.At == 0 {
				w.Errorf("looked %+v, %v", got, err)
			}
		}
	}},
	{"apply", luascripts.Apply, func(w *wire) func() {
		d := truthful("request-one-000001")
		w.sync(d, "look-one", 3)
		w.decide(d, decision.Admitted)
		return w.applying(d, func(r *store.Reading) {})
	}},
	{"apply, of an unknown slot", luascripts.Apply, func(w *wire) func() {
		return w.applying(truthful("request-one-000001"), func(r *store.Reading) {})
	}},
	{"apply, failed", luascripts.Apply, func(w *wire) func() {
		d := truthful("request-one-000001")
		w.sync(d, "look-one", 3)
		return w.applying(d, func(r *store.Reading) { r.Found = false })
	}},
	{"apply, missing", luascripts.Apply, func(w *wire) func() {
		d := truthful("request-one-000001")
		w.sync(d, "look-one", 3)
		return w.applying(d, func(r *store.Reading) { r.Found, r.Missing = false, true })
	}},
	{"decide, admitted by truth", luascripts.Decide, func(w *wire) func() {
		d := truthful("request-one-000001")
		w.sync(d, "look-one", 1)
		return func() {
			w.decide(d, decision.Admitted)
			w.free(d, 0)
		}
	}},
	{"decide, cancel", luascripts.Decide, func(w *wire) func() {
		d := truthful("request-one-000001")
		w.sync(d, "look-one", 3)
		w.booked(d, 0)
		return func() {
			if got := w.decide(cancelling(d, "request-two-000002", store.Cancel), decision.Admitted); got.Hold != d.ID {
				w.Errorf("decided %+v", got)
			}
		}
	}},
	{"settle, cancel done", luascripts.Settle, func(w *wire) func() {
		d, c, got := w.cancelled()
		return func() {
			if settled := w.settle(c, got, rules.Done); settled.Hold != decision.Released {
				w.Errorf("settled %+v", settled)
			}
			w.free(d, 3)
		}
	}},
	{"settle, cancel done late", luascripts.Settle, func(w *wire) func() {
		d, c, got := w.cancelled()
		advance(time.Minute, w.store, w.clear)
		return func() {
			w.settle(c, got, rules.Done)
			w.free(d, 2)
		}
	}},
	{"settle, cancel unknown", luascripts.Settle, func(w *wire) func() {
		d, c, got := w.cancelled()
		return func() {
			if settled := w.settle(c, got, rules.Unknown); settled.Hold != decision.Confirmed {
				w.Errorf("settled %+v", settled)
			}
			w.free(d, 2)
		}
	}},
	{"settle, pending with a reference", luascripts.Settle, func(w *wire) func() {
		d := truthful("request-one-000001")
		w.sync(d, "look-one", 3)
		got := w.decide(d, decision.Admitted)
		return func() {
			s := settling(d, got, rules.Booked)
			s.PendingTTL, s.Reference = time.Minute, "booking-1"
			if settled, err := w.store.Settle(context.Background(), s); err != nil || settled.Hold != decision.Pending {
				w.Errorf("settled %+v, %v", settled, err)
			}
			if slot, hold, err := w.clear.Find(context.Background(), d.Pool, "booking-1"); err != nil || slot != d.Slot || hold != d.ID {
				w.Errorf("found %q in %q, %v", hold, slot, err)
			}
		}
	}},
	{"settle, confirm done", luascripts.Settle, func(w *wire) func() {
		d := truthful("request-one-000001")
		w.sync(d, "look-one", 3)
		w.booked(d, time.Minute)
		c := cancelling(d, "request-two-000002", store.Confirm)
		got := w.decide(c, decision.Admitted)
		return func() {
			if settled := w.settle(c, got, rules.Done); settled.Hold != decision.Confirmed {
				w.Errorf("settled %+v", settled)
			}
		}
	}},
	{"slot read, expiring", luascripts.SlotRead, func(w *wire) func() {
		d := truthful("request-one-000001")
		w.sync(d, "look-one", 3)
		w.booked(d, time.Minute)
		advance(2*time.Minute, w.store, w.clear)
		return func() {
			if slot, err := w.store.Slot(context.Background(), query(d)); err != nil || slot.Held != 0 || slot.Capacity != 2 {
				w.Errorf("slot %+v, %v", slot, err)
			}
		}
	}},
	{"touch, with truth", luascripts.Touch, func(w *wire) func() {
		d := truthful("request-one-000001")
		w.sync(d, "look-one", 3)
		return func() {
			if err := touch(w.store, d, "gate-a", force(d, "")); err != nil {
				w.Error(err)
			}
			w.free(d, 2)
		}
	}},
	{"resume, with truth", luascripts.Touch, func(w *wire) func() {
		d := truthful("request-one-000001")
		w.sync(d, "look-one", 3)
		if err := touch(w.clear, d, "gate-a"); err != nil {
			w.Fatal(err)
		}
		return func() {
			if err := w.store.Resume(context.Background(), query(d), "gate-a"); err != nil {
				w.Error(err)
			}
		}
	}},
	{"lead", luascripts.Lead, func(w *wire) func() {
		return func() {
			if _, ok, err := w.store.Lead(context.Background(), "lessons", "gate-a", time.Minute); err != nil || !ok {
				w.Errorf("leads %t, %v", ok, err)
			}
		}
	}},
	{"resign", luascripts.Resign, func(w *wire) func() {
		if _, ok, err := w.clear.Lead(context.Background(), "lessons", "gate-a", time.Minute); err != nil || !ok {
			w.Fatalf("leads %t, %v", ok, err)
		}
		return func() {
			if err := w.store.Resign(context.Background(), "lessons", "gate-a"); err != nil {
				w.Error(err)
			}
		}
	}},
}

// applying begins a look and returns its apply, of which the source says 2.
func (w *wire) applying(d *store.Decide, change func(r *store.Reading)) func() {
	r := w.reading(d, "look-two", 2)
	change(r)
	return func() {
		if _, err := w.store.Apply(context.Background(), r); err != nil {
			w.Error(err)
		}
	}
}

// cancelled is a booking, and its cancel that is at the backend.
func (w *wire) cancelled() (d, c *store.Decide, got store.Decided) {
	d = truthful("request-one-000001")
	w.sync(d, "look-one", 3)
	w.booked(d, 0)
	c = cancelling(d, "request-two-000002", store.Cancel)
	return d, c, w.decide(c, decision.Admitted)
}

// A copy of a look that comes after its apply keeps no other look off.
func TestALateCopyOfALookTakesNoLease(t *testing.T) {
	w := newWire(t)
	d := truthful("request-one-000001")
	l := &store.Look{Query: query(d), ID: "look-one", Lease: time.Minute}
	copies := w.proxy.HoldCopy("EVALSHA " + luascripts.Look.SHA1)
	looked, err := w.store.Look(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	r := &store.Reading{Look: l, Looked: looked, Found: true, Value: 3, Total: store.Learned, Hot: d.Hot, Refresh: d.Refresh}
	if applied, err := w.clear.Apply(t.Context(), r); err != nil || !applied.Applied {
		t.Fatalf("applied %+v, %v", applied, err)
	}
	if _, err := copies.Replay(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.sync(d, "look-two", 2)
	w.free(d, 2)
}

// A copy of a resignation that comes after who resigned leads again ends nothing, nor
// does a copy of a renewal bring back who has gone.
func TestALateCopyLeavesTheLeadership(t *testing.T) {
	w := newWire(t)
	ctx := t.Context()
	leads := func(s *Store, who string, want bool) int64 {
		t.Helper()
		fence, ok, err := s.Lead(ctx, "lessons", who, time.Minute)
		if err != nil || ok != want {
			t.Fatalf("%s leads %t, %v; want %t", who, ok, err, want)
		}
		return fence
	}
	taken := w.proxy.HoldCopy("EVALSHA " + luascripts.Lead.SHA1)
	first := leads(w.store, "gate-a", true)
	resigned := w.proxy.HoldCopy("EVALSHA " + luascripts.Resign.SHA1)
	if err := w.store.Resign(ctx, "lessons", "gate-a"); err != nil {
		t.Fatal(err)
	}
	if _, err := taken.Replay(ctx); err != nil {
		t.Fatal(err)
	}
	second := leads(w.clear, "gate-b", true)
	if second <= first {
		t.Errorf("fence %d after %d", second, first)
	}
	if err := w.clear.Resign(ctx, "lessons", "gate-b"); err != nil {
		t.Fatal(err)
	}
	third := leads(w.clear, "gate-a", true)
	if _, err := resigned.Replay(ctx); err != nil {
		t.Fatal(err)
	}
	leads(w.clear, "gate-b", false)
	if again := leads(w.clear, "gate-a", true); again != third {
		t.Errorf("fence %d after a renewal of %d", again, third)
	}
}

// A fence grows though the store has forgotten the last one, or its clock goes back.
func TestAFenceGrowsWithoutItsPast(t *testing.T) {
	w := newWire(t)
	ctx := t.Context()
	keys := w.clear.keys.Leader("lessons")
	var last int64
	for _, forget := range []func(){
		func() {},
		func() { w.clear.client.Del(ctx, keys.Leader, keys.Fence) },
		func() {
			w.clear.client.Del(ctx, keys.Leader)
			advance(-time.Hour, w.clear)
		},
	} {
		forget()
		fence, ok, err := w.clear.Lead(ctx, "lessons", "gate-a", time.Minute)
		if err != nil || !ok || fence <= last {
			t.Fatalf("fence %d after %d, %t, %v", fence, last, ok, err)
		}
		last = fence
	}
}

// The first cancel is done without an answer, and a look finds its unit: the 2xx of the
// retry must not free it a second time.
func TestACancelThatRepeatsAnUnansweredOneFreesNothingTwice(t *testing.T) {
	for what, leave := range map[string]func(w *wire, c *store.Decide, got store.Decided){
		"settled as unknown":       func(w *wire, c *store.Decide, got store.Decided) { w.settle(c, got, rules.Unknown) },
		"never settled":            func(w *wire, c *store.Decide, got store.Decided) { advance(20*time.Second, w.store, w.clear) },
		"never settled, long over": func(w *wire, c *store.Decide, got store.Decided) { advance(5*time.Minute, w.store, w.clear) },
	} {
		t.Run(what, func(t *testing.T) {
			w := newWire(t)
			d, c, got := w.cancelled()
			leave(w, c, got)
			w.sync(d, "look-two", 3)
			w.free(d, 3)
			retry := cancelling(d, "request-three-0003", store.Cancel)
			retry.Key = ""
			settled := w.settle(retry, w.decide(retry, decision.Admitted), rules.Done)
			if settled.Hold != decision.Released || !settled.Look {
				t.Errorf("settled %+v", settled)
			}
			w.free(d, 3)
		})
	}
}
