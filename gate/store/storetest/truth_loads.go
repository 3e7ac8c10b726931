package storetest

import (
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// loadTests are about the verdict that truth is to be looked at first.
var loadTests = []test{
	{"a slot that was never looked at is Load, and nothing is kept of it", func(f *fixture) {
		d := request(truthful, withSubject("s"), withKey("k"))
		got := f.expect(decision.Load, d)
		if got.Hold != "" || got.Left != -1 {
			f.Fatalf("decided %+v", got)
		}
		f.unseen(d)
		f.expect(decision.Load, d)
		f.sync(d, 1)
		f.admit(d) // the key was not claimed, nor the id finished
	}},
	{"after a look exactly what truth has left is admitted", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 3)
		f.left(decision.Admitted, again(d, withUnits(2)), 1)
		f.left(decision.SoldOut, again(d, withUnits(2)), 1)
		f.left(decision.Admitted, again(d), 0)
		f.left(decision.SoldOut, again(d), 0)
	}},
	{"a crowd of requests for more than the source's total is told so", func(f *fixture) {
		d := request(truthful)
		r := says(f.look(d), 3)
		r.Total = 5
		f.apply(r)
		f.expect(decision.OverCapacity, again(d, withUnits(6)))
		f.expect(decision.SoldOut, again(d, withUnits(5)))
		f.admit(again(d, withUnits(3)))
	}},
	{"a look without a lease neither waits for another's nor keeps others off", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 3)
		f.admit(d)
		leaseless := func(l *store.Look) { l.Lease = 0 }
		for range 2 { // one right after the other
			if r := f.look(d, leaseless); r.Looked.Open != 1 || !r.Looked.Known {
				f.Fatalf("looked %+v", r.Looked)
			}
		}
		holder := f.look(d)
		f.look(d, leaseless)
		if r := f.tryLook(d); r.Looked.Busy == 0 {
			f.Fatalf("a look without a lease has ended another's: %+v", r.Looked)
		}
		f.apply(says(holder, 3))
	}},
	{"blind goes on as where capacity is not known", func(f *fixture) {
		d := request(truthful, blind)
		for range store.LearnedInflight {
			f.left(decision.Admitted, again(d), -1)
		}
		f.expect(decision.NoRoom, again(d))
		got := f.slot(d)
		if got.Capacity != store.Learned || got.Verified || got.LookFailed || !got.CheckedAt.IsZero() || got.Held != store.LearnedInflight {
			f.Fatalf("slot %+v", got)
		}
		f.loads(again(d, func(d *store.Decide) { d.Blind = false }))
	}},
	{"blind goes by counters that are known, however old", func(f *fixture) {
		d := request(truthful, blind)
		f.sync(d, 1)
		f.Advance(hot + moment)
		f.admit(again(d))
		f.expect(decision.SoldOut, again(d))
	}},
	{"no sold out by counters rests on a look older than hot", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 1)
		f.finish(rules.Booked, again(d))
		f.expect(decision.SoldOut, again(d))
		f.Advance(hot - moment)
		f.expect(decision.SoldOut, again(d))
		f.Advance(2 * moment)
		f.loads(d)
		f.sync(d, 0)
		f.expect(decision.SoldOut, again(d))
		f.Advance(hot + moment)
		f.loads(d)
		f.sync(d, 1) // a cancel in the backend's own console
		f.admit(again(d))
	}},
	{"nor by the mark", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 5)
		f.finish(rules.SoldOut, again(d))
		f.Advance(moment)
		inLine := func(d *store.Decide) { d.Line = true }
		f.expect(decision.SoldOut, again(d, inLine))
		f.Advance(hot)
		f.expect(decision.Load, again(d, inLine))
		f.expect(decision.SoldOut, again(d, inLine, blind))
	}},
	{"a look is as old as its beginning", func(f *fixture) {
		d := request(truthful)
		r := f.look(d)
		f.Advance(hot + moment)
		f.apply(says(r, 0))
		f.loads(d)
	}},
	{"an admit may rest on an old look", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 5)
		f.Advance(2 * refresh)
		f.admit(again(d))
	}},
	{"what refuses before the units are counted needs no look", func(f *fixture) {
		d := request(truthful, withSubject("s"))
		f.change(d, store.SlotChange{Closed: ptr(true)})
		f.expect(decision.Closed, again(d))
		f.change(d, store.SlotChange{Closed: ptr(false)})
		f.loads(d)
		c := cancelOf(d)
		got := f.meant(c, "")
		f.expect(decision.SubjectBusy, again(d))
		f.settle(c, got, rules.Refused)
		f.loads(d)
	}},
	{"the limits have been charged when a call is told to load", func(f *fixture) {
		d := request(truthful, withSubject("s"), func(d *store.Decide) { d.SubjectLimit = perMinute(1) })
		f.loads(d)
		f.expect(decision.LimitedSubject, again(d))
		f.expect(decision.Load, again(d, func(d *store.Decide) { d.Charged = true }))
	}},
	{"an operator's number does not go before truth, nor vouches for it", func(f *fixture) {
		d := request(truthful)
		f.change(d, store.SlotChange{Capacity: ptr(int64(9)), Verify: true})
		f.loads(d)
		f.sync(d, 1)
		f.change(d, store.SlotChange{Capacity: ptr(int64(9))})
		f.admit(again(d))
		f.expect(decision.SoldOut, again(d))
		if got := f.slot(d); got.Own || got.Capacity != 1 {
			f.Fatalf("slot %+v", got)
		}
	}},
	{"a look wakes those who watch the slot", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 0)
		r := f.look(d)
		f.wakesSlot(d, func() { f.apply(says(r, 1)) })
	}},
}
