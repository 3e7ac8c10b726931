package storetest

import (
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// arithmeticTests are about what a look makes of what it reads (design section 5).
// Each R is what the backend of its story would say.
var arithmeticTests = []test{
	{"an open hold may be booked yet: its units are not left", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 3)
		held, unknown := again(d), again(d)
		got := f.admit(held)
		f.settle(unknown, f.admit(unknown), rules.Unknown)
		if applied := f.sync(d, 3); applied.After != 1 || !applied.Again {
			f.Fatalf("applied %+v", applied)
		}
		// Both are booked at the backend by now: short, until they are settled.
		if applied := f.sync(d, 1); applied.After != -1 || !applied.Again {
			f.Fatalf("applied %+v", applied)
		}
		f.settle(held, got, rules.Booked)
		f.settle(unknown, grantOf(unknown), rules.Booked)
		if applied := f.sync(d, 1); applied.After != 1 || applied.Again {
			f.Fatalf("applied %+v", applied)
		}
	}},
	{"a hold that is settled between a look and its read counts once", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 3)
		got := f.admit(d)
		r := f.look(d)
		f.settle(d, got, rules.Booked)
		f.apply(says(r, 2))
		f.free(d, 1) // short by it
		f.sync(d, 2)
		f.free(d, 2)
	}},
	{"lag: a booking younger than it may not be in truth yet", func(f *fixture) {
		for name, book := range map[string]func(*store.Decide){
			"confirmed": func(d *store.Decide) { f.finish(rules.Booked, d) },
			"pending":   f.bookPending,
		} {
			d := request(truthful, func(d *store.Decide) { d.Slot = name })
			f.sync(d, 3)
			book(d)
			lagging := func(l *store.Look) { l.Lag = time.Minute }
			if applied := f.apply(says(f.look(d, lagging), 3)); applied.After != 2 || !applied.Again {
				f.Fatalf("%s: applied %+v", name, applied)
			}
			f.Advance(time.Minute - moment)
			f.apply(says(f.look(d, lagging), 3))
			f.free(d, 2)
			f.Advance(2 * moment)
			if applied := f.apply(says(f.look(d, lagging), 2)); applied.After != 2 || applied.Again {
				f.Fatalf("%s: applied %+v", name, applied)
			}
		}
	}},
	{"lag counts from the booking, not from its confirm", func(f *fixture) {
		d := request(truthful, withSubject("s"))
		f.sync(d, 3)
		f.bookPending(d)
		f.Advance(2 * time.Minute)
		c := confirmOf(d)
		f.settle(c, f.meant(c, d.ID), rules.Done)
		lagging := func(l *store.Look) { l.Lag = time.Minute }
		if applied := f.apply(says(f.look(d, lagging), 2)); applied.After != 2 || applied.Again {
			f.Fatalf("applied %+v", applied)
		}
	}},
	{"a look drops an unknown hold that is past its time, as a lapse", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 3)
		f.settle(d, f.admit(d), rules.Unknown)
		f.Advance(holdTTL - moment)
		f.sync(d, 3)
		f.free(d, 2)
		f.Advance(2 * moment)
		if applied := f.sync(d, 3); applied.After != 3 || applied.Again {
			f.Fatalf("applied %+v", applied)
		}
	}},
	{"unless it is kept", func(f *fixture) {
		d := request(truthful, keepUnknown)
		f.sync(d, 3)
		f.settle(d, f.admit(d), rules.Unknown)
		f.Advance(holdTTL + moment)
		f.sync(d, 3)
		f.free(d, 2)
		f.units(d, 0, 1)
	}},
	{"what is refunded during the read is given back", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 3)
		got := f.admit(d)
		r := f.look(d)
		f.settle(d, got, rules.Refused)
		f.apply(says(r, 3))
		f.free(d, 3)
	}},
	{"what lapses during the read is not", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 3)
		f.admit(d)
		f.Advance(holdTTL - moment)
		r := f.look(d)
		f.Advance(2 * moment)
		f.units(d, 0, 0)
		f.apply(says(r, 3))
		f.free(d, 2)
	}},
	{"H13: a cancel that is at the backend may be in truth already", func(f *fixture) {
		d := request(truthful, withSubject("s"))
		f.sync(d, 1)
		f.finish(rules.Booked, d)
		c := cancelOf(d)
		got := f.meant(c, d.ID)
		r := f.look(d)
		f.apply(says(r, 1)) // cancelled at the backend
		f.free(d, 0)
		f.expect(decision.SoldOut, again(d, withSubject("other")))
		f.settle(c, got, rules.Done)
		f.free(d, 1)
		f.admit(again(d))
		f.expect(decision.SoldOut, again(d, withSubject("other")))
	}},
	{"H13: of a pending hold too, and by each hold once", func(f *fixture) {
		d := request(truthful, withSubject("s"), withUnits(2))
		f.sync(d, 8)
		f.bookPending(d)
		f.finish(rules.Booked, again(d, withSubject("other")))
		var cancels []*store.Decide
		for range 3 {
			c := cancelOf(d)
			f.meant(c, d.ID)
			cancels = append(cancels, c)
		}
		f.sync(d, 6) // cancelled at the backend
		f.free(d, 4)
		for _, c := range cancels {
			f.settle(c, grantOf(d), rules.Done)
			f.free(d, 6)
		}
	}},
	{"H13: a cancel that was refused stands in the way of the next look no more", func(f *fixture) {
		d := request(truthful, withSubject("s"))
		f.sync(d, 3)
		f.finish(rules.Booked, d)
		c := cancelOf(d)
		got := f.meant(c, d.ID)
		f.sync(d, 2)
		f.free(d, 1)
		f.settle(c, got, rules.Refused)
		f.free(d, 1)
		f.sync(d, 2)
		f.free(d, 2)
	}},
	{"H13: nor one whose lease is over, which then moves nothing", func(f *fixture) {
		d := request(truthful, withSubject("s"))
		f.sync(d, 1)
		f.finish(rules.Booked, d)
		c := cancelOf(d)
		got := f.meant(c, d.ID)
		f.Advance(lease + moment)
		f.sync(d, 1)
		f.free(d, 1)
		f.settle(c, got, rules.Done)
		f.free(d, 1)
	}},
	{"H13: a confirm that is at the backend changes nothing there", func(f *fixture) {
		d := request(truthful, withSubject("s"))
		f.sync(d, 3)
		f.bookPending(d)
		f.meant(confirmOf(d), d.ID)
		f.sync(d, 2)
		f.free(d, 2)
	}},
	{"H14: a debt is not forgotten", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 2)
		first, second := again(d), again(d)
		got := f.admit(first)
		f.admit(second)
		f.sync(d, 1) // booked behind our back: two are open, one is left
		f.free(d, -1)
		f.settle(first, got, rules.Refused)
		f.free(d, 0)
		f.expect(decision.SoldOut, again(d))
	}},
	{"H15: what is admitted during the read is not left", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 2)
		r := f.look(d)
		f.admit(again(d))
		if applied := f.apply(says(r, 1)); applied.After != 0 || !applied.Again { // booked behind our back
			f.Fatalf("applied %+v", applied)
		}
		f.expect(decision.SoldOut, again(d))
	}},
	{"H15: and so is a booking that was never seen", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 3)
		r := f.look(d)
		f.settle(d, grantOf(d), rules.Booked)
		f.apply(says(r, 3))
		f.free(d, 2)
	}},
	{"H8: a hold that a cancel leaves unknown during the read may be booked again", func(f *fixture) {
		d := request(truthful, withSubject("s"), withKey("k"), retrying)
		f.sync(d, 1)
		f.settle(d, f.admit(d), rules.Unknown) // still at the backend
		retry := again(d)
		f.settle(retry, f.admit(retry), rules.Booked)
		r := f.look(d)
		c := cancelOf(d)
		f.settle(c, f.meant(c, d.ID), rules.Done)
		f.apply(says(r, 1)) // cancelled at the backend
		f.free(d, 0)
		f.expect(decision.SoldOut, again(d, withSubject("other"), withKey("")))
		f.sync(d, 1)
		f.free(d, 0) // its attempt may still be booked
		f.Advance(holdTTL + moment)
		f.sync(d, 1)
		f.free(d, 1)
	}},
	{"H8: a booking with an attempt unanswered may be cancelled behind our back, and booked again", func(f *fixture) {
		d := request(truthful, withSubject("s"), withKey("k"), retrying)
		f.sync(d, 2)
		first := f.admit(d)
		f.settle(d, first, rules.Unknown) // still at the backend
		retry := again(d)
		f.settle(retry, f.admit(retry), rules.Booked)
		if applied := f.sync(d, 2); applied.After != 1 || !applied.Again { // cancelled behind our back
			f.Fatalf("applied %+v", applied)
		}
		f.Advance(holdTTL - moment)
		f.sync(d, 2)
		f.free(d, 1)
		f.Advance(2 * moment) // if ever, it has been booked by now
		f.sync(d, 2)
		f.free(d, 2)

		answered := again(d, withKey("another"))
		got := f.admit(answered)
		f.settle(answered, got, rules.Unknown)
		retry = again(answered)
		f.settle(retry, f.admit(retry), rules.Booked)
		f.settle(answered, got, rules.Refused)
		if applied := f.sync(d, 1); applied.After != 1 || applied.Again {
			f.Fatalf("applied %+v", applied)
		}
	}},
	{"an apply that finds units ends a mark that stood at its look", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 5)
		f.finish(rules.SoldOut, again(d))
		f.full(d, 1)
		f.sync(d, 0)
		f.full(d, 1)
		f.sync(d, 2)
		f.full(d, 0)
		f.admit(again(d))
	}},
	{"unless they are fewer than it is for, or it was made since", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 5)
		f.finish(rules.SoldOut, again(d, withUnits(3)))
		f.sync(d, 2)
		f.full(d, 3)
		f.sync(d, 3)
		f.full(d, 0)
		r := f.look(d)
		f.finish(rules.SoldOut, again(d))
		f.apply(says(r, 5))
		f.full(d, 1)
	}},
	{"H12: a sold_out that was decided before a look ended the mark is no news", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 5)
		late := again(d)
		got := f.admit(late)
		f.finish(rules.SoldOut, again(d))
		f.sync(d, 5)
		f.full(d, 0)
		f.settle(late, got, rules.SoldOut)
		f.full(d, 0)
	}},
}
