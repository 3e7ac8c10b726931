package storetest

import (
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// cancelTests are about cancels of bookings (design 3.5).
var cancelTests = []test{
	{"a cancel by its target frees the hold once it is done", func(f *fixture) {
		d := request(withSubject("s"))
		f.finish(rules.Booked, d)
		c := cancelOf(d, targeting(d.ID))
		got := f.meant(c, d.ID)
		f.units(d, 1, 0)
		if settled := f.settle(c, got, rules.Done); settled.Hold != decision.Released || settled.Look || settled.Late {
			f.Fatalf("settled %+v", settled)
		}
		f.units(d, 0, 0)
		f.state(d, d.ID, decision.NoHold)
	}},
	{"a cancel by slot and subject means the only booked hold there", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(9))
		f.finish(rules.Booked, d)
		f.finish(rules.Booked, again(d, withSubject("other")))
		f.finish(rules.Booked, again(d, func(d *store.Decide) { d.Slot = "lesson-2" }))
		c := cancelOf(d)
		f.settle(c, f.meant(c, d.ID), rules.Done)
		f.units(d, 1, 0)
		f.state(d, d.ID, decision.NoHold)
	}},
	{"a cancel of a subject with no booked hold, or several, means none and frees nothing", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(9))
		unknown := again(d, withSubject("u"))
		f.settle(unknown, f.admit(unknown), rules.Unknown)
		f.finish(rules.Booked, d)
		f.finish(rules.Booked, again(d))
		f.finish(rules.Booked, again(d, withSubject("")))
		for _, subject := range []string{"", "nobody", "s", "u"} {
			c := cancelOf(d, withSubject(subject))
			if settled := f.settle(c, f.meant(c, ""), rules.Done); settled.Hold != decision.NoHold || !settled.Look {
				f.Fatalf("%q: settled %+v, want a look", subject, settled)
			}
		}
		f.units(d, 3, 1)
	}},
	{"a target that is not booked is none: H11", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(9))
		released, unknown, held := again(d), again(d, withSubject("u")), again(d, withSubject("h"))
		f.finish(rules.Refused, released)
		f.settle(unknown, f.admit(unknown), rules.Unknown)
		f.admit(held)
		f.finish(rules.Booked, d)
		for _, target := range []string{released.ID, unknown.ID, held.ID, newID()} {
			// The subject's only booking is not meant instead of the target.
			c := cancelOf(d, targeting(target))
			if settled := f.settle(c, f.meant(c, ""), rules.Done); !settled.Look {
				f.Fatalf("target %s: settled %+v, want a look", target, settled)
			}
		}
		f.units(d, 1, 2)
	}},
	{"a cancel whose reference is not known means only a hold without one", func(f *fixture) {
		unreferenced := func(d *store.Decide) { d.Unreferenced = true }
		d := request(withSubject("s"), withCapacity(9))
		f.book(d, "booking-1")
		c := cancelOf(d, unreferenced)
		f.settle(c, f.meant(c, ""), rules.Done)
		bare := again(d)
		f.finish(rules.Booked, bare)
		c = cancelOf(d, unreferenced)
		f.settle(c, f.meant(c, bare.ID), rules.Done)
		f.units(d, 1, 0)
		f.state(d, d.ID, decision.Confirmed)
	}},
	{"a cancel takes no units, no room and no notice of what would stop a booking", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(1), onePerSubject, func(d *store.Decide) {
			d.MaxPerSubject, d.MaxInflight = 1, 1
			d.SlotLimit = perMinute(1)
		})
		f.finish(rules.Booked, d)
		f.change(d, store.SlotChange{Closed: ptr(true)})
		for range 3 {
			c := cancelOf(d)
			f.settle(c, f.meant(c, d.ID), rules.Refused)
		}
		if got := f.slot(d); got.Confirmed != 1 || got.Held != 0 || got.Inflight != 0 {
			f.Fatalf("slot %+v", got)
		}
	}},
	{"whatever else the backend answers, nothing is freed", func(f *fixture) {
		for _, outcome := range []rules.Outcome{rules.Refused, rules.Busy, rules.NeverSent, rules.Unknown} {
			d := request(withSubject("s"), func(d *store.Decide) { d.Slot = outcome.String() })
			f.finish(rules.Booked, d)
			c := cancelOf(d)
			settled := f.settle(c, f.meant(c, d.ID), outcome)
			if settled.Hold != decision.Confirmed || settled.Look != (outcome == rules.Unknown) {
				f.Fatalf("%s: settled %+v", outcome, settled)
			}
			f.units(d, 1, 0)
			c = cancelOf(d)
			f.settle(c, f.meant(c, d.ID), rules.Done)
			f.units(d, 0, 0)
		}
	}},
	{"freed units can be booked again, by the subject too", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(1), onePerSubject, func(d *store.Decide) { d.MaxPerSubject = 1 })
		f.finish(rules.Booked, d)
		f.expect(decision.SubjectHolds, again(d))
		f.expect(decision.SoldOut, again(d, withSubject("other")))
		c := cancelOf(d)
		f.settle(c, f.meant(c, d.ID), rules.Done)
		f.finish(rules.Booked, again(d))
		f.units(d, 1, 0)
	}},
	{"a cancel that is done ends a full mark", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(9))
		f.finish(rules.Booked, d)
		f.finish(rules.SoldOut, again(d, withSubject("other")))
		f.full(d, 1)
		c := cancelOf(d)
		f.settle(c, f.meant(c, d.ID), rules.Done)
		f.full(d, 0)
	}},
	{"a cancel makes no slot when it is settled, and one when it is decided", func(f *fixture) {
		d := request(withSubject("s"))
		c := cancelOf(d)
		f.settle(c, store.Decided{}, rules.Done)
		f.unseen(d)
		f.meant(c, "")
		f.units(d, 0, 0)
	}},
	{"cancels of a slot are bounded, and a full one has room again at a lease's end", func(f *fixture) {
		d := request(withSubject("s"))
		var first *store.Decide
		for range store.MaxCancels {
			c := cancelOf(d)
			f.meant(c, "")
			if first == nil {
				first = c
			}
		}
		got := f.expect(decision.NoRoom, cancelOf(d))
		f.between("retry after", got.RetryAfter, lease-moment, lease)
		f.settle(first, store.Decided{}, rules.Refused)
		f.meant(cancelOf(d), "")
		f.expect(decision.NoRoom, cancelOf(d))
		f.Advance(lease + moment)
		f.meant(cancelOf(d), "")
	}},
	{"the ledger tells a cancel", func(f *fixture) {
		d := request(withSubject("s"))
		f.finish(rules.Booked, d)
		c := cancelOf(d)
		f.settle(c, f.meant(c, d.ID), rules.Done)
		got, err := f.gate().Ledger(f.Context(), d.Pool, d.Slot, 1)
		if err != nil || len(got) != 1 || got[0].Hold != d.ID || got[0].From != decision.Confirmed || got[0].To != decision.Released || got[0].Cause != "cancel" {
			f.Fatalf("ledger %+v, %v", got, err)
		}
	}},
	{"a cancel wakes those who watch the slot", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(1))
		f.finish(rules.Booked, d)
		c := cancelOf(d)
		got := f.meant(c, d.ID)
		f.wakesSlot(d, func() { f.settle(c, got, rules.Done) })
	}},
}

