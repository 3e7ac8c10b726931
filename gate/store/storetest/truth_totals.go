package storetest

import (
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// totalling makes the source tell a slot's units in all, which are then counted as
// where capacity is a number.
func totalling(d *store.Decide) {
	truthful(d)
	d.Truth = store.TruthTotal
}

// totalTests are about sources that tell the units in all (means: capacity).
var totalTests = []test{
	{"a total that was never looked at is Load", func(f *fixture) {
		d := request(totalling)
		f.loads(d)
		f.unseen(d)
		for range store.LearnedInflight {
			f.admit(again(d, blind))
		}
		f.expect(decision.NoRoom, again(d, blind))
	}},
	{"a total is counted as a number is", func(f *fixture) {
		d := request(totalling, withSubject("s"))
		if got := f.sync(d, 3); got.Known || got.After != 3 || got.Again {
			f.Fatalf("applied %+v", got)
		}
		f.finish(rules.Booked, d)
		f.left(decision.Admitted, again(d, withSubject("other")), 1)
		if got := f.sync(d, 5); !got.Known || got.Before != 1 || got.After != 3 || got.Again {
			f.Fatalf("applied %+v", got)
		}
		if got := f.slot(d); got.Capacity != 5 || got.Confirmed != 1 || got.Held != 1 || got.Own || !got.Verified || got.Dirty || got.Debt != 0 || got.Outside != 0 {
			f.Fatalf("slot %+v", got)
		}
		f.expect(decision.OverCapacity, again(d, withUnits(6)))
		f.sync(d, 1)
		if got := f.slot(d); got.Capacity != 1 || got.Debt != 1 {
			f.Fatalf("slot %+v", got)
		}
		f.sync(d, 2)
		f.expect(decision.SoldOut, again(d))
		c := cancelOf(d)
		f.settle(c, f.meant(c, d.ID), rules.Done)
		f.left(decision.Admitted, again(d), 0)
	}},
	{"its lapses free their units, and a late booking is told", func(f *fixture) {
		d := request(totalling)
		f.sync(d, 1)
		got := f.admit(d)
		f.expect(decision.SoldOut, again(d))
		f.Advance(holdTTL + moment)
		f.sync(d, 1)
		f.admit(again(d))
		if settled := f.settle(d, got, rules.Booked); !settled.Late || settled.Oversold != 1 {
			f.Fatalf("settled %+v", settled)
		}
	}},
	{"no sold out rests on a total older than hot", func(f *fixture) {
		d := request(totalling)
		f.sync(d, 1)
		f.finish(rules.Booked, again(d))
		f.expect(decision.SoldOut, again(d))
		f.Advance(hot + moment)
		f.loads(d)
		f.expect(decision.SoldOut, again(d, blind))
		f.sync(d, 2)
		f.admit(again(d))
	}},
	{"a total of zero is none left", func(f *fixture) {
		d := request(totalling)
		f.sync(d, 0)
		f.left(decision.SoldOut, again(d), 0)
	}},
	{"an expired pending hold keeps its units until an operator says", func(f *fixture) {
		d := request(totalling)
		f.sync(d, 2)
		f.bookPending(d)
		f.Advance(pendingTTL + moment)
		f.state(d, d.ID, decision.HoldUnknown)
		f.units(d, 0, 1)
	}},
	{"a failed look keeps the total, which then only refuses", func(f *fixture) {
		d := request(totalling)
		f.sync(d, 9)
		f.fail(d)
		for range store.LearnedInflight {
			f.admit(again(d))
		}
		f.expect(decision.NoRoom, again(d))
		f.expect(decision.OverCapacity, again(d, withUnits(10)))
		f.sync(d, 9)
		f.admit(again(d))
	}},
	{"a slot that the source has no more is Load", func(f *fixture) {
		d := request(totalling)
		f.sync(d, 9)
		r := f.look(d)
		r.Missing = true
		f.apply(r)
		f.loads(d)
	}},
	{"a touch leaves the total, which only refuses until it is resumed", func(f *fixture) {
		d := request(totalling)
		f.sync(d, 9)
		f.touch(d, "gate-a")
		for range store.LearnedInflight {
			f.admit(again(d))
		}
		f.expect(decision.NoRoom, again(d))
		f.resume(d, "gate-a")
		f.left(decision.Admitted, again(d), 4)
	}},
}
