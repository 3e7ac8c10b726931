package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// dueLease is how long a slot that was taken is left to who took it.
const dueLease = 30 * time.Second

// dueTests are about when slots are looked at.
var dueTests = []test{
	{"nothing is due where nothing has moved", func(f *fixture) {
		d := request(truthful)
		f.due(d, -1)
		f.loads(d)
		f.due(d, -1)
		f.sync(d, 5)
		f.due(d, -1)
		f.expect(decision.SoldOut, again(d, withUnits(6)))
		f.due(d, -1)
	}},
	{"a slot is due hot after it has begun to move", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 5)
		f.finish(rules.Booked, again(d))
		f.due(d, hot)
		f.Advance(hot - 2*moment)
		f.finish(rules.Booked, again(d))
		f.due(d, 2*moment)
		f.Advance(3 * moment)
		f.due(d, dueLease, d.Slot)
	}},
	{"a slot that was taken is due again after the lease, if it is never applied", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 5)
		f.admit(again(d))
		f.Advance(hot + moment)
		f.due(d, dueLease, d.Slot)
		f.Advance(dueLease - moment)
		f.due(d, moment)
		f.Advance(2 * moment)
		f.due(d, dueLease, d.Slot)
	}},
	{"after a look it is due hot where holds were open, refresh where it only moved lately", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 5)
		got := f.admit(d)
		f.Advance(hot + moment)
		f.due(d, dueLease, d.Slot)
		f.sync(d, 5)
		f.dueWithin(d, holdTTL-hot-2*moment, hot) // when the hold lapses, or hot
		f.settle(d, got, rules.Booked)
		f.Advance(hot + moment)
		f.due(d, dueLease, d.Slot)
		f.sync(d, 4)
		f.due(d, refresh)
		f.Advance(refresh + moment)
		f.due(d, dueLease, d.Slot)
	}},
	{"a look that saw movement is followed by another after hot", func(f *fixture) {
		d := request(truthful, withSubject("s"))
		f.sync(d, 5)
		f.finish(rules.Booked, d)
		r := f.look(d)
		c := cancelOf(d)
		f.settle(c, f.meant(c, d.ID), rules.Done)
		if got := f.apply(says(r, 4)); got.Again {
			f.Fatalf("applied %+v", got)
		}
		f.due(d, hot)
	}},
	{"a slot that has not moved for an hour, or ten refresh, is not due any more", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 5)
		f.finish(rules.Booked, d)
		f.Advance(time.Hour + 10*time.Minute)
		f.due(d, dueLease, d.Slot)
		f.sync(d, 4)
		f.due(d, refresh) // ten times refresh is more than an hour
		f.Advance(10 * refresh)
		f.due(d, dueLease, d.Slot)
		f.sync(d, 4)
		f.due(d, -1)
		f.admit(again(d))
		f.dueWithin(d, 0, hot)
	}},
	{"a settlement that asks for a look gets one at once", func(f *fixture) {
		d := request(truthful, withSubject("s"))
		for name, ask := range map[string]func(d *store.Decide){
			"cancel without a hold": func(d *store.Decide) {
				c := cancelOf(d, withSubject("nobody"))
				f.settle(c, f.meant(c, ""), rules.Done)
			},
			"unknown cancel": func(d *store.Decide) {
				c := cancelOf(d)
				f.settle(c, f.meant(c, d.ID), rules.Unknown)
			},
			"late cancel": func(d *store.Decide) {
				c := cancelOf(d)
				got := f.meant(c, d.ID)
				f.Advance(lease + moment)
				f.settle(c, got, rules.Done)
			},
		} {
			d := again(d, func(d *store.Decide) { d.Slot = name })
			f.sync(d, 5)
			f.finish(rules.Booked, d)
			f.due(d, hot)
			ask(d)
			f.due(d, dueLease, d.Slot)
			f.sync(d, 5)
			f.Advance(refresh - moment)
			for _, slot := range f.take(d, 9) {
				f.sync(again(d, func(d *store.Decide) { d.Slot = slot }), 5)
			}
			f.Advance(10 * refresh)
			for _, slot := range f.take(d, 9) {
				f.sync(again(d, func(d *store.Decide) { d.Slot = slot }), 5)
			}
			f.due(d, -1)
		}
	}},
	{"also when it comes during a look, which may not have seen what it is about", func(f *fixture) {
		d := request(truthful, withSubject("s"))
		f.sync(d, 5)
		r := f.look(d)
		c := cancelOf(d)
		f.settle(c, f.meant(c, ""), rules.Done)
		f.apply(says(r, 5))
		f.due(d, dueLease, d.Slot)
	}},
	{"a decide that finds the look older than refresh makes the slot due at once", func(f *fixture) {
		d := request(truthful, func(d *store.Decide) { d.OnePerSubject = true }, withSubject("s"))
		f.sync(d, 5)
		f.finish(rules.Booked, d)
		f.Advance(hot + moment)
		f.due(d, dueLease, d.Slot)
		f.sync(d, 4)
		f.Advance(11 * refresh)
		f.due(d, dueLease, d.Slot)
		f.sync(d, 4)
		f.due(d, -1)
		f.Advance(refresh - moment)
		f.expect(decision.SubjectHolds, again(d))
		f.due(d, -1)
		f.Advance(2 * moment)
		f.expect(decision.SubjectHolds, again(d))
		f.due(d, dueLease, d.Slot)
	}},
	{"a slot is due when its pending hold expires", func(f *fixture) {
		d := request(truthful, withSubject("s"), func(d *store.Decide) { d.Refresh = 2 * pendingTTL })
		slowly := func() { // a look that would be followed by another long after
			r := says(f.look(d), 4)
			r.Refresh = 2 * pendingTTL
			f.apply(r)
		}
		f.sync(d, 5)
		f.bookPending(d)
		f.Advance(hot + moment)
		f.due(d, dueLease, d.Slot)
		slowly()
		f.due(d, pendingTTL-hot-moment)
		f.Advance(pendingTTL - hot)
		f.due(d, dueLease, d.Slot)
		slowly()
		f.units(d, 0, 0)
	}},
	{"and also when it expires sooner than hot", func(f *fixture) {
		const soon = hot / 2
		d := request(truthful, withSubject("s"))
		f.sync(d, 5)
		s := settlement(d, f.admit(d), rules.Booked)
		s.PendingTTL = soon
		f.report(s)
		f.due(d, soon)
		f.Advance(soon + moment)
		f.due(d, dueLease, d.Slot)
	}},
	{"the soonest come first, no more than were asked for, of one pool", func(f *fixture) {
		at := func(slot string) *store.Decide { return request(truthful, func(d *store.Decide) { d.Slot = slot }) }
		for _, slot := range []string{"c", "a", "b"} {
			f.sync(at(slot), 5)
			f.finish(rules.Booked, at(slot))
			f.Advance(moment)
		}
		f.Advance(moment)
		elsewhere := request(truthful, func(d *store.Decide) { d.Pool = "seats" })
		f.sync(elsewhere, 5)
		f.finish(rules.Booked, elsewhere)
		f.Advance(hot - moment)
		d := at("a")
		slots, next, err := f.truth().Due(context.Background(), d.Pool, 2, dueLease)
		if err != nil || !slices.Equal(slots, []string{"c", "a"}) || next != 0 {
			f.Fatalf("due %v, next %v, %v", slots, next, err)
		}
		f.due(d, dueLease, "b")
		f.due(elsewhere, moment)
		f.Advance(2 * moment)
		f.due(elsewhere, dueLease, elsewhere.Slot)
	}},
	{"a slot whose capacity is a number is never due", func(f *fixture) {
		d := request()
		f.finish(rules.Booked, again(d))
		f.admit(again(d))
		f.Advance(holdTTL + moment)
		f.units(d, 1, 0)
		f.due(d, -1)
	}},
	{"one with a total is", func(f *fixture) {
		d := request(totalling)
		f.sync(d, 5)
		f.finish(rules.Booked, again(d))
		f.due(d, hot)
		f.Advance(hot + moment)
		f.due(d, dueLease, d.Slot)
		f.sync(d, 5)
		f.due(d, refresh)
	}},
	{"a slot that the source has not is not due", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 5)
		f.admit(again(d))
		r := f.look(d)
		r.Missing = true
		f.apply(r)
		f.due(d, -1)
	}},
	{"slots of odd names are due by their names", func(f *fixture) {
		want := map[string]bool{}
		for _, text := range oddTexts {
			d := request(truthful, func(d *store.Decide) { d.Slot = text })
			f.sync(d, 5)
			f.finish(rules.Booked, d)
			want[text] = true
		}
		f.Advance(hot + moment)
		for _, text := range f.take(request(truthful), 999) {
			if !want[text] {
				f.Fatalf("slot %q is due", text)
			}
			delete(want, text)
		}
		if len(want) > 0 {
			f.Fatalf("slots %v are not due", want)
		}
	}},
}

