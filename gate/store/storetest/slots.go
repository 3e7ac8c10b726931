package storetest

import (
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// slotTests are decide's steps 8, 9 and 11, and the order of all.
var slotTests = []test{
	{"P1: units are admitted up to the capacity and no further", func(f *fixture) {
		d := request(withCapacity(5))
		f.admit(again(d, withUnits(2)))
		f.admit(again(d, withUnits(2)))
		f.expect(decision.SoldOut, again(d, withUnits(2)))
		f.admit(again(d))
		f.expect(decision.SoldOut, again(d))
		f.units(d, 0, 5)
	}},
	{"more units than the slot has in all are over its capacity", func(f *fixture) {
		d := request(withUnits(3))
		f.expect(decision.OverCapacity, d)
		f.unseen(d)
		f.admit(request(withUnits(2)))
		f.expect(decision.OverCapacity, request(withUnits(3)))
	}},
	{"the configured capacity of the call applies at once", func(f *fixture) {
		f.admit(request(withCapacity(2)))
		f.admit(request(withCapacity(2)))
		f.expect(decision.SoldOut, request(withCapacity(2)))
		f.admit(request(withCapacity(3)))
		f.expect(decision.SoldOut, request(withCapacity(1)))
		f.units(request(), 0, 3)
	}},
	{"sold out: the hint is the next lapse", func(f *fixture) {
		f.admit(request())
		f.Advance(holdTTL / 2)
		f.admit(request())
		got := f.expect(decision.SoldOut, request())
		f.between("retry after", got.RetryAfter, holdTTL/2-moment, holdTTL/2)
	}},
	{"sold out: no hint when all is confirmed", func(f *fixture) {
		f.finish(rules.Booked, request(withUnits(2)))
		if got := f.expect(decision.SoldOut, request()); got.RetryAfter != 0 {
			f.Fatalf("retry after %v", got.RetryAfter)
		}
	}},
	{"sold out: no hint when no lapse can help", func(f *fixture) {
		f.finish(rules.Booked, request())
		f.admit(request())
		if got := f.expect(decision.SoldOut, request(withUnits(2))); got.RetryAfter != 0 {
			f.Fatalf("retry after %v", got.RetryAfter)
		}
		kept := request(keepUnknown, func(d *store.Decide) { d.Slot = "lesson-2" })
		f.admit(again(kept))
		f.admit(again(kept))
		if got := f.expect(decision.SoldOut, again(kept)); got.RetryAfter != 0 {
			f.Fatalf("retry after %v where unknown holds are kept", got.RetryAfter)
		}
	}},
	{"closed refuses all until opened", func(f *fixture) {
		d := request()
		f.change(d, store.SlotChange{Closed: ptr(true)})
		f.expect(decision.Closed, again(d))
		f.expect(decision.Closed, again(d))
		f.change(d, store.SlotChange{Closed: ptr(false)})
		f.admit(again(d))
	}},
	{"not open until opens_at, with the time to it", func(f *fixture) {
		probe := request()
		f.admit(probe)
		now := f.state(probe, probe.ID, decision.Held).TakenAt
		opens := func(d *store.Decide) { d.OpensAt = now.Add(time.Minute); d.Slot = "lesson-2" }
		got := f.expect(decision.NotOpen, request(opens))
		f.between("retry after", got.RetryAfter, time.Minute-moment, time.Minute)
		f.unseen(request(opens))
		f.Advance(time.Minute + moment)
		f.admit(request(opens))
	}},
	{"a slot's own opens_at goes before its pool's", func(f *fixture) {
		probe := request()
		f.admit(probe)
		now := f.state(probe, probe.ID, decision.Held).TakenAt
		early := request(func(d *store.Decide) { d.OpensAt = now.Add(time.Hour); d.Slot = "early" })
		late := request(func(d *store.Decide) { d.Slot = "late" })
		f.expect(decision.NotOpen, again(early))
		f.change(early, store.SlotChange{OpensAt: ptr(now.Add(-time.Hour))})
		f.change(late, store.SlotChange{OpensAt: ptr(now.Add(time.Hour))})
		f.admit(again(early))
		f.expect(decision.NotOpen, again(late))
		f.change(early, store.SlotChange{OpensAt: ptr(time.Time{})})
		f.change(late, store.SlotChange{OpensAt: ptr(time.Time{})})
		f.expect(decision.NotOpen, again(early))
		f.admit(again(late))
	}},
	{"max_inflight: attempts at the backend, not holds", func(f *fixture) {
		d := request(withCapacity(9), func(d *store.Decide) { d.MaxInflight = 2 })
		first := f.admit(d)
		second := again(d)
		f.admit(second)
		got := f.expect(decision.NoRoom, again(d))
		f.between("retry after", got.RetryAfter, 1, lease)
		if n := f.slot(d).Inflight; n != 2 {
			f.Fatalf("%d in flight, want 2", n)
		}
		f.settle(d, first, rules.Booked)
		f.admit(again(d))
		f.expect(decision.NoRoom, again(d))
	}},
	{"max_inflight: a dead gate's attempts stop counting at their lease", func(f *fixture) {
		d := request(withCapacity(9), func(d *store.Decide) { d.MaxInflight = 1 })
		f.admit(d)
		f.expect(decision.NoRoom, again(d))
		f.Advance(lease + moment)
		f.admit(again(d))
		f.units(d, 0, 2)
		f.Advance(lease + moment)
		if n := f.slot(d).Inflight; n != 0 {
			f.Fatalf("%d in flight, want 0", n)
		}
	}},
	{"max_inflight: an attempt runs on though an operator released its hold", func(f *fixture) {
		d := request(func(d *store.Decide) { d.MaxInflight = 1 })
		f.admit(d)
		f.release(d, d.ID, decision.Held)
		f.expect(decision.NoRoom, again(d))
		f.Advance(lease + moment)
		f.admit(again(d))
	}},
	{"max_inflight: a line goes before a newcomer, and no probe comes out of it", func(f *fixture) {
		lined := func(d *store.Decide) { d.Line = true }
		d := request(withCapacity(9), withKey("k"), retrying)
		f.expect(decision.NoRoom, again(d, lined))
		f.settle(d, f.admit(d), rules.Unknown)
		if got := f.admit(again(d, lined)); !got.Adopted {
			f.Fatalf("a retry under its own hold needs no new room: %+v", got)
		}
		marked := f.marked(withCapacity(9), func(d *store.Decide) { d.Slot = "lesson-2" })
		f.expect(decision.SoldOut, again(marked, lined))
		f.probe(marked)
	}},
	{"max_inflight: other slots are unhindered", func(f *fixture) {
		d := request(func(d *store.Decide) { d.MaxInflight = 1 })
		f.admit(d)
		f.admit(again(d, func(d *store.Decide) { d.Slot = "lesson-2" }))
	}},
	{"learned: at most four at the backend, whatever max_inflight allows beyond", func(f *fixture) {
		for _, tt := range []struct {
			slot      string
			max, want int
		}{{"none", 0, 4}, {"more", 10, 4}, {"less", 2, 2}} {
			d := request(learned, func(d *store.Decide) { d.MaxInflight = tt.max; d.Slot = tt.slot })
			for range tt.want {
				f.admit(again(d))
			}
			f.expect(decision.NoRoom, again(d))
			if s := f.slot(d); s.Inflight != tt.want || s.Capacity != store.Learned {
				f.Fatalf("%s: slot %+v, want %d in flight", tt.slot, s, tt.want)
			}
		}
	}},
	{"learned: no number of units is too many", func(f *fixture) {
		d := request(learned, withUnits(1_000_000))
		f.finish(rules.Booked, d)
		f.finish(rules.Booked, again(d))
		f.units(d, 2_000_000, 0)
		if _, known := ptr(f.slot(d)).Available(); known {
			f.Fatal("units available are known in a learned slot")
		}
	}},
	{"a refused request leaves no slot", func(f *fixture) {
		d := request(func(d *store.Decide) { d.SlotLimit = perMinute(1) })
		f.expect(decision.OverCapacity, again(d, withUnits(9)))
		f.unseen(d)
	}},
	{"the order of refusals", func(f *fixture) {
		// All but the limits' order holds at once; each step takes the first away.
		d := request(withKey("k"), withSubject("s"), withCapacity(1), onePerSubject, func(d *store.Decide) {
			d.MaxPerSubject = 1
			d.MaxInflight = 1
			d.SlotLimit = perMinute(1)
		})
		got := f.admit(d)
		now := f.state(d, d.ID, decision.Held).TakenAt
		f.change(d, store.SlotChange{Closed: ptr(true), OpensAt: ptr(now.Add(time.Hour))})

		next := again(d)
		f.expect(decision.Twin, next)
		next.Key = ""
		f.expect(decision.SubjectBusy, next)
		f.settle(d, got, rules.Unknown)
		f.expect(decision.OutcomeUnknown, next)
		f.settle(d, got, rules.Booked)
		f.expect(decision.SubjectHolds, next)
		next.OnePerSubject = false
		f.expect(decision.SubjectFull, next)
		next.MaxPerSubject = 0
		f.expect(decision.Closed, next)
		f.change(d, store.SlotChange{Closed: ptr(false)})
		f.expect(decision.NotOpen, next)
		f.change(d, store.SlotChange{OpensAt: ptr(time.Time{})})
		next.Units = 2
		f.expect(decision.OverCapacity, next)
		next.Units = 1
		f.expect(decision.SoldOut, next)
		next.Capacity = 9
		f.expect(decision.LimitedSlot, next)
		next.SlotLimit = store.Limit{}
		running := again(next)
		f.admit(running)
		f.expect(decision.NoRoom, next)
		next.MaxInflight = 0
		f.admit(next)
	}},
}
