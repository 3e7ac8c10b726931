package storetest

import (
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// holdTests are about taking, repeating, adopting and lapsing.
var holdTests = []test{
	{"H4: a repeated decide returns the recorded grant", func(f *fixture) {
		d := request(withKey("k"))
		f.admit(d)
		for range 3 {
			if repeated := f.admit(d); repeated.Hold != d.ID || repeated.Adopted {
				f.Fatalf("repeated grant %+v", repeated)
			}
		}
		f.units(d, 0, 1)
	}},
	{"H4: a late copy of a finished decide is gone and takes nothing", func(f *fixture) {
		for _, outcome := range []rules.Outcome{rules.Booked, rules.Refused, rules.SoldOut, rules.Busy, rules.NeverSent} {
			d := request(withKey("k"), func(d *store.Decide) { d.Slot = outcome.String(); d.Group = outcome.String() })
			f.finish(outcome, d)
			before := f.slot(d)
			f.expect(decision.Gone, d)
			f.Advance(store.CopyWindow - moment)
			f.expect(decision.Gone, d)
			f.units(d, before.Confirmed, before.Held)
		}
	}},
	{"H4: a late copy of a lapsed decide is gone", func(f *fixture) {
		d := request()
		f.admit(d)
		f.Advance(holdTTL + moment)
		f.units(d, 0, 0)
		f.expect(decision.Gone, d)
		f.units(d, 0, 0)
	}},
	{"H4: a late copy of an adopter's decide is its grant, and gone once it settled", func(f *fixture) {
		first := request(withKey("k"), retrying)
		f.settle(first, f.admit(first), rules.Unknown)
		second := again(first)
		got := f.admit(second)
		if repeated := f.admit(second); !repeated.Adopted || repeated.Hold != first.ID {
			f.Fatalf("repeated grant %+v", repeated)
		}
		f.settle(second, got, rules.Refused)
		f.expect(decision.Gone, second)
		f.state(first, first.ID, decision.HoldUnknown)
		f.units(first, 0, 1)
	}},
	{"H4: an id that settled after its hold lapsed stays gone for the copy window", func(f *fixture) {
		d := request()
		got := f.admit(d)
		f.Advance(holdTTL + moment)
		f.units(d, 0, 0)
		f.Advance(store.CopyWindow - moment)
		f.settle(d, got, rules.Refused)
		f.Advance(store.CopyWindow - moment)
		f.expect(decision.Gone, d)
	}},
	{"H4: an operator's release finishes the id", func(f *fixture) {
		d := request()
		got := f.admit(d)
		f.release(d, got.Hold, decision.Held)
		f.expect(decision.Gone, d)
		f.units(d, 0, 0)
	}},
	{"another verdict is computed afresh", func(f *fixture) {
		first, second := request(withCapacity(1)), request(withCapacity(1))
		got := f.admit(first)
		f.expect(decision.SoldOut, second)
		f.settle(first, got, rules.Refused)
		f.admit(second)
	}},
	{"a retry under the same key goes on under the same hold", func(f *fixture) {
		first := request(withKey("k"), retrying, withCapacity(1))
		f.settle(first, f.admit(first), rules.Unknown)
		second := again(first)
		got := f.admit(second)
		if !got.Adopted || got.Hold != first.ID {
			f.Fatalf("adopted %t, hold %s; want %s", got.Adopted, got.Hold, first.ID)
		}
		f.state(first, first.ID, decision.Held)
		f.units(first, 0, 1)
		if twin := f.expect(decision.Twin, again(first)); twin.Owner != second.ID {
			f.Fatalf("owner %q, want the adopter", twin.Owner)
		}
		f.settle(second, got, rules.Booked)
		f.units(first, 1, 0)
		f.expect(decision.Replay, again(first))
	}},
	{"H3: an adoption renews hold_ttl and lease", func(f *fixture) {
		first := request(withKey("k"), retrying)
		f.settle(first, f.admit(first), rules.Unknown)
		f.Advance(holdTTL - moment)
		f.admit(again(first))
		f.Advance(lease - moment)
		f.expect(decision.Twin, again(first))
		f.Advance(holdTTL - lease - moment)
		f.units(first, 0, 1)
		f.Advance(3 * moment)
		f.units(first, 0, 0)
	}},
	{"adoptions of one hold are bounded", func(f *fixture) {
		d := request(withKey("k"), retrying)
		f.settle(d, f.admit(d), rules.Unknown)
		for range store.MaxAdoptions {
			retry := again(d)
			f.settle(retry, f.admit(retry), rules.Unknown)
		}
		f.expect(decision.OutcomeUnknown, again(d))
		f.units(d, 0, 1)
	}},
	{"a held hold lapses after hold_ttl and its units are free", func(f *fixture) {
		d := request(withCapacity(1))
		f.admit(d)
		f.Advance(holdTTL - moment)
		f.expect(decision.SoldOut, request(withCapacity(1)))
		f.Advance(2 * moment)
		if got := f.admit(request(withCapacity(1))); got.Lapsed != 1 {
			f.Fatalf("lapsed %d, want 1", got.Lapsed)
		}
	}},
	{"P4: an unknown hold keeps its units until hold_ttl, from the decide", func(f *fixture) {
		d := request(withCapacity(1))
		got := f.admit(d)
		f.Advance(lease)
		f.settle(d, got, rules.Unknown)
		f.Advance(holdTTL - lease - moment)
		f.expect(decision.SoldOut, request(withCapacity(1)))
		f.Advance(2 * moment)
		f.admit(request(withCapacity(1)))
	}},
	{"a confirmed hold never lapses", func(f *fixture) {
		d := request()
		f.finish(rules.Booked, d)
		f.Advance(10 * holdTTL)
		f.units(d, 1, 0)
		if h := f.state(d, d.ID, decision.Confirmed); !h.ExpiresAt.IsZero() {
			f.Fatalf("a confirmed hold expires at %v", h.ExpiresAt)
		}
	}},
	{"keep_unknown: a due hold becomes unknown and keeps its units", func(f *fixture) {
		held, unknown := request(keepUnknown), request(keepUnknown)
		f.admit(held)
		f.settle(unknown, f.admit(unknown), rules.Unknown)
		f.Advance(20 * holdTTL)
		f.expect(decision.SoldOut, request(keepUnknown))
		f.state(held, held.ID, decision.HoldUnknown)
		f.state(unknown, unknown.ID, decision.HoldUnknown)
		f.units(held, 0, 2)
	}},
	{"keep_unknown: what was kept lapses once it is no longer configured", func(f *fixture) {
		d := request(keepUnknown)
		f.settle(d, f.admit(d), rules.Unknown)
		f.Advance(holdTTL + moment)
		f.units(d, 0, 1)
		f.Advance(20 * holdTTL)
		if got := f.admit(request()); got.Lapsed != 1 {
			f.Fatalf("lapsed %d, want 1", got.Lapsed)
		}
	}},
	{"one call lapses a bounded number of holds", func(f *fixture) {
		many := withCapacity(store.LapseBatch + 5)
		for range store.LapseBatch + 4 {
			f.admit(request(many))
		}
		f.Advance(holdTTL + moment)
		if got := f.admit(request(many)); got.Lapsed != store.LapseBatch {
			f.Fatalf("lapsed %d, want %d", got.Lapsed, store.LapseBatch)
		}
		if got := f.admit(request(many)); got.Lapsed != 4 {
			f.Fatalf("lapsed %d, want 4", got.Lapsed)
		}
		f.units(request(many), 0, 2)
	}},
	{"a replay lapses nothing it need not and takes nothing", func(f *fixture) {
		d := request(withKey("k"))
		f.finish(rules.Booked, d)
		f.expect(decision.Replay, again(d))
		f.units(d, 1, 0)
	}},
	{"a hold shows its subject, units and times", func(f *fixture) {
		d := request(withSubject("student-1"), withUnits(2))
		f.admit(d)
		h := f.state(d, d.ID, decision.Held)
		if h.Subject != "student-1" || h.Units != 2 {
			f.Fatalf("hold %+v", h)
		}
		f.between("the time from take to expiry", h.ExpiresAt.Sub(h.TakenAt), holdTTL-moment, holdTTL+moment)
	}},
}
