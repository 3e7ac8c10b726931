package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// viewTests are about what an operator sees of a slot that follows truth.
var viewTests = []test{
	{"without a total the capacity is available + confirmed + held", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 9)
		f.finish(rules.Booked, again(d, withUnits(2)))
		f.admit(again(d))
		got := f.slot(d)
		if got.Capacity != 9 || got.Confirmed != 2 || got.Held != 1 || got.Own || got.Debt != 0 || got.Outside != 0 || got.LookFailed || !got.Verified || got.Dirty {
			f.Fatalf("slot %+v", got)
		}
		f.free(d, 6)
		f.sync(d, 4) // one is booked behind our back, and the held one may be yet
		if got := f.slot(d); got.Capacity != 6 {
			f.Fatalf("slot %+v", got)
		}
		f.free(d, 3)
	}},
	{"with a total it is that, and what no hold accounts for is outside", func(f *fixture) {
		d := request(truthful)
		told := func(value int64) {
			r := says(f.look(d), value)
			r.Total = 10
			f.apply(r)
		}
		told(6) // four were booked before the gate came
		f.finish(rules.Booked, again(d, withUnits(2)))
		f.admit(again(d))
		if got := f.slot(d); got.Capacity != 10 || got.Confirmed != 2 || got.Held != 1 || got.Outside != 4 {
			f.Fatalf("slot %+v", got)
		}
		f.free(d, 3)
		told(7) // three of the four and one of ours were cancelled there
		if got := f.slot(d); got.Capacity != 10 || got.Outside != 1 {
			f.Fatalf("slot %+v", got)
		}
		f.free(d, 6)
		told(-1)
		if got := f.slot(d); got.Capacity != 10 || got.Debt != 2 || got.Outside != 9 {
			f.Fatalf("slot %+v", got)
		}
		f.free(d, -2)
	}},
	{"it is told when the last look began that was applied", func(f *fixture) {
		d := request(truthful)
		f.admit(again(d, blind))
		taken := f.slot(d).Holds[0].TakenAt
		f.Advance(time.Minute)
		r := f.look(d)
		f.Advance(time.Minute)
		f.apply(says(r, 3))
		f.between("the time from take to look", f.slot(d).CheckedAt.Sub(taken), time.Minute, time.Minute+moment)
		r = f.look(d)
		f.between("the time from take to look", f.slot(d).CheckedAt.Sub(taken), time.Minute, time.Minute+moment)
		f.apply(r)
		f.between("the time from take to a failed look", f.slot(d).CheckedAt.Sub(taken), 2*time.Minute, 2*time.Minute+moment)
	}},
	{"a list shows the same", func(f *fixture) {
		d := request(truthful)
		r := says(f.look(d), -1)
		r.Total = 10
		f.apply(r)
		slots, _, err := f.gate().Slots(context.Background(), query(d), "", 10)
		if err != nil || len(slots) != 1 {
			f.Fatalf("%+v, %v", slots, err)
		}
		if got := slots[0]; got.Capacity != 10 || got.Debt != 1 || got.Outside != 11 || !got.Verified || got.CheckedAt.IsZero() {
			f.Fatalf("slot %+v", got)
		}
	}},
	{"every look moves the version", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 3)
		before := f.slot(d).Version
		f.look(d)
		if after := f.slot(d).Version; after != before {
			f.Fatalf("a look moved the version from %d to %d", before, after)
		}
		f.sync(again(d, func(d *store.Decide) { d.Slot = "lesson-2" }), 3)
		f.apply(says(f.look(d, forced), 3))
		if after := f.slot(d).Version; after <= before {
			f.Fatalf("version %d after %d", after, before)
		}
	}},
	{"a cancelled context is a failure of the store that did nothing, a closed store says so", func(f *fixture) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		d := request(truthful)
		s := f.Store
		l := &store.Look{Query: query(d), ID: newID(), Lease: lookLease}
		calls := func(ctx context.Context) map[string]error {
			_, look := s.Look(ctx, l)
			_, apply := s.Apply(ctx, &store.Reading{Look: l, Found: true, Value: 3, Total: store.Learned})
			_, _, due := s.Due(ctx, d.Pool, 1, dueLease)
			_, _, lead := s.Lead(ctx, d.Pool, "gate-a", leadTTL)
			_, _, find := s.Find(ctx, d.Pool, "booking-1")
			return map[string]error{"look": look, "apply": apply, "due": due, "lead": lead, "find": find, "resign": s.Resign(ctx, d.Pool, "gate-a")}
		}
		for op, err := range calls(ctx) {
			var failure *store.Error
			if !errors.As(err, &failure) || !errors.Is(err, context.Canceled) {
				f.Fatalf("%s: %v", op, err)
			}
		}
		f.unseen(d)
		f.leads(d.Pool, "gate-b")
		if err := f.Store.Close(); err != nil {
			f.Fatal(err)
		}
		for op, err := range calls(context.Background()) {
			var failure *store.Error
			if !errors.As(err, &failure) || failure.Kind != store.KindClosed {
				f.Fatalf("%s after close: %v", op, err)
			}
		}
	}},
}
