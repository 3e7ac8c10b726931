package storetest

import (
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// failureTests are about sources that fail, or do not have the slot.
var failureTests = []test{
	{"a failed look keeps the counters, which then only refuse", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 9)
		if got := f.fail(d); !got.Known || got.Before != 9 || got.After != 9 {
			f.Fatalf("applied %+v", got)
		}
		if got := f.slot(d); !got.LookFailed || got.Capacity != 9 || !got.Verified {
			f.Fatalf("slot %+v", got)
		}
		for range store.LearnedInflight {
			f.admit(again(d))
		}
		f.expect(decision.NoRoom, again(d))
		f.free(d, 5)
		f.expect(decision.SoldOut, again(d, withUnits(6)))
	}},
	{"a sold out by such counters starts a mark, which is probed as where capacity is learned", func(f *fixture) {
		d := request(truthful, withUnits(1), blind)
		f.sync(d, 0)
		f.fail(d)
		f.expect(decision.SoldOut, again(d))
		f.full(d, 1)
		f.Advance(moment)
		for range 2 {
			probe := f.probe(d)
			f.expect(decision.SoldOut, again(d))
			f.settle(probe, f.admit(probe), rules.Booked)
			f.full(d, 1)
		}
		f.free(d, -2)
		f.expect(decision.SoldOut, f.afterSoldOut(d))
	}},
	{"it is Load when the look that failed is older than hot", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 0)
		f.fail(d)
		f.expect(decision.SoldOut, again(d))
		f.Advance(hot + moment)
		f.expect(decision.Load, again(d, func(d *store.Decide) { d.Line = true }))
	}},
	{"a look that finds a value makes the counters count again", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 0)
		f.fail(d)
		f.expect(decision.SoldOut, again(d))
		f.sync(d, 6)
		f.full(d, 0)
		if got := f.slot(d); got.LookFailed {
			f.Fatalf("slot %+v", got)
		}
		for range store.LearnedInflight + 2 {
			f.admit(again(d))
		}
		f.expect(decision.SoldOut, again(d))
	}},
	{"without counters a failed look makes the slot learned for hot", func(f *fixture) {
		for name, prepare := range map[string]func(*store.Decide){
			"never seen": func(*store.Decide) {},
			"resumed":    func(d *store.Decide) { f.sync(d, 1); f.touch(d, "gate-a"); f.resume(d, "gate-a") },
		} {
			d := request(truthful, func(d *store.Decide) { d.Slot = name })
			prepare(d)
			if got := f.fail(d); got.Known || got.Before != 0 || got.After != 0 {
				f.Fatalf("%s: applied %+v", name, got)
			}
			if got := f.slot(d); !got.LookFailed || got.Capacity != store.Learned || got.Verified || got.CheckedAt.IsZero() {
				f.Fatalf("%s: slot %+v", name, got)
			}
			for range store.LearnedInflight {
				f.left(decision.Admitted, again(d), -1)
			}
			f.expect(decision.NoRoom, again(d))
			f.Advance(hot - moment)
			f.admit(again(d))
			f.Advance(2 * moment)
			f.loads(d)
		}
	}},
	{"a slot that the source has not is dropped from its truth, with nothing made", func(f *fixture) {
		d := request(truthful)
		r := f.look(d)
		r.Missing = true
		if got := f.apply(r); got.Known || got.Before != 0 || got.After != 0 || got.Again {
			f.Fatalf("applied %+v", got)
		}
		f.unseen(d)
		f.loads(d)
	}},
	{"a slot that the source has no more keeps its holds and loads again", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 5)
		f.finish(rules.Booked, again(d))
		f.admit(again(d))
		r := f.look(d)
		r.Missing = true
		if got := f.apply(r); got != (store.Applied{Applied: true}) {
			f.Fatalf("applied %+v", got)
		}
		f.units(d, 1, 1)
		if got := f.slot(d); got.Capacity != store.Learned || got.Verified || got.LookFailed || !got.CheckedAt.IsZero() || got.Debt != 0 {
			f.Fatalf("slot %+v", got)
		}
		f.loads(d)
		f.refused(d, says(r, 5))
		f.sync(d, 4)
		f.free(d, 3)
	}},
}

// fail looks at the slot of d, whose source has no value.
func (f *fixture) fail(d *store.Decide) store.Applied {
	f.Helper()
	return f.apply(f.look(d))
}

// afterSoldOut lets the probe of d say that there is nothing, and is another request.
func (f *fixture) afterSoldOut(d *store.Decide) *store.Decide {
	f.Helper()
	probe := f.probe(d)
	f.settle(probe, f.admit(probe), rules.SoldOut)
	return again(d)
}
