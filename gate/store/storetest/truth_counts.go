package storetest

import (
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// countTests are about what moves the units available between two looks.
var countTests = []test{
	{"a look raises and lowers them, and tells by how much", func(f *fixture) {
		d := request(truthful)
		if got := f.sync(d, 3); got.Known || got.Before != 0 || got.After != 3 || got.Again {
			f.Fatalf("applied %+v", got)
		}
		f.free(d, 3)
		for _, step := range [][2]int64{{3, 5}, {5, 1}, {1, 1}, {1, -2}, {-2, 0}, {0, 4}} {
			if got := f.sync(d, step[1]); !got.Known || got.Before != step[0] || got.After != step[1] || got.Again {
				f.Fatalf("applied %+v, want %d to %d", got, step[0], step[1])
			}
			f.free(d, step[1])
		}
	}},
	{"a debt is nothing left", func(f *fixture) {
		d := request(truthful)
		f.sync(d, -2)
		f.left(decision.SoldOut, again(d), 0)
		if got := f.slot(d); got.Debt != 2 || got.Capacity != 0 || !got.Verified {
			f.Fatalf("slot %+v", got)
		}
	}},
	{"a definite failure frees its units at once, whatever it was", func(f *fixture) {
		for _, outcome := range []rules.Outcome{rules.Refused, rules.Busy, rules.NeverSent} {
			d := request(truthful, withUnits(2), func(d *store.Decide) { d.Slot = outcome.String() })
			f.sync(d, 3)
			f.finish(outcome, d)
			f.free(d, 3)
		}
		d := request(truthful)
		f.sync(d, 1)
		f.finish(rules.SoldOut, d)
		f.free(d, 1)
	}},
	{"a booking keeps what its admit took, and so does an unknown outcome", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 5)
		f.finish(rules.Booked, again(d))
		unknown := again(d)
		f.settle(unknown, f.admit(unknown), rules.Unknown)
		f.finish(rules.Duplicate, again(d))
		f.free(d, 2)
		if got := f.slot(d); got.Capacity != 5 || got.Confirmed != 2 || got.Held != 1 {
			f.Fatalf("slot %+v", got)
		}
	}},
	{"H1: a duplicate that is released gives back what its admit took", func(f *fixture) {
		d := request(truthful, withSubject("s"))
		f.sync(d, 5)
		f.finish(rules.Booked, d)
		f.finish(rules.Duplicate, again(d))
		f.free(d, 4)
		f.units(d, 1, 0)
	}},
	{"H5: a lapse frees nothing, the next look does", func(f *fixture) {
		d := request(truthful, blind)
		f.sync(d, 1)
		f.admit(d)
		f.Advance(holdTTL + moment)
		f.units(d, 0, 0)
		f.free(d, 0)
		f.expect(decision.SoldOut, again(d))
		f.sync(d, 1)
		f.admit(again(d))
	}},
	{"H5: a booking that comes after its hold lapsed moves nothing", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 2)
		got := f.admit(d)
		f.Advance(holdTTL + moment)
		f.sync(d, 1) // the booking is in truth
		if settled := f.settle(d, got, rules.Booked); settled.Hold != decision.Confirmed || !settled.Late || settled.Oversold != 0 {
			f.Fatalf("settled %+v", settled)
		}
		f.units(d, 1, 0)
		f.free(d, 1)
		f.sync(d, 1)
		f.free(d, 1)
	}},
	{"H5: a refusal that comes after its hold lapsed moves nothing", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 2)
		got := f.admit(d)
		f.Advance(holdTTL + moment)
		f.sync(d, 2)
		f.settle(d, got, rules.Refused)
		f.free(d, 2)
	}},
	{"an operator's release moves nothing, of an open hold or a confirmed one", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 5)
		f.finish(rules.Booked, d)
		open := again(d)
		got := f.admit(open)
		f.release(d, d.ID, decision.Confirmed)
		f.release(d, open.ID, decision.Held)
		f.units(d, 0, 0)
		f.free(d, 3)
		f.settle(open, got, rules.Booked)
		f.free(d, 3)
	}},
	{"a booking whose hold was never seen takes its units, and tells by how much too many", func(f *fixture) {
		d := request(truthful, withUnits(2))
		f.sync(d, 3)
		for _, want := range []int64{0, 1, 2} {
			r := again(d)
			if settled := f.settle(r, grantOf(r), rules.Booked); settled.Oversold != want {
				f.Fatalf("settled %+v, want %d oversold", settled, want)
			}
		}
		f.free(d, -3)
	}},
	{"a forced request takes its units, one that was gone again", func(f *fixture) {
		d := request(truthful, withKey("k"), retrying)
		f.sync(d, 3)
		f.touch(d, "gate-a", force(d))
		f.free(d, 2)
		f.touch(d, "gate-a", force(d))
		f.free(d, 2)
		f.settle(d, grantOf(d), rules.Refused)
		f.free(d, 3)
		f.touch(d, "gate-a", forceUnder(d.ID, again(d)))
		f.free(d, 2)
		f.units(d, 0, 1)
	}},
	{"a cancel that is done frees its units at once", func(f *fixture) {
		d := request(truthful, withSubject("s"), withUnits(2))
		f.sync(d, 2)
		f.finish(rules.Booked, d)
		c := cancelOf(d)
		if settled := f.settle(c, f.meant(c, d.ID), rules.Done); settled.Look {
			f.Fatalf("settled %+v", settled)
		}
		f.free(d, 2)
	}},
	{"a cancel that is settled after its lease frees its hold and moves no units", func(f *fixture) {
		d := request(truthful, withSubject("s"))
		f.sync(d, 2)
		f.finish(rules.Booked, d)
		c := cancelOf(d)
		got := f.meant(c, d.ID)
		f.Advance(lease + moment)
		if settled := f.settle(c, got, rules.Done); !settled.Look || settled.Hold != decision.Released {
			f.Fatalf("settled %+v, want a look", settled)
		}
		f.units(d, 0, 0)
		f.free(d, 1)
		f.sync(d, 2)
		f.free(d, 2)
	}},
	{"so does one whose decide is not remembered", func(f *fixture) {
		d := request(truthful, withSubject("s"))
		f.sync(d, 2)
		f.finish(rules.Booked, d)
		if settled := f.settle(cancelOf(d), grantOf(d), rules.Done); !settled.Look || settled.Hold != decision.Released {
			f.Fatalf("settled %+v, want a look", settled)
		}
		f.free(d, 1)
	}},
	{"so does one of a hold that an earlier cancel left without an answer", func(f *fixture) {
		for name, leave := range map[string]func(c *store.Decide, got store.Decided){
			"unknown":        func(c *store.Decide, got store.Decided) { f.settle(c, got, rules.Unknown) },
			"past its lease": func(*store.Decide, store.Decided) { f.Advance(lease + moment) },
		} {
			d := request(truthful, withSubject("s"), func(d *store.Decide) { d.Slot = name })
			f.sync(d, 1)
			f.finish(rules.Booked, d)
			c := cancelOf(d)
			leave(c, f.meant(c, d.ID))
			f.sync(d, 1) // it was done
			f.free(d, 1)
			retry := cancelOf(d)
			if settled := f.settle(retry, f.meant(retry, d.ID), rules.Done); !settled.Look || settled.Hold != decision.Released {
				f.Fatalf("%s: settled %+v, want a look", name, settled)
			}
			f.free(d, 1)
			f.admit(again(d, withSubject("other")))
			f.expect(decision.SoldOut, again(d, withSubject("third")))
		}
	}},
	{"H8: a cancel that leaves its hold unknown moves no units", func(f *fixture) {
		d := request(truthful, withSubject("s"), withKey("k"), retrying)
		f.sync(d, 2)
		first := f.cancelInDoubt(d)
		f.free(d, 1)
		f.settle(d, first, rules.Refused)
		f.units(d, 0, 1)
		f.free(d, 1)
		f.Advance(holdTTL + moment)
		f.units(d, 0, 0)
		f.free(d, 1)
		f.sync(d, 2)
		f.free(d, 2)
	}},
	{"H8: its units are given out once, though a look had counted them free", func(f *fixture) {
		d := request(truthful, withSubject("s"), withKey("k"), retrying, onePerSubject)
		f.sync(d, 1)
		f.settle(d, f.admit(d), rules.Unknown)
		f.Advance(holdTTL - moment)
		retry := again(d, withKey("second"))
		f.settle(retry, f.admit(retry), rules.Booked)
		c := cancelOf(d)
		got := f.meant(c, d.ID)
		f.Advance(lease + moment) // the look below does not take account of it
		r := f.look(d)
		f.settle(c, got, rules.Done)
		f.apply(says(r, 1))
		f.expect(decision.OutcomeUnknown, again(d))
		f.expect(decision.OutcomeUnknown, again(d, withKey("third")))
	}},
	{"H8: a booking of it that is cancelled again frees its hold and moves no units", func(f *fixture) {
		d := request(truthful, withSubject("s"), withKey("k"), retrying)
		f.sync(d, 1)
		f.settle(d, f.cancelInDoubt(d), rules.Booked) // before the cancel, or after
		f.units(d, 1, 0)
		f.sync(d, 1) // before
		f.free(d, 1)
		c := cancelOf(d)
		if settled := f.settle(c, f.meant(c, d.ID), rules.Done); settled.Hold != decision.Released || !settled.Look {
			f.Fatalf("settled %+v, want a look", settled)
		}
		f.units(d, 0, 0)
		f.free(d, 1)
	}},
	{"an expired pending hold lapses and moves nothing", func(f *fixture) {
		for name, change := range map[string]func(*store.Decide){"lapsing": func(*store.Decide) {}, "keeping": keepUnknown} {
			d := request(truthful, withSubject("s"), change, func(d *store.Decide) { d.Slot = name })
			f.sync(d, 2)
			f.bookPending(d)
			f.units(d, 0, 1)
			f.free(d, 1)
			f.Advance(pendingTTL + moment)
			f.units(d, 0, 0)
			f.state(d, d.ID, decision.NoHold)
			f.free(d, 1)
			f.sync(d, 2)
			f.free(d, 2)
		}
	}},
	{"a confirm whose hold expired meanwhile confirms and moves nothing", func(f *fixture) {
		d := request(truthful, withSubject("s"))
		f.sync(d, 2)
		f.bookPending(d)
		f.Advance(pendingTTL - moment)
		c := confirmOf(d)
		got := f.meant(c, d.ID)
		f.Advance(2 * moment)
		f.units(d, 0, 0)
		if settled := f.settle(c, got, rules.Done); settled.Hold != decision.Confirmed || !settled.Late || settled.Oversold != 0 {
			f.Fatalf("settled %+v", settled)
		}
		f.units(d, 1, 0)
		f.free(d, 1)
	}},
	{"a confirm in time moves nothing either", func(f *fixture) {
		d := request(truthful, withSubject("s"))
		f.sync(d, 2)
		f.bookPending(d)
		c := confirmOf(d)
		f.settle(c, f.meant(c, d.ID), rules.Done)
		f.units(d, 1, 0)
		f.free(d, 1)
	}},
}
