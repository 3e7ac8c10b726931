package storetest

import (
	"context"
	"fmt"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// forcedTests are about requests that went to the backend without a decide and are
// registered by a touch.
var forcedTests = []test{
	{"a forced request holds its units, whatever is left", func(f *fixture) {
		d := request(withCapacity(2))
		f.finish(rules.Booked, again(d, withUnits(2)))
		forced := again(d, withUnits(3), withSubject("s"))
		f.touch(d, "gate-a", force(forced))
		f.units(d, 2, 3)
		h := f.state(d, forced.ID, decision.Held)
		if h.Units != 3 || h.Subject != "s" {
			f.Fatalf("hold %+v", h)
		}
		f.between("the time from take to expiry", h.ExpiresAt.Sub(h.TakenAt), holdTTL-moment, holdTTL+moment)
		if got := f.slot(d); got.Inflight != 1 || !got.Dirty {
			f.Fatalf("slot %+v", got)
		}
		f.expect(decision.SoldOut, again(d))
	}},
	{"a forced hold is settled like any other", func(f *fixture) {
		for outcome, want := range map[rules.Outcome]decision.HoldState{
			rules.Booked: decision.Confirmed, rules.Duplicate: decision.Confirmed, rules.Unknown: decision.HoldUnknown,
			rules.Refused: decision.Released, rules.SoldOut: decision.Released, rules.Busy: decision.Released, rules.NeverSent: decision.Released,
		} {
			d := request(withCapacity(1), func(d *store.Decide) { d.Slot = outcome.String() })
			f.touch(d, "gate-a", force(d))
			if got := f.settle(d, grantOf(d), outcome); got.Hold != want || got.Late || got.Oversold != 0 {
				f.Fatalf("%s: settled %+v, want %s", outcome, got, want)
			}
			if got := f.report(settlement(d, grantOf(d), outcome)); got.Applied || got.Hold != want {
				f.Fatalf("%s, again: settled %+v", outcome, got)
			}
			f.resume(d, "gate-a")
			switch want {
			case decision.Confirmed:
				f.units(d, 1, 0)
			case decision.HoldUnknown:
				f.units(d, 0, 1)
			default:
				f.units(d, 0, 0)
			}
		}
	}},
	{"a forced hold lapses at its hold_ttl, and a booking after that is counted and told", func(f *fixture) {
		d := request(withCapacity(1))
		f.touch(d, "gate-a", force(d))
		f.Advance(holdTTL - moment)
		f.units(d, 0, 1)
		f.Advance(2 * moment)
		f.finish(rules.Booked, again(d))
		got := f.settle(d, grantOf(d), rules.Booked)
		if !got.Late || got.Oversold != 1 {
			f.Fatalf("settled %+v", got)
		}
		f.units(d, 2, 0)
	}},
	{"a forced request takes room for what is left of its lease", func(f *fixture) {
		d := request(withCapacity(99), func(d *store.Decide) { d.MaxInflight = 1 })
		running, over := force(again(d)), force(again(d))
		running.Lease, over.Lease = lease/2, 0
		f.touch(d, "gate-a", running, over)
		if got := f.slot(d); got.Inflight != 1 || got.Held != 2 {
			f.Fatalf("slot %+v", got)
		}
		f.expect(decision.NoRoom, again(d))
		f.Advance(lease/2 + moment)
		f.admit(again(d))
	}},
	{"a forced id that is known is left as it is", func(f *fixture) {
		many := withCapacity(99)
		held, unknown, confirmed := request(many), request(many), request(many)
		refused, released, lapsed := request(many), request(many), request(many)
		f.admit(lapsed)
		f.Advance(holdTTL + moment)
		f.units(held, 0, 0)
		f.admit(held)
		f.settle(unknown, f.admit(unknown), rules.Unknown)
		f.finish(rules.Booked, confirmed)
		f.finish(rules.Refused, refused)
		f.admit(released)
		f.release(released, released.ID, decision.Held)
		for _, known := range []*store.Decide{held, unknown, confirmed, refused, released, lapsed} {
			before, entries := f.slot(known), len(f.ledger(known))
			f.touch(known, "gate-a", force(known))
			after := f.slot(known)
			after.Version, after.Dirty = before.Version, before.Dirty
			if fmt.Sprintf("%+v", after) != fmt.Sprintf("%+v", before) || len(f.ledger(known)) != entries {
				f.Fatalf("%+v became %+v, %d entries %d", before, after, entries, len(f.ledger(known)))
			}
		}
	}},
	{"a forced retry that is known is left as it is", func(f *fixture) {
		first := request(withKey("k"), retrying)
		f.settle(first, f.admit(first), rules.Unknown)
		second := again(first)
		got := f.admit(second)
		f.touch(second, "gate-a", forceUnder(got.Hold, second))
		f.settle(second, got, rules.Refused)
		f.state(first, first.ID, decision.HoldUnknown)
		f.touch(second, "gate-a", forceUnder(got.Hold, second))
		f.state(first, first.ID, decision.HoldUnknown)
		if got := f.slot(first); got.Inflight != 0 || got.Held != 1 {
			f.Fatalf("slot %+v", got)
		}
		f.settle(first, got, rules.Refused)
		f.units(first, 0, 0)
	}},
	{"a request that one touch names twice is registered once", func(f *fixture) {
		first := request()
		second := again(first)
		f.touch(first, "gate-a", force(first), force(first), forceUnder(first.ID, second), forceUnder(first.ID, second))
		under := store.Decided{Hold: first.ID}
		f.settle(first, under, rules.Refused)
		f.units(first, 0, 1)
		f.settle(second, under, rules.Refused)
		f.units(first, 0, 0)
	}},
	{"P3: a touch repeated changes nothing but the mark's end", func(f *fixture) {
		d := request(withKey("k"))
		f.touch(d, "gate-a", force(d))
		before, entries := f.slot(d), len(f.ledger(d))
		f.Advance(moment)
		f.touch(d, "gate-a", force(d))
		after := f.slot(d)
		after.Version = before.Version
		if fmt.Sprintf("%+v", after) != fmt.Sprintf("%+v", before) || len(f.ledger(d)) != entries {
			f.Fatalf("%+v became %+v, %d entries %d", before, after, entries, len(f.ledger(d)))
		}
		f.settle(d, grantOf(d), rules.Booked)
		f.touch(d, "gate-a", force(d))
		f.units(d, 1, 0)
		f.expect(decision.Replay, again(d))
	}},
	{"H4: a late copy of a forced request's decide is its grant, and gone once it settled", func(f *fixture) {
		d := request(withKey("k"))
		f.touch(d, "gate-a", force(d))
		if got := f.admit(d); got.Hold != d.ID || got.Adopted {
			f.Fatalf("granted %+v", got)
		}
		f.units(d, 0, 1)
		f.settle(d, grantOf(d), rules.Refused)
		f.expect(decision.Gone, d)
		f.units(d, 0, 0)
	}},
	{"H2: a forced retry adds an unanswered attempt to the hold it goes on under", func(f *fixture) {
		first := request(withCapacity(1))
		f.touch(first, "gate-a", force(first))
		f.settle(first, grantOf(first), rules.Unknown)
		f.Advance(holdTTL - moment)
		second := again(first)
		f.touch(first, "gate-a", forceUnder(first.ID, second))
		f.state(first, first.ID, decision.Held)
		f.units(first, 0, 1)
		f.Advance(2 * moment)
		f.units(first, 0, 1) // hold_ttl has started anew, as for an adoption (H3)
		under := store.Decided{Hold: first.ID}
		f.settle(second, under, rules.Refused)
		f.state(first, first.ID, decision.HoldUnknown)
		f.settle(first, under, rules.Refused)
		f.units(first, 0, 0)
	}},
	{"H2: a hold and the retries under it are registered in whatever order they come", func(f *fixture) {
		first := request(withCapacity(1))
		second, third := again(first), again(first)
		f.touch(first, "gate-a", forceUnder(first.ID, third), force(first), forceUnder(first.ID, second))
		if got := f.slot(first); got.Inflight != 3 || got.Held != 1 {
			f.Fatalf("slot %+v", got)
		}
		under := store.Decided{Hold: first.ID}
		f.settle(third, under, rules.Refused)
		f.settle(second, under, rules.Refused)
		f.state(first, first.ID, decision.HoldUnknown)
		f.units(first, 0, 1)
		f.settle(first, under, rules.Booked)
		f.units(first, 1, 0)
	}},
	{"a forced retry takes its hold again where that is gone", func(f *fixture) {
		for name, lose := range map[string]func(first *store.Decide){
			"lapsed":             func(first *store.Decide) { f.Advance(holdTTL + moment) },
			"lapsed, forgotten":  func(first *store.Decide) { f.Advance(holdTTL + store.CopyWindow + moment) },
			"released by hand":   func(first *store.Decide) { f.release(first, first.ID, decision.HoldUnknown) },
			"refused after all":  func(first *store.Decide) { f.settle(first, grantOf(first), rules.Refused) },
			"never known before": func(first *store.Decide) { first.ID = newID() },
		} {
			first := request(withCapacity(9), withSubject("s"), func(d *store.Decide) { d.Slot = name })
			f.settle(first, f.admit(first), rules.Unknown)
			lose(first)
			f.slot(first)
			second := again(first)
			before := f.slot(first).Held
			f.touch(first, "gate-a", forceUnder(first.ID, second))
			f.state(first, first.ID, decision.Held)
			f.units(first, 0, before+1)
			if got := f.settle(second, store.Decided{Hold: first.ID}, rules.Booked); got.Hold != decision.Confirmed || got.Late {
				f.Fatalf("%s: settled %+v", name, got)
			}
			f.units(first, 1, before)
		}
	}},
	{"a forced retry of a booked hold takes nothing more", func(f *fixture) {
		first := request(withCapacity(9))
		f.finish(rules.Booked, first)
		second := again(first)
		f.touch(first, "gate-a", forceUnder(first.ID, second))
		f.state(first, first.ID, decision.Confirmed)
		f.units(first, 1, 0)
	}},
	{"one_per_subject: a forced hold is busy, then held by the subject", func(f *fixture) {
		d := request(withSubject("s"), onePerSubject, withCapacity(9))
		f.touch(d, "gate-a", force(d))
		if got := f.expect(decision.SubjectBusy, again(d)); got.Owner != d.ID {
			f.Fatalf("owner %q, want %q", got.Owner, d.ID)
		}
		f.admit(again(d, withSubject("t")))
		f.settle(d, grantOf(d), rules.Booked)
		f.expect(decision.SubjectHolds, again(d))
	}},
	{"one_per_subject: an unanswered forced hold is gone on under", func(f *fixture) {
		d := request(withSubject("s"), onePerSubject, retrying)
		f.touch(d, "gate-a", force(d))
		f.settle(d, grantOf(d), rules.Unknown)
		if got := f.admit(again(d)); !got.Adopted || got.Hold != d.ID {
			f.Fatalf("granted %+v", got)
		}
	}},
	{"max_per_subject counts a forced hold", func(f *fixture) {
		d := request(withSubject("s"), func(d *store.Decide) { d.MaxPerSubject = 2 })
		elsewhere := again(d, func(d *store.Decide) { d.Slot = "lesson-2" })
		f.touch(d, "gate-a", force(again(d, withUnits(2))))
		f.expect(decision.SubjectFull, again(elsewhere))
		f.Advance(holdTTL + moment)
		f.units(d, 0, 0)
		f.admit(again(elsewhere))
	}},
	{"max_per_subject counts a forced hold that is kept as unknown", func(f *fixture) {
		d := request(withSubject("s"), keepUnknown, func(d *store.Decide) { d.MaxPerSubject = 1 })
		f.touch(d, "gate-a", force(d))
		f.Advance(2 * holdTTL)
		f.state(d, d.ID, decision.HoldUnknown)
		f.expect(decision.SubjectFull, again(d, func(d *store.Decide) { d.Slot = "lesson-2" }))
	}},
	{"the ledger tells what was forced", func(f *fixture) {
		d := request(withUnits(2))
		f.touch(d, "gate-a", force(d))
		newest := f.ledger(d)[0]
		if newest.Hold != d.ID || newest.Units != 2 || newest.From != decision.NoHold || newest.To != decision.Held || newest.Cause != "forced" {
			f.Fatalf("entry %+v", newest)
		}
	}},
	{"one touch registers any number", func(f *fixture) {
		for _, n := range []int{0, 1, 64, 65, 200} {
			d := request(withCapacity(1), func(d *store.Decide) { d.Slot = fmt.Sprint(n) })
			var forced []store.Forced
			for i := range n {
				forced = append(forced, force(again(d, withKey(fmt.Sprintf("%d-%d", n, i)), withSubject(fmt.Sprint(i)))))
			}
			f.touch(d, "gate-a", forced...)
			f.touch(d, "gate-a", forced...)
			if got := f.slot(d); got.Held != int64(n) || got.Inflight != n || !got.Dirty {
				f.Fatalf("%d forced: %d held, %d in flight, dirty %t", n, got.Held, got.Inflight, got.Dirty)
			}
		}
	}},
	{"P1: a crowd that meets a touch is admitted within what it left", func(f *fixture) {
		const capacity = 9
		d := request(withCapacity(capacity))
		forced := []store.Forced{force(again(d)), force(again(d)), force(again(d))}
		f.touch(d, "gate-a", forced...)
		f.crowd(func(i int, gate store.Store) {
			t := &store.Touch{Gate: "gate-a", Query: query(d), Lease: markLease, Forced: forced}
			if err := gate.Touch(context.Background(), t); err != nil {
				f.Errorf("touch: %v", err)
			}
			r := again(d)
			got := f.ask(gate, r)
			for got.Verdict == decision.NoRoom {
				got = f.ask(gate, r)
			}
			if got.Verdict == decision.Admitted {
				f.tell(gate, settlement(r, got, rules.Booked))
			}
		})
		f.units(d, capacity-int64(len(forced)), int64(len(forced)))
	}},
}

// force is a request like d that went to the backend without being asked about.
func force(d *store.Decide) store.Forced { return forceUnder(d.ID, d) }

// forceUnder is one that went as the retry of an earlier request.
func forceUnder(hold string, d *store.Decide) store.Forced {
	return store.Forced{
		ID: d.ID, Hold: hold, Subject: d.Subject, Units: d.Units,
		HoldTTL: d.HoldTTL, Lease: d.Lease, MaxPerSubject: d.MaxPerSubject,
		Scope: d.Scope, Fingerprint: d.Fingerprint,
		Group: d.Group, Partition: d.Partition, Key: d.Key, KeyTTL: d.KeyTTL,
	}
}

// grantOf is what a gate that decided on its own goes by.
func grantOf(d *store.Decide) store.Decided { return store.Decided{Hold: d.ID} }

func (f *fixture) ledger(d *store.Decide) []store.Entry {
	f.Helper()
	entries, err := f.gate().Ledger(context.Background(), d.Pool, d.Slot, 1000)
	if err != nil {
		f.Fatalf("ledger: %v", err)
	}
	return entries
}
