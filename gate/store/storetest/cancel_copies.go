package storetest

import (
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// cancelCopyTests are about cancels that come more than once, late, or in the way of
// bookings (H8 to H11).
var cancelCopyTests = []test{
	{"P3: a copy of a cancel's calls has the effect of once", func(f *fixture) {
		d := request(withSubject("s"))
		f.finish(rules.Booked, d)
		c := cancelOf(d)
		got := f.meant(c, d.ID)
		f.meant(c, d.ID)
		f.settle(c, got, rules.Done)
		f.expect(decision.Gone, c)
		second := again(d)
		f.finish(rules.Booked, second)
		if settled := f.report(settlement(c, got, rules.Done)); settled.Applied || settled.Hold != decision.Released {
			f.Fatalf("settled again %+v", settled)
		}
		f.expect(decision.Gone, c)
		f.units(d, 1, 0)
		f.state(d, second.ID, decision.Confirmed)
	}},
	{"the first settlement of a cancel counts", func(f *fixture) {
		for _, outcome := range []rules.Outcome{rules.Refused, rules.Unknown} {
			d := request(withSubject("s"), func(d *store.Decide) { d.Slot = outcome.String() })
			f.finish(rules.Booked, d)
			c := cancelOf(d)
			got := f.meant(c, d.ID)
			f.settle(c, got, outcome)
			if settled := f.report(settlement(c, got, rules.Done)); settled.Applied || settled.Hold != decision.Confirmed {
				f.Fatalf("%s, then done: settled %+v", outcome, settled)
			}
			f.units(d, 1, 0)
		}
	}},
	{"ten cancels of one booking, by target and by subject, from two gates, free one unit", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(9))
		f.finish(rules.Booked, again(d, withSubject("other")))
		f.finish(rules.Booked, d)
		var cancels []*store.Decide
		var grants []store.Decided
		for i := range 10 {
			c := cancelOf(d)
			if i%2 == 0 {
				c.Target = d.ID
			}
			cancels, grants = append(cancels, c), append(grants, f.meant(c, d.ID))
		}
		for range 2 {
			for i, c := range cancels {
				f.report(settlement(c, grants[i], rules.Done))
				f.units(d, 1, 0)
			}
		}
	}},
	{"H10: a cancel decided when there was nothing does not free what is booked later", func(f *fixture) {
		d := request(withSubject("s"))
		c := cancelOf(d)
		got := f.meant(c, "")
		f.Advance(lease + moment)
		f.finish(rules.Booked, d)
		f.report(settlement(c, got, rules.Done))
		f.units(d, 1, 0)
	}},
	{"H10: book, cancel, book with late copies of each", func(f *fixture) {
		first := request(withSubject("s"), withCapacity(1), onePerSubject)
		booked := f.admit(first)
		f.settle(first, booked, rules.Booked)
		c := cancelOf(first)
		got := f.meant(c, first.ID)
		f.settle(c, got, rules.Done)
		second := again(first)
		f.finish(rules.Booked, second)
		for range 2 {
			f.expect(decision.Gone, first)
			f.report(settlement(first, booked, rules.Booked))
			f.expect(decision.Gone, c)
			f.report(settlement(c, got, rules.Done))
			f.units(first, 1, 0)
			f.state(first, second.ID, decision.Confirmed)
		}
	}},
	{"H10: a settlement whose decide is forgotten touches the hold it names and no other", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(9))
		f.finish(rules.Booked, d)
		c := cancelOf(d)
		got := f.meant(c, d.ID)
		f.Advance(lease + store.CopyWindow + moment)
		f.finish(rules.Booked, again(d))
		if settled := f.report(settlement(c, got, rules.Done)); settled.Hold != decision.Released {
			f.Fatalf("settled %+v", settled)
		}
		f.units(d, 1, 0)
		f.report(settlement(c, got, rules.Done))
		f.units(d, 1, 0)
	}},
	{"a cancel settled after its lease still frees where a number tells what there is", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(1))
		f.finish(rules.Booked, d)
		c := cancelOf(d)
		got := f.meant(c, d.ID)
		f.Advance(lease + moment)
		if settled := f.settle(c, got, rules.Done); settled.Look {
			f.Fatalf("settled %+v", settled)
		}
		f.units(d, 0, 0)
		f.admit(again(d))
	}},
	{"H8: a cancel that was refused after its lease leaves its hold in doubt", func(f *fixture) {
		d := request(truthful, withSubject("s"))
		f.sync(d, 1)
		f.finish(rules.Booked, d)
		c := cancelOf(d)
		got := f.meant(c, d.ID)
		f.Advance(lease + moment)
		f.settle(c, got, rules.Refused)
		c = cancelOf(d)
		if settled := f.settle(c, f.meant(c, d.ID), rules.Done); !settled.Look || settled.Hold != decision.Released {
			f.Fatalf("settled %+v", settled)
		}
		f.free(d, 0)
	}},
	{"H9: a cancel waits while a booking of its subject runs, within its lease", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(9))
		held := f.admit(d)
		for _, c := range []*store.Decide{cancelOf(d), cancelOf(d, withSubject(""), targeting(d.ID)), cancelOf(d, func(c *store.Decide) { c.Action = store.Confirm })} {
			got := f.expect(decision.SubjectBusy, c)
			if got.Owner != d.ID {
				f.Fatalf("owner %q, want %s", got.Owner, d.ID)
			}
			f.between("retry after", got.RetryAfter, lease-moment, lease)
		}
		f.meant(cancelOf(d, withSubject("other")), "")
		f.settle(d, held, rules.Booked)
		c := cancelOf(d)
		f.settle(c, f.meant(c, d.ID), rules.Done)
		f.admit(again(d))
		f.expect(decision.SubjectBusy, cancelOf(d))
		f.Advance(lease + moment)
		f.meant(cancelOf(d), "")
	}},
	{"H9: a booking waits while a cancel of its subject runs, whatever one_per_subject says", func(f *fixture) {
		for name, change := range map[string]func(*store.Decide){
			"many": func(*store.Decide) {}, "one": onePerSubject,
		} {
			d := request(withSubject("s"), withCapacity(9), change, func(d *store.Decide) { d.Slot = name })
			c := cancelOf(d)
			got := f.meant(c, "")
			busy := f.expect(decision.SubjectBusy, d)
			if busy.Owner != c.ID {
				f.Fatalf("%s: owner %q, want %s", name, busy.Owner, c.ID)
			}
			f.between("retry after", busy.RetryAfter, lease-moment, lease)
			f.admit(again(d, withSubject("other")))
			f.admit(again(d, withSubject("")))
			f.settle(c, got, rules.Refused)
			f.admit(d)
		}
		d := request(withSubject("s"), withCapacity(9), func(d *store.Decide) { d.Slot = "lease" })
		f.meant(cancelOf(d), "")
		f.expect(decision.SubjectBusy, d)
		f.Advance(lease + moment)
		f.admit(d)
	}},
	{"H9: a retry does not go on under its hold while a cancel of the subject runs", func(f *fixture) {
		d := request(withSubject("s"), withKey("k"), retrying)
		f.settle(d, f.admit(d), rules.Unknown)
		c := cancelOf(d)
		got := f.meant(c, "")
		f.expect(decision.SubjectBusy, again(d))
		f.settle(c, got, rules.Refused)
		if adopted := f.admit(again(d)); !adopted.Adopted {
			f.Fatalf("decided %+v", adopted)
		}
	}},
	{"cancels and confirms do not wait for each other, and a confirm holds up no booking", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(9))
		f.finish(rules.Booked, d)
		confirm := cancelOf(d, func(c *store.Decide) { c.Action = store.Confirm })
		f.meant(confirm, "")
		f.finish(rules.Refused, again(d))
		f.meant(cancelOf(d, targeting(d.ID)), d.ID)
		f.meant(cancelOf(d, targeting(d.ID)), d.ID)
		f.meant(cancelOf(d, func(c *store.Decide) { c.Action = store.Confirm }), "")
	}},
	{"H8: a cancel leaves a hold with an unanswered attempt unknown", func(f *fixture) {
		d := request(withSubject("s"), withKey("k"), retrying, withCapacity(1))
		f.settle(d, f.admit(d), rules.Unknown)
		retry := again(d)
		f.settle(retry, f.admit(retry), rules.Booked)
		f.Advance(holdTTL)
		c := cancelOf(d)
		got := f.meant(c, d.ID)
		if settled := f.settle(c, got, rules.Done); settled.Hold != decision.HoldUnknown {
			f.Fatalf("settled %+v", settled)
		}
		h := f.state(d, d.ID, decision.HoldUnknown)
		f.units(d, 0, 1)
		f.between("time left", h.ExpiresAt.Sub(h.TakenAt), 2*holdTTL-moment, 2*holdTTL+moment)
		f.expect(decision.SoldOut, again(d, withSubject("other"), withKey("")))
		// The copy of a cancel leaves it, and so does another cancel.
		f.report(settlement(c, got, rules.Done))
		other := cancelOf(d)
		f.settle(other, f.meant(other, ""), rules.Done)
		f.units(d, 0, 1)
		f.Advance(holdTTL + moment)
		f.units(d, 0, 0)
	}},
	{"H11: a cancel that is done does not free what has become unknown, or is held", func(f *fixture) {
		d := request(withSubject("s"), withKey("k"), retrying, withCapacity(1))
		f.settle(d, f.admit(d), rules.Unknown)
		retry := again(d)
		f.settle(retry, f.admit(retry), rules.Booked)
		c, late := cancelOf(d), cancelOf(d)
		f.meant(c, d.ID)
		f.meant(late, d.ID)
		f.settle(c, grantOf(d), rules.Done)
		if settled := f.settle(late, grantOf(d), rules.Done); settled.Hold != decision.HoldUnknown {
			f.Fatalf("settled %+v", settled)
		}
		held := again(d, withKey("held"), withSubject(""), withCapacity(2))
		f.admit(held)
		if settled := f.settle(cancelOf(d), grantOf(held), rules.Done); settled.Hold != decision.Held {
			f.Fatalf("settled %+v", settled)
		}
		f.units(d, 0, 2)
	}},
	{"H8: an attempt that turns out booked before the cancel is settled may have been booked after it", func(f *fixture) {
		d := request(withSubject("s"), withKey("k"), retrying, withCapacity(1))
		first := f.admit(d)
		f.settle(d, first, rules.Unknown)
		retry := again(d)
		f.settle(retry, f.admit(retry), rules.Booked)
		c := cancelOf(d)
		got := f.meant(c, d.ID)
		f.settle(d, first, rules.Booked)
		if settled := f.settle(c, got, rules.Done); settled.Hold != decision.HoldUnknown {
			f.Fatalf("settled %+v", settled)
		}
		f.expect(decision.SoldOut, again(d, withSubject("other"), withKey("")))
		f.Advance(holdTTL + moment)
		f.units(d, 0, 0)
	}},
	{"H8: an attempt that turns out booked after the cancel is counted", func(f *fixture) {
		d := request(withSubject("s"), withKey("k"), retrying, withCapacity(1))
		first := f.admit(d)
		f.settle(d, first, rules.Unknown)
		retry := again(d)
		f.settle(retry, f.admit(retry), rules.Booked)
		c := cancelOf(d)
		f.settle(c, f.meant(c, d.ID), rules.Done)
		if settled := f.settle(d, first, rules.Booked); settled.Hold != decision.Confirmed || settled.Late {
			f.Fatalf("settled %+v", settled)
		}
		f.units(d, 1, 0)
	}},
	{"H8: no request goes on under a hold that a cancel left unknown", func(f *fixture) {
		d := request(withSubject("s"), withKey("k"), retrying, onePerSubject, withCapacity(2))
		f.cancelInDoubt(d)
		for _, retry := range []*store.Decide{again(d), again(d, withKey("other"))} {
			f.expect(decision.OutcomeUnknown, retry)
		}
		f.units(d, 0, 1)
		f.Advance(holdTTL + moment)
		if got := f.admit(again(d)); got.Adopted {
			f.Fatalf("decided %+v, want a new hold", got)
		}
	}},
	{"H8: nor does a definite failure free it: another attempt may be booked", func(f *fixture) {
		for _, outcome := range []rules.Outcome{rules.Refused, rules.SoldOut, rules.Busy, rules.NeverSent} {
			d := request(withSubject("s"), retrying, withCapacity(1), func(d *store.Decide) { d.Slot, d.Key = outcome.String(), outcome.String() })
			first := f.cancelInDoubt(d)
			if settled := f.settle(d, first, outcome); settled.Hold != decision.HoldUnknown {
				f.Fatalf("%s: settled %+v", outcome, settled)
			}
			f.expect(decision.OutcomeUnknown, again(d))
			f.units(d, 0, 1)
			f.Advance(holdTTL + moment)
			f.units(d, 0, 0)
			// What is gone is not forgotten while copies may come.
			if settled := f.report(settlement(d, first, rules.Booked)); settled.Applied || settled.Hold != decision.Lapsed {
				f.Fatalf("%s: settled again %+v", outcome, settled)
			}
			f.units(d, 0, 0)
		}
	}},
	{"H8: nor does it with keep_unknown, until an operator says", func(f *fixture) {
		d := request(withSubject("s"), withKey("k"), retrying, keepUnknown, withCapacity(1))
		f.settle(d, f.cancelInDoubt(d), rules.Refused)
		f.Advance(2 * holdTTL)
		f.expect(decision.OutcomeUnknown, again(d))
		f.units(d, 0, 1)
		f.release(d, d.ID, decision.HoldUnknown)
		f.units(d, 0, 0)
		f.admit(again(d))
	}},
	{"a cancel's key is treated as a booking's", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(9))
		f.finish(rules.Booked, d)
		f.finish(rules.Booked, again(d, withSubject("t")))
		c := cancelOf(d, withKey("k"))
		got := f.meant(c, d.ID)
		if twin := f.expect(decision.Twin, again(c)); twin.Owner != c.ID {
			f.Fatalf("owner %q", twin.Owner)
		}
		f.settle(c, got, rules.Done)
		f.replays(again(c), c.ID)
		f.expect(decision.KeyDone, again(c, withScope("bob")))

		lost := cancelOf(d, withKey("lost"), withSubject("t"))
		f.settle(lost, f.meant(lost, f.only(d)), rules.Unknown)
		f.expect(decision.OutcomeUnknown, again(lost))
		retry := again(lost, retrying)
		f.settle(retry, f.meant(retry, f.only(d)), rules.Done)
		f.replays(again(lost), retry.ID)
		f.units(d, 0, 0)

		refused := cancelOf(d, withKey("refused"))
		f.settle(refused, f.meant(refused, ""), rules.Refused)
		f.meant(again(refused), "")
	}},
	{"P2: a cancel that was done completes its key, whatever becomes of the retry that owns it", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(9))
		f.finish(rules.Booked, d)
		c := cancelOf(d, withKey("c"), retrying)
		got := f.meant(c, d.ID)
		f.Advance(lease + moment)
		retry := again(c)
		retried := f.meant(retry, d.ID)
		f.settle(c, got, rules.Done)
		f.replays(again(c), c.ID)
		f.settle(retry, retried, rules.NeverSent)
		f.replays(again(c), c.ID)
		f.units(d, 0, 0)
	}},
	{"the key of a cancel that left its hold unknown is done", func(f *fixture) {
		d := request(withSubject("s"), withKey("k"), retrying)
		f.settle(d, f.admit(d), rules.Unknown)
		retry := again(d)
		f.settle(retry, f.admit(retry), rules.Booked)
		c := cancelOf(d, withKey("c"))
		f.settle(c, f.meant(c, d.ID), rules.Done)
		f.replays(again(c), c.ID)
	}},
}

// cancelInDoubt books d in two attempts, of which a cancel that is done sees only the
// second answered. The key of d is still that of the first, whose grant it returns.
func (f *fixture) cancelInDoubt(d *store.Decide) store.Decided {
	f.Helper()
	first := f.admit(d)
	f.settle(d, first, rules.Unknown)
	retry := again(d, withKey("second of "+d.Slot), onePerSubject)
	f.settle(retry, f.admit(retry), rules.Booked)
	c := cancelOf(d)
	if settled := f.settle(c, f.meant(c, d.ID), rules.Done); settled.Hold != decision.HoldUnknown {
		f.Fatalf("settled %+v, want the hold unknown", settled)
	}
	return first
}

// only is the one hold that the slot of d shows.
func (f *fixture) only(d *store.Decide) string {
	f.Helper()
	got := f.slot(d)
	if len(got.Holds) != 1 {
		f.Fatalf("slot shows %+v, want one hold", got.Holds)
	}
	return got.Holds[0].ID
}