// take takes slots that are due in the pool of d.
func (f *fixture) take(d *store.Decide, most int) []string {
	f.Helper()
	slots, _, err := f.truth().Due(context.Background(), d.Pool, most, dueLease)
	if err != nil {
		f.Fatalf("due: %v", err)
	}
	return slots
}

// due fails unless exactly these slots of the pool of d are due, and another in
// next; -1 is none.
func (f *fixture) due(d *store.Decide, next time.Duration, want ...string) {
	f.Helper()
	slots, got, err := f.truth().Due(context.Background(), d.Pool, 9, dueLease)
	if err != nil || !slices.Equal(slots, want) {
		f.Fatalf("due %q, %v; want %q", slots, err, want)
	}
	if next < 0 || got < 0 {
		if next != got {
			f.Fatalf("the next is due in %v, want %v", got, next)
		}
		return
	}
	f.between("the time until the next is due", got, next-moment, next+time.Second)
}

// dueWithin fails if a slot of the pool of d is due now, or none within [low, high].
func (f *fixture) dueWithin(d *store.Decide, low, high time.Duration) {
	f.Helper()
	slots, got, err := f.truth().Due(context.Background(), d.Pool, 9, dueLease)
	if err != nil || len(slots) > 0 {
		f.Fatalf("due %q, %v; want none", slots, err)
	}
	f.between("the time until the next is due", got, low, high)
}
