package storetest

import (
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// pendingTTL is how long a booking of these tests waits for its confirm.
const pendingTTL = 10 * time.Minute

// pendingTests are about bookings that wait for a confirm.
var pendingTests = []test{
	{"a booking that waits for its confirm is pending and counts as held", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(1))
		f.bookPending(d)
		f.units(d, 0, 1)
		h := f.state(d, d.ID, decision.Pending)
		f.between("the time from take to expiry", h.ExpiresAt.Sub(h.TakenAt), pendingTTL-moment, pendingTTL+moment)
		f.expect(decision.SoldOut, again(d, withSubject("other")))
		f.expect(decision.SubjectHolds, again(d, onePerSubject))
		f.Advance(pendingTTL - moment)
		f.state(d, d.ID, decision.Pending)
	}},
	{"a confirm makes it final, once and for all", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(1))
		f.bookPending(d)
		c := confirmOf(d)
		got := f.meant(c, d.ID)
		for range 2 {
			if settled := f.report(settlement(c, got, rules.Done)); settled.Hold != decision.Confirmed || settled.Late || settled.Look {
				f.Fatalf("settled %+v", settled)
			}
			f.units(d, 1, 0)
		}
		f.expect(decision.Gone, c)
		if h := f.state(d, d.ID, decision.Confirmed); !h.ExpiresAt.IsZero() {
			f.Fatalf("hold %+v", h)
		}
		f.Advance(pendingTTL + moment)
		f.units(d, 1, 0)
		f.meant(confirmOf(d), "")
		f.meant(confirmOf(d, targeting(d.ID)), "")
	}},
	{"a confirm means the only pending hold of its subject, or its target", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(9))
		f.finish(rules.Booked, d)
		pending := again(d)
		f.bookPending(pending)
		f.meant(confirmOf(d), pending.ID)
		f.meant(confirmOf(d, targeting(pending.ID), withSubject("")), pending.ID)
		another := again(d)
		f.bookPending(another)
		f.meant(confirmOf(d), "")
		c := confirmOf(d, targeting(another.ID))
		f.settle(c, f.meant(c, another.ID), rules.Done)
		f.units(d, 2, 1)
		f.meant(confirmOf(d), pending.ID)
	}},
	{"whatever else the backend answers a confirm, the hold stays pending", func(f *fixture) {
		d := request(withSubject("s"))
		f.bookPending(d)
		for _, outcome := range []rules.Outcome{rules.Refused, rules.Busy, rules.NeverSent, rules.Unknown} {
			c := confirmOf(d)
			settled := f.settle(c, f.meant(c, d.ID), outcome)
			if settled.Hold != decision.Pending || settled.Look != (outcome == rules.Unknown) {
				f.Fatalf("%s: settled %+v", outcome, settled)
			}
		}
		c := confirmOf(d, withSubject("nobody"))
		if settled := f.settle(c, f.meant(c, ""), rules.Done); !settled.Look {
			f.Fatalf("settled %+v, want a look", settled)
		}
		f.units(d, 0, 1)
	}},
	{"a cancel frees a pending hold", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(1))
		f.bookPending(d)
		c := cancelOf(d)
		f.settle(c, f.meant(c, d.ID), rules.Done)
		f.units(d, 0, 0)
		f.admit(again(d))
	}},
	{"without truth an expired pending hold is unknown and keeps its units until an operator says", func(f *fixture) {
		for name, change := range map[string]func(*store.Decide){"lapsing": func(*store.Decide) {}, "keeping": keepUnknown} {
			d := request(withSubject("s"), withCapacity(1), change, func(d *store.Decide) { d.Slot = name })
			f.bookPending(d)
			f.Advance(pendingTTL + moment)
			f.units(d, 0, 1)
			if h := f.state(d, d.ID, decision.HoldUnknown); !h.ExpiresAt.IsZero() {
				f.Fatalf("%s: hold %+v expires", name, h)
			}
			f.Advance(holdTTL + pendingTTL)
			f.expect(decision.SoldOut, again(d, withSubject("other")))
			f.expect(decision.OutcomeUnknown, again(d, onePerSubject, retrying))
			f.units(d, 0, 1)
			f.meant(cancelOf(d), "")
			f.meant(confirmOf(d), "")
			f.release(d, d.ID, decision.HoldUnknown)
			f.units(d, 0, 0)
		}
	}},
	{"with truth an expired pending hold counts towards max_per_subject no more", func(f *fixture) {
		for name, change := range map[string]func(*store.Decide){"lapsing": func(*store.Decide) {}, "keeping": keepUnknown} {
			d := request(truthful, withSubject(name), change, func(d *store.Decide) { d.Slot, d.MaxPerSubject = name, 1 })
			f.sync(d, 5)
			f.bookPending(d)
			f.expect(decision.SubjectFull, again(d))
			f.Advance(pendingTTL + moment)
			f.admit(again(d, blind))
		}
	}},
	{"a confirm that was under way at the expiry confirms", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(1))
		f.bookPending(d)
		f.Advance(pendingTTL - moment)
		c := confirmOf(d)
		got := f.meant(c, d.ID)
		f.Advance(2 * moment)
		f.state(d, d.ID, decision.HoldUnknown)
		if settled := f.settle(c, got, rules.Done); settled.Hold != decision.Confirmed {
			f.Fatalf("settled %+v", settled)
		}
		f.units(d, 1, 0)
	}},
	{"a booking that comes after the hold lapsed is pending, and told as late", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(1))
		got := f.admit(d)
		f.Advance(holdTTL + moment)
		f.admit(again(d, withSubject("other")))
		if settled := f.report(pendingSettlement(d, got, rules.Booked)); settled.Hold != decision.Pending || !settled.Late || settled.Oversold != 1 {
			f.Fatalf("settled %+v", settled)
		}
		f.units(d, 0, 2)
	}},
	{"a booking whose hold was never seen is pending", func(f *fixture) {
		d := request(withSubject("s"))
		f.bookUnseen(pendingSettlement(d, grantOf(d), rules.Booked), decision.Pending)
		f.units(d, 0, 1)
		f.meant(confirmOf(d), d.ID)
	}},
	{"other attempts of a pending hold leave it as it is", func(f *fixture) {
		for _, outcome := range []rules.Outcome{rules.Booked, rules.Duplicate, rules.Refused, rules.SoldOut, rules.NeverSent, rules.Unknown} {
			d := request(withSubject("s"), withKey(outcome.String()), retrying, func(d *store.Decide) { d.Slot = outcome.String() })
			first := f.admit(d)
			f.settle(d, first, rules.Unknown)
			retry := again(d)
			f.report(pendingSettlement(retry, f.admit(retry), rules.Booked))
			expires := f.state(d, d.ID, decision.Pending).ExpiresAt
			f.Advance(2 * moment)
			f.report(pendingSettlement(d, first, outcome))
			if h := f.state(d, d.ID, decision.Pending); !h.ExpiresAt.Equal(expires) {
				f.Fatalf("%s: expires %v, want %v", outcome, h.ExpiresAt, expires)
			}
		}
	}},
	{"booked again does not make a confirmed hold pending", func(f *fixture) {
		d := request(withSubject("s"), withKey("k"), retrying)
		first := f.admit(d)
		f.settle(d, first, rules.Unknown)
		retry := again(d)
		f.report(pendingSettlement(retry, f.admit(retry), rules.Booked))
		c := confirmOf(d)
		f.settle(c, f.meant(c, d.ID), rules.Done)
		f.report(pendingSettlement(d, first, rules.Booked))
		f.state(d, d.ID, decision.Confirmed)
	}},
	{"H1: a duplicate is pending, and released where another hold of the subject is", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(9))
		first, second := f.admit(d), again(d)
		got := f.admit(second)
		if settled := f.report(pendingSettlement(d, first, rules.Duplicate)); settled.Hold != decision.Pending {
			f.Fatalf("settled %+v", settled)
		}
		if settled := f.report(pendingSettlement(second, got, rules.Duplicate)); settled.Hold != decision.Released {
			f.Fatalf("settled %+v", settled)
		}
		f.units(d, 0, 1)
	}},
	{"H21: a retry that finds its hold pending completes the key", func(f *fixture) {
		d := request(withSubject("s"), withKey("k"), retrying)
		first := f.admit(d)
		f.settle(d, first, rules.Unknown)
		retry := again(d)
		f.settle(retry, f.admit(retry), rules.Unknown)
		s := pendingSettlement(d, first, rules.Booked)
		s.Keep = false // and so the key is the retry's still
		f.report(s)
		if got := f.expect(decision.Replay, again(d)); len(got.Answer) != 0 {
			f.Fatalf("replayed %q", got.Answer)
		}
		f.state(d, d.ID, decision.Pending)
	}},
	{"H8: a cancel of a pending hold with an unanswered attempt leaves it unknown until its hold_ttl", func(f *fixture) {
		d := request(withSubject("s"), withKey("k"), retrying, withCapacity(1))
		f.settle(d, f.admit(d), rules.Unknown)
		retry := again(d)
		f.report(pendingSettlement(retry, f.admit(retry), rules.Booked))
		c := cancelOf(d)
		f.settle(c, f.meant(c, d.ID), rules.Done)
		f.state(d, d.ID, decision.HoldUnknown)
		f.Advance(holdTTL + moment)
		f.units(d, 0, 0)
	}},
	{"the ledger tells a confirm and an expiry", func(f *fixture) {
		d := request(withSubject("s"))
		f.bookPending(d)
		f.Advance(pendingTTL - moment)
		c := confirmOf(d)
		got := f.meant(c, d.ID)
		f.Advance(2 * moment)
		f.units(d, 0, 1)
		f.settle(c, got, rules.Done)
		entries, err := f.gate().Ledger(f.Context(), d.Pool, d.Slot, 3)
		if err != nil || len(entries) != 3 ||
			entries[0].Cause != "confirm" || entries[0].To != decision.Confirmed ||
			entries[1].Cause != "lapse" || entries[1].From != decision.Pending || entries[1].To != decision.HoldUnknown ||
			entries[2].Cause != "booked" || entries[2].To != decision.Pending {
			f.Fatalf("ledger %+v, %v", entries, err)
		}
	}},
	{"a touch leaves a pending hold as it is", func(f *fixture) {
		d := request(withSubject("s"), withKey("k"), retrying)
		f.bookPending(d)
		f.touch(d, "gate-a", forceUnder(d.ID, again(d)))
		f.state(d, d.ID, decision.Pending)
	}},
}

func pendingSettlement(d *store.Decide, got store.Decided, outcome rules.Outcome) *store.Settle {
	s := settlement(d, got, outcome)
	s.PendingTTL = pendingTTL
	return s
}

// bookPending admits a request and settles it as booked, to be confirmed.
func (f *fixture) bookPending(d *store.Decide) {
	f.Helper()
	if settled := f.report(pendingSettlement(d, f.admit(d), rules.Booked)); !settled.Applied || settled.Hold != decision.Pending {
		f.Fatalf("settle %s: %+v", d.ID, settled)
	}
}

func (f *fixture) bookUnseen(s *store.Settle, want decision.HoldState) {
	f.Helper()
	if settled := f.report(s); !settled.Applied || settled.Hold != want {
		f.Fatalf("settle %s: %+v, want %s", s.ID, settled, want)
	}
}

// confirmOf is a confirm of the subject of d on its slot.
func confirmOf(d *store.Decide, change ...func(*store.Decide)) *store.Decide {
	return cancelOf(d, append([]func(*store.Decide){func(c *store.Decide) {
		c.Action, c.Rule, c.Group = store.Confirm, "confirm", "confirm"
	}}, change...)...)
}
