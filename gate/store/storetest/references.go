package storetest

import (
	"context"
	"errors"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// referenceTests are about finding holds by the booking's id in the backend's answer.
var referenceTests = []test{
	{"a booked hold is found by its reference in its pool, and shows it", func(f *fixture) {
		d := request(withSubject("s"))
		f.book(d, "booking-1")
		f.found("booking-1", d)
		f.lost(pool, "booking-2")
		f.lost(pool, "")
		f.lost("seats", "booking-1")
		if h := f.state(d, d.ID, decision.Confirmed); h.Reference != "booking-1" {
			f.Fatalf("hold %+v", h)
		}
		elsewhere := request(func(d *store.Decide) { d.Pool, d.Slot = "seats", "seat-1" })
		f.book(elsewhere, "booking-1")
		f.found("booking-1", elsewhere)
		f.found("booking-1", d)
	}},
	{"only a booking has one", func(f *fixture) {
		for _, outcome := range []rules.Outcome{rules.Refused, rules.SoldOut, rules.Busy, rules.NeverSent, rules.Unknown} {
			d := request(withCapacity(99), func(d *store.Decide) { d.Slot = outcome.String() })
			s := settlement(d, f.admit(d), outcome)
			s.Reference = outcome.String()
			f.report(s)
			f.lost(pool, outcome.String())
		}
	}},
	{"a duplicate's, a late, an unseen and a pending booking's are found too", func(f *fixture) {
		duplicate := request(withCapacity(9))
		s := settlement(duplicate, f.admit(duplicate), rules.Duplicate)
		s.Reference = "duplicate"
		f.report(s)
		f.found("duplicate", duplicate)
		late := request(withCapacity(9))
		s = settlement(late, f.admit(late), rules.Booked)
		s.Reference = "late"
		f.Advance(holdTTL + moment)
		f.units(late, 1, 0)
		f.report(s)
		f.found("late", late)
		unseen := request(withCapacity(9))
		s = settlement(unseen, grantOf(unseen), rules.Booked)
		s.Reference = "unseen"
		f.bookUnseen(s, decision.Confirmed)
		f.found("unseen", unseen)
		pending := request(withCapacity(9))
		s = pendingSettlement(pending, f.admit(pending), rules.Booked)
		s.Reference = "pending"
		f.report(s)
		f.found("pending", pending)
		f.Advance(pendingTTL + moment)
		f.units(pending, 3, 1)
		f.found("pending", pending) // unknown by now, and still there
	}},
	{"it goes with its hold: cancelled, released or lapsed", func(f *fixture) {
		cancelled, released := request(withSubject("s"), withCapacity(9)), request(withCapacity(9))
		f.book(cancelled, "cancelled")
		f.book(released, "released")
		c := cancelOf(cancelled)
		f.settle(c, f.meant(c, cancelled.ID), rules.Done)
		f.release(released, released.ID, decision.Confirmed)
		f.lost(pool, "cancelled")
		f.lost(pool, "released")
		lapsed := request(truthful, withSubject("s"), func(d *store.Decide) { d.Slot = "lesson-2" })
		f.sync(lapsed, 5)
		s := pendingSettlement(lapsed, f.admit(lapsed), rules.Booked)
		s.Reference = "lapsed"
		f.report(s)
		f.found("lapsed", lapsed)
		f.Advance(pendingTTL + moment)
		f.units(lapsed, 0, 0)
		f.lost(pool, "lapsed")
	}},
	{"it comes back with its hold", func(f *fixture) {
		d := request(withSubject("s"), withKey("k"), retrying)
		first := f.admit(d)
		f.settle(d, first, rules.Unknown)
		retry := again(d)
		s := settlement(retry, f.admit(retry), rules.Booked)
		s.Reference = "booking-1"
		f.report(s)
		f.release(d, d.ID, decision.Confirmed)
		f.lost(pool, "booking-1")
		f.settle(d, first, rules.Booked)
		f.found("booking-1", d)
	}},
	{"of two holds with one reference the later counts, and keeps it when the first goes", func(f *fixture) {
		first, second := request(withCapacity(9)), request(withCapacity(9), func(d *store.Decide) { d.Slot = "lesson-2" })
		f.book(first, "booking-1")
		f.book(second, "booking-1")
		f.found("booking-1", second)
		f.release(first, first.ID, decision.Confirmed)
		f.found("booking-1", second)
	}},
	{"a later reference of a hold takes the earlier one's place", func(f *fixture) {
		d := request(withSubject("s"), withKey("k"), retrying)
		first := f.admit(d)
		f.settle(d, first, rules.Unknown)
		retry := again(d)
		s := settlement(retry, f.admit(retry), rules.Booked)
		s.Reference = "booking-1"
		f.report(s)
		s = settlement(d, first, rules.Booked)
		s.Reference = "booking-2"
		f.report(s)
		f.found("booking-2", d)
		f.lost(pool, "booking-1")
	}},
	{"odd references stay apart", func(f *fixture) {
		ids := map[string]*store.Decide{}
		for _, text := range oddTexts {
			ids[text] = request(withCapacity(999))
			f.book(ids[text], text)
		}
		for text, d := range ids {
			f.found(text, d)
		}
	}},
}

// found fails unless the reference stands for the hold that d took.
func (f *fixture) found(reference string, d *store.Decide) {
	f.Helper()
	slot, hold, err := f.truth().Find(context.Background(), d.Pool, reference)
	if err != nil || slot != d.Slot || hold != d.ID {
		f.Fatalf("reference %q stands for %q in %q, %v; want %s in %q", reference, hold, slot, err, d.ID, d.Slot)
	}
}

func (f *fixture) lost(pool, reference string) {
	f.Helper()
	if slot, hold, err := f.truth().Find(context.Background(), pool, reference); !errors.Is(err, store.ErrNoHold) {
		f.Fatalf("reference %q stands for %q in %q, %v; want none", reference, hold, slot, err)
	}
}
