package storetest

import (
	"context"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// markLease is how long a mark stands in these tests.
const markLease = 30 * time.Second

// touchTests are about the marks of gates that passed requests by (H18).
var touchTests = []test{
	{"a touched slot is dirty until the gate resumes", func(f *fixture) {
		d := request()
		f.finish(rules.Booked, again(d))
		f.dirty(d, false)
		f.touch(d, "gate-a")
		f.dirty(d, true)
		f.units(d, 1, 0)
		f.resume(d, "gate-a")
		f.dirty(d, false)
		f.units(d, 1, 0)
	}},
	{"a touch makes the slot", func(f *fixture) {
		d := request()
		f.touch(d, "gate-a")
		f.dirty(d, true)
		f.units(d, 0, 0)
		f.admit(d)
	}},
	{"a touched slot lets no more than a few in at once though it knows its capacity", func(f *fixture) {
		d := request(withCapacity(99))
		f.touch(d, "gate-a")
		first := again(d)
		got := f.admit(first)
		for range store.LearnedInflight - 1 {
			f.admit(again(d))
		}
		f.expect(decision.NoRoom, again(d))
		f.settle(first, got, rules.Booked)
		f.admit(again(d))
		f.expect(decision.NoRoom, again(d))
		f.resume(d, "gate-a")
		for range store.LearnedInflight {
			f.admit(again(d))
		}
	}},
	{"a touched slot that follows truth lets one in at a time", func(f *fixture) {
		d := request(truthful, func(d *store.Decide) { d.KeepUnknown = true })
		f.sync(d, 9)
		f.touch(d, "gate-a")
		first := again(d)
		got := f.admit(first)
		f.expect(decision.NoRoom, again(d))
		f.settle(first, got, rules.Booked)
		second := again(d)
		got = f.admit(second)
		f.settle(second, got, rules.Unknown)
		f.expect(decision.NoRoom, again(d)) // it may still be there
		f.settle(second, got, rules.Refused)
		f.admit(again(d))
	}},
	{"a smaller max_inflight goes before a mark", func(f *fixture) {
		d := request(withCapacity(99), func(d *store.Decide) { d.MaxInflight = 2 })
		f.touch(d, "gate-a")
		f.admit(again(d))
		f.admit(again(d))
		f.expect(decision.NoRoom, again(d))
	}},
	{"a touched slot's counters still refuse", func(f *fixture) {
		d := request(withCapacity(2))
		f.finish(rules.Booked, again(d))
		f.touch(d, "gate-a")
		f.expect(decision.OverCapacity, again(d, withUnits(3)))
		f.expect(decision.SoldOut, again(d, withUnits(2)))
		f.admit(again(d))
		f.expect(decision.SoldOut, again(d))
	}},
	{"a full mark is probed as where capacity is learned while the slot is touched", func(f *fixture) {
		d := f.marked(withCapacity(9))
		f.touch(d, "gate-a")
		for range 2 {
			probe := f.probe(d)
			f.expect(decision.SoldOut, again(d))
			f.settle(probe, f.admit(probe), rules.Booked)
			f.full(d, 1)
		}
		f.resume(d, "gate-a")
		probe := f.probe(d)
		f.settle(probe, f.admit(probe), rules.Booked)
		f.full(d, 0)
	}},
	{"the marks of two gates are independent", func(f *fixture) {
		d := request()
		f.touch(d, "gate-a")
		f.touch(d, "gate-b")
		f.resume(d, "gate-a")
		f.dirty(d, true)
		f.resume(d, "gate-a")
		f.resume(d, "gate-c")
		f.dirty(d, true)
		f.resume(d, "gate-b")
		f.dirty(d, false)
	}},
	{"a mark ends by its lease, each by its own", func(f *fixture) {
		d := request(withCapacity(99))
		f.touch(d, "gate-a")
		f.Advance(markLease / 2)
		f.touch(d, "gate-b")
		f.Advance(markLease/2 - moment)
		f.dirty(d, true)
		f.Advance(2 * moment)
		f.dirty(d, true)
		f.resume(d, "gate-b")
		f.dirty(d, false)
		f.touch(d, "gate-b")
		f.Advance(markLease + moment)
		f.dirty(d, false)
		for range store.LearnedInflight + 1 {
			f.admit(again(d))
		}
	}},
	{"a touch again renews the mark", func(f *fixture) {
		d := request()
		f.touch(d, "gate-a")
		f.Advance(markLease - moment)
		f.touch(d, "gate-a")
		f.Advance(markLease - moment)
		f.dirty(d, true)
		f.Advance(2 * moment)
		f.dirty(d, false)
	}},
	{"a touch wakes those who watch the slot, and so does its end", func(f *fixture) {
		d := request(waiting, func(d *store.Decide) { d.MaxInflight = 1 })
		f.admit(again(d))
		f.expect(decision.NoRoom, again(d))
		f.wakesSlot(d, func() { f.touch(d, "gate-a") })
		f.wakesSlot(d, func() { f.resume(d, "gate-a") })
	}},
	{"Resume of a slot that is not there makes none", func(f *fixture) {
		d := request()
		f.resume(d, "gate-a")
		f.unseen(d)
	}},
	{"Resume of a slot that is not marked changes nothing", func(f *fixture) {
		d := request()
		f.admit(d)
		before := f.slot(d)
		f.resume(d, "gate-a")
		if after := f.slot(d); after.Version != before.Version || after.Held != before.Held || after.Dirty {
			f.Fatalf("slot %+v became %+v", before, after)
		}
	}},
	{"an operator's set leaves the mark", func(f *fixture) {
		d := request()
		f.touch(d, "gate-a")
		if got := f.change(d, store.SlotChange{Capacity: ptr(int64(9)), Verify: true}); !got.Dirty || got.Capacity != 9 {
			f.Fatalf("slot %+v", got)
		}
	}},
}

// touch marks the slot of d for a gate and registers what it has at the backend.
func (f *fixture) touch(d *store.Decide, gate string, forced ...store.Forced) {
	f.Helper()
	t := &store.Touch{Gate: gate, Query: query(d), Lease: markLease, Forced: forced}
	if err := f.gate().Touch(context.Background(), t); err != nil {
		f.Fatalf("touch: %v", err)
	}
}

func (f *fixture) resume(d *store.Decide, gate string) {
	f.Helper()
	if err := f.gate().Resume(context.Background(), query(d), gate); err != nil {
		f.Fatalf("resume: %v", err)
	}
}

// dirty fails unless the slot of d is marked, or is not; its counters are those of
// the store's run either way.
func (f *fixture) dirty(d *store.Decide, want bool) {
	f.Helper()
	if got := f.slot(d); got.Dirty != want || !got.Verified || got.Capacity != d.Capacity {
		f.Fatalf("dirty %t, verified %t, capacity %d; want %t, true, %d", got.Dirty, got.Verified, got.Capacity, want, d.Capacity)
	}
}
