package storetest

import (
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// settleTests are about what each outcome does to hold and units.
var settleTests = []test{
	{"booked confirms", func(f *fixture) {
		d := request(withUnits(2))
		if got := f.settle(d, f.admit(d), rules.Booked); got.Hold != decision.Confirmed || got.Late || got.Oversold != 0 {
			f.Fatalf("settled %+v", got)
		}
		f.units(d, 2, 0)
	}},
	{"P4: a definite failure frees the units at once", func(f *fixture) {
		for _, outcome := range []rules.Outcome{rules.Refused, rules.Busy, rules.NeverSent, rules.SoldOut} {
			d := request(withUnits(2), func(d *store.Decide) { d.Slot = outcome.String() })
			if got := f.settle(d, f.admit(d), outcome); got.Hold != decision.Released {
				f.Fatalf("%s: settled %+v", outcome, got)
			}
			f.units(d, 0, 0)
		}
	}},
	{"unknown keeps the units", func(f *fixture) {
		d := request()
		if got := f.settle(d, f.admit(d), rules.Unknown); got.Hold != decision.HoldUnknown {
			f.Fatalf("settled %+v", got)
		}
		f.units(d, 0, 1)
		f.state(d, d.ID, decision.HoldUnknown)
	}},
	{"an unknown attempt may still be settled", func(f *fixture) {
		booked, refused := request(), request()
		b, r := f.admit(booked), f.admit(refused)
		f.settle(booked, b, rules.Unknown)
		f.settle(refused, r, rules.Unknown)
		f.settle(booked, b, rules.Booked)
		f.settle(refused, r, rules.Refused)
		f.units(booked, 1, 0)
	}},
	{"P3: a repeated settlement has the effect of once", func(f *fixture) {
		for _, outcome := range []rules.Outcome{rules.Booked, rules.Duplicate, rules.Refused, rules.SoldOut, rules.Busy, rules.NeverSent, rules.Unknown} {
			d := request(withKey("k"), withSubject("s"), func(d *store.Decide) { d.Slot = outcome.String(); d.Group = outcome.String() })
			got := f.admit(d)
			first := f.settle(d, got, outcome)
			before := f.slot(d)
			for range 2 {
				if repeated := f.report(settlement(d, got, outcome)); repeated.Applied || repeated.Hold != first.Hold || repeated.Late || repeated.Oversold != 0 {
					f.Fatalf("%s: repeated settlement %+v, first %+v", outcome, repeated, first)
				}
			}
			f.units(d, before.Confirmed, before.Held)
		}
	}},
	{"P3: a late copy of a settlement does not touch the next attempt", func(f *fixture) {
		first := request(withKey("k"), retrying)
		got := f.admit(first)
		f.settle(first, got, rules.Unknown)
		second := again(first)
		adopted := f.admit(second)
		f.report(settlement(first, got, rules.Unknown))
		f.state(first, got.Hold, decision.Held)
		if twin := f.expect(decision.Twin, again(first)); twin.Owner != second.ID {
			f.Fatalf("owner %q, want %q", twin.Owner, second.ID)
		}
		f.settle(second, adopted, rules.Refused)
		f.report(settlement(second, adopted, rules.Refused))
		f.state(first, got.Hold, decision.HoldUnknown)
		f.units(first, 0, 1)
	}},
	{"a settled outcome is not overruled", func(f *fixture) {
		booked, refused := request(), request()
		b, r := f.admit(booked), f.admit(refused)
		f.settle(booked, b, rules.Booked)
		f.settle(refused, r, rules.Refused)
		if got := f.report(settlement(booked, b, rules.Refused)); got.Applied || got.Hold != decision.Confirmed {
			f.Fatalf("refused after booked: %+v", got)
		}
		if got := f.report(settlement(refused, r, rules.Booked)); got.Applied || got.Hold != decision.Released {
			f.Fatalf("booked after refused: %+v", got)
		}
		f.units(booked, 1, 0)
	}},
	{"H1: duplicate confirms the hold", func(f *fixture) {
		d := request(withSubject("s"))
		if got := f.settle(d, f.admit(d), rules.Duplicate); got.Hold != decision.Confirmed {
			f.Fatalf("settled %+v", got)
		}
		f.units(d, 1, 0)
	}},
	{"H1: duplicate after an unanswered attempt confirms the one hold", func(f *fixture) {
		first := request(withKey("k"), withSubject("s"), retrying)
		f.settle(first, f.admit(first), rules.Unknown)
		second := again(first)
		f.settle(second, f.admit(second), rules.Duplicate)
		f.state(first, first.ID, decision.Confirmed)
		f.units(first, 1, 0)
		f.expect(decision.Replay, again(first))
	}},
	{"H2: a duplicate releases nothing while another attempt of its hold is unanswered", func(f *fixture) {
		d := request(withSubject("s"), withKey("k"), retrying, withCapacity(9))
		first := f.admit(d)
		f.settle(d, first, rules.Unknown) // it is booked if the other's booking is cancelled
		f.finish(rules.Booked, again(d, withKey("")))
		retry := again(d)
		if got := f.settle(retry, f.admit(retry), rules.Duplicate); got.Hold != decision.HoldUnknown {
			f.Fatalf("settled %+v", got)
		}
		f.units(d, 1, 1)
		f.expect(decision.OutcomeUnknown, again(d, func(d *store.Decide) { d.RetryUnknown = false }))
		if got := f.settle(d, first, rules.Duplicate); got.Hold != decision.Released {
			f.Fatalf("settled %+v", got)
		}
		f.units(d, 1, 0)
	}},
	{"H1: duplicate releases where another confirmed hold of the subject stands", func(f *fixture) {
		first, second := request(withSubject("s"), withKey("a")), request(withSubject("s"), withKey("b"))
		f.finish(rules.Booked, first)
		if got := f.settle(second, f.admit(second), rules.Duplicate); got.Hold != decision.Released {
			f.Fatalf("settled %+v", got)
		}
		f.units(first, 1, 0)
		f.expect(decision.Replay, again(second)) // the answer is kept all the same
	}},
	{"H1: a duplicate that was told first stands in for the booking, and goes when that is told", func(f *fixture) {
		first, second := request(withSubject("s"), withCapacity(9)), request(withSubject("s"), withCapacity(9))
		a, b := f.admit(first), f.admit(second)
		if got := f.settle(second, b, rules.Duplicate); got.Hold != decision.Confirmed {
			f.Fatalf("settled %+v", got)
		}
		if got := f.settle(first, a, rules.Booked); got.Hold != decision.Confirmed {
			f.Fatalf("settled %+v", got)
		}
		f.state(second, second.ID, decision.NoHold)
		f.units(first, 1, 0)
		f.report(settlement(second, b, rules.Duplicate)) // a copy
		f.report(settlement(first, a, rules.Booked))
		f.units(first, 1, 0)
	}},
	{"H1: so it does for a booking whose hold was never seen", func(f *fixture) {
		first, second := request(withSubject("s"), withCapacity(9)), request(withSubject("s"), withCapacity(9))
		f.finish(rules.Duplicate, second)
		f.report(settlement(first, store.Decided{Hold: first.ID}, rules.Booked))
		f.state(second, second.ID, decision.NoHold)
		f.state(first, first.ID, decision.Confirmed)
		f.units(first, 1, 0)
	}},
	{"H1: and for one whose hold had lapsed: it is not oversold", func(f *fixture) {
		first, second := request(withSubject("s"), withCapacity(1)), request(withSubject("s"), withCapacity(1))
		a := f.admit(first)
		f.Advance(holdTTL + moment)
		f.finish(rules.Duplicate, second)
		if got := f.settle(first, a, rules.Booked); !got.Late || got.Oversold != 0 || got.Hold != decision.Confirmed {
			f.Fatalf("settled %+v", got)
		}
		f.state(second, second.ID, decision.NoHold)
		f.units(first, 1, 0)
	}},
	{"H1: a duplicate of a retry stands for its own booking", func(f *fixture) {
		first, other := request(withKey("k"), withSubject("s"), withCapacity(9), retrying), request(withSubject("s"), withCapacity(9))
		f.settle(first, f.admit(first), rules.Unknown)
		second := again(first)
		adopted, o := f.admit(second), f.admit(other)
		f.settle(second, adopted, rules.Duplicate)
		f.settle(other, o, rules.Booked)
		f.state(first, first.ID, decision.Confirmed)
		f.units(first, 2, 0)
	}},
	{"H1: what the subject was admitted for later is no booking that a duplicate stood in for", func(f *fixture) {
		first, later := request(withSubject("s"), withCapacity(9)), request(withSubject("s"), withCapacity(9))
		f.finish(rules.Duplicate, first)
		f.finish(rules.Booked, later)
		f.state(first, first.ID, decision.Confirmed)
		f.units(first, 2, 0)
	}},
	{"H1: a stand-in that was cancelled is none any more", func(f *fixture) {
		duplicate, early, next := request(withSubject("s"), withCapacity(9)), request(withSubject("s"), withCapacity(9)), request(withSubject("s"), withCapacity(9))
		f.finish(rules.Duplicate, duplicate)
		c := cancelOf(duplicate)
		f.settle(c, f.admit(c), rules.Done)
		f.finish(rules.Duplicate, next)
		f.report(settlement(early, store.Decided{Hold: early.ID}, rules.Booked))
		f.state(next, next.ID, decision.NoHold)
		f.units(early, 1, 0)
	}},
	{"H1: another subject's confirmed hold does not count", func(f *fixture) {
		f.finish(rules.Booked, request(withSubject("other")))
		d := request(withSubject("s"))
		f.settle(d, f.admit(d), rules.Duplicate)
		f.units(d, 2, 0)
	}},
	{"H1: holds without a subject are each confirmed", func(f *fixture) {
		f.finish(rules.Booked, request())
		d := request()
		f.settle(d, f.admit(d), rules.Duplicate)
		f.units(d, 2, 0)
	}},
	{"H2: a definite failure of a retry leaves hold and key unknown", func(f *fixture) {
		for _, outcome := range []rules.Outcome{rules.Refused, rules.SoldOut, rules.Busy, rules.NeverSent} {
			first := request(withKey("k"), retrying, func(d *store.Decide) { d.Slot = outcome.String(); d.Group = outcome.String() })
			got := f.admit(first)
			f.settle(first, got, rules.Unknown)
			second := again(first)
			if s := f.settle(second, f.admit(second), outcome); s.Hold != decision.HoldUnknown {
				f.Fatalf("%s: settled %+v", outcome, s)
			}
			f.units(first, 0, 1)
			f.expect(decision.OutcomeUnknown, again(first, func(d *store.Decide) { d.RetryUnknown = false }))
			f.settle(first, got, rules.Refused) // the last unanswered attempt
			f.units(first, 0, 0)
		}
	}},
	{"H2: hold and key stay unknown though the refusal is kept", func(f *fixture) {
		first := request(withKey("k"), retrying)
		f.settle(first, f.admit(first), rules.Unknown)
		second := again(first)
		s := settlement(second, f.admit(second), rules.Refused)
		s.Keep = true
		f.report(s)
		f.expect(decision.OutcomeUnknown, again(first, func(d *store.Decide) { d.RetryUnknown = false }))
	}},
	{"H2: a refused first attempt leaves the running retry its hold", func(f *fixture) {
		first := request(withKey("k"), retrying)
		got := f.admit(first)
		f.Advance(lease + moment)
		second := again(first)
		adopted := f.admit(second)
		f.settle(first, got, rules.Refused)
		f.units(first, 0, 1)
		f.settle(second, adopted, rules.Booked)
		f.units(first, 1, 0)
	}},
	{"a refused retry does not release a confirmed hold", func(f *fixture) {
		first := request(withKey("k"), retrying)
		got := f.admit(first)
		f.settle(first, got, rules.Unknown)
		second := again(first)
		adopted := f.admit(second)
		f.settle(first, got, rules.Booked)
		if s := f.settle(second, adopted, rules.Refused); s.Hold != decision.Confirmed {
			f.Fatalf("settled %+v", s)
		}
		f.units(first, 1, 0)
	}},
	{"an unknown retry does not unconfirm a hold", func(f *fixture) {
		first := request(withKey("k"), retrying)
		got := f.admit(first)
		f.settle(first, got, rules.Unknown)
		second := again(first)
		adopted := f.admit(second)
		f.settle(first, got, rules.Booked)
		f.settle(second, adopted, rules.Unknown)
		f.state(first, got.Hold, decision.Confirmed)
		f.units(first, 1, 0)
	}},
	{"P1: booked after the lapse is counted and reported as oversold", func(f *fixture) {
		d := request(withCapacity(1))
		got := f.admit(d)
		f.Advance(holdTTL + moment)
		f.finish(rules.Booked, request(withCapacity(1)))
		if s := f.settle(d, got, rules.Booked); !s.Late || s.Oversold != 1 || s.Hold != decision.Confirmed {
			f.Fatalf("settled %+v, want late and oversold by 1", s)
		}
		f.units(d, 2, 0)
		if s := f.report(settlement(d, got, rules.Booked)); s.Applied || s.Oversold != 0 {
			f.Fatalf("repeated settlement %+v", s)
		}
		f.units(d, 2, 0)
		f.expect(decision.SoldOut, request(withCapacity(1)))
	}},
	{"booked after the lapse with room left is late, not oversold", func(f *fixture) {
		d := request()
		got := f.admit(d)
		f.Advance(holdTTL + moment)
		f.units(d, 0, 0)
		if s := f.settle(d, got, rules.Booked); !s.Late || s.Oversold != 0 {
			f.Fatalf("settled %+v", s)
		}
		f.units(d, 1, 0)
	}},
	{"refused after the lapse changes no units", func(f *fixture) {
		d := request(withCapacity(1))
		got := f.admit(d)
		f.Advance(holdTTL + moment)
		other := request(withCapacity(1))
		f.admit(other)
		if s := f.report(settlement(d, got, rules.Refused)); s.Hold != decision.Lapsed || s.Late {
			f.Fatalf("settled %+v", s)
		}
		f.units(d, 0, 1)
	}},
	{"booked after an operator released the unanswered hold is counted again", func(f *fixture) {
		d := request(withCapacity(1))
		got := f.admit(d)
		f.settle(d, got, rules.Unknown)
		f.release(d, got.Hold, decision.HoldUnknown)
		f.units(d, 0, 0)
		f.finish(rules.Booked, request(withCapacity(1)))
		if s := f.settle(d, got, rules.Booked); !s.Late || s.Oversold != 1 {
			f.Fatalf("settled %+v", s)
		}
		f.units(d, 2, 0)
	}},
	{"booked on an unseen hold creates it confirmed", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(1))
		s := settlement(d, store.Decided{Hold: d.ID}, rules.Booked)
		if got := f.report(s); !got.Applied || got.Hold != decision.Confirmed || got.Oversold != 0 {
			f.Fatalf("settled %+v", got)
		}
		if got := f.report(s); got.Applied {
			f.Fatalf("repeated settlement %+v", got)
		}
		f.units(d, 1, 0)
		if h := f.state(d, d.ID, decision.Confirmed); h.Subject != "s" || h.Units != 1 {
			f.Fatalf("hold %+v", h)
		}
		f.expect(decision.Gone, d)
		second := request(withCapacity(1))
		if got := f.report(settlement(second, store.Decided{Hold: second.ID}, rules.Booked)); got.Oversold != 1 {
			f.Fatalf("settled %+v, want oversold by 1", got)
		}
		f.units(d, 2, 0)
	}},
	{"booked by an adopter of an unseen hold finishes its id too", func(f *fixture) {
		first := request(withKey("k"))
		adopter := again(first)
		f.report(settlement(adopter, store.Decided{Hold: first.ID}, rules.Booked))
		f.state(first, first.ID, decision.Confirmed)
		f.expect(decision.Gone, adopter)
		f.expect(decision.Gone, first)
		f.units(first, 1, 0)
	}},
	{"duplicate on an unseen hold creates none: the booking has a settlement of its own", func(f *fixture) {
		first, second := request(withSubject("s")), request(withSubject("s"))
		f.report(settlement(first, store.Decided{Hold: first.ID}, rules.Duplicate))
		f.report(settlement(second, store.Decided{Hold: second.ID}, rules.Booked))
		f.units(first, 1, 0)
	}},
	{"refused on an unseen hold does nothing", func(f *fixture) {
		for _, outcome := range []rules.Outcome{rules.Refused, rules.Busy, rules.NeverSent} {
			d := request(withKey("k"))
			f.report(settlement(d, store.Decided{Hold: d.ID}, outcome))
			f.unseen(d)
		}
		d := request(withKey("k"))
		f.admit(d)
		f.units(d, 0, 1)
	}},
}