// cancelOf is a cancel of the subject of d on its slot.
func cancelOf(d *store.Decide, change ...func(*store.Decide)) *store.Decide {
	c := again(d, func(c *store.Decide) {
		c.Action, c.Rule, c.Group, c.Key = store.Cancel, "cancel", "cancel", ""
		c.Units = 0
	})
	for _, ch := range change {
		ch(c)
	}
	return c
}

func targeting(hold string) func(*store.Decide) { return func(d *store.Decide) { d.Target = hold } }

// meant lets a cancel or confirm through and fails unless it means this hold.
func (f *fixture) meant(c *store.Decide, hold string) store.Decided {
	f.Helper()
	got := f.expect(decision.Admitted, c)
	if got.Hold != hold || got.Adopted || got.Probe {
		f.Fatalf("decide %s: %+v, want hold %q", c.ID, got, hold)
	}
	return got
}

// book admits a request and settles it as booked with a reference.
func (f *fixture) book(d *store.Decide, reference string) store.Decided {
	f.Helper()
	got := f.admit(d)
	s := settlement(d, got, rules.Booked)
	s.Reference = reference
	if settled := f.report(s); !settled.Applied || settled.Hold != decision.Confirmed {
		f.Fatalf("settle %s: %+v", d.ID, settled)
	}
	return got
}
