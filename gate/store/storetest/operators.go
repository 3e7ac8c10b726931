package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// operatorTests are the calls of the admin API.
var operatorTests = []test{
	{"a slot never seen is ErrNoSlot", func(f *fixture) {
		f.unseen(request())
	}},
	{"a slot reads as it stands", func(f *fixture) {
		d := request(withCapacity(9))
		f.finish(rules.Booked, again(d, withUnits(3)))
		f.admit(again(d, withUnits(2)))
		got := f.slot(d)
		if got.Pool != d.Pool || got.Slot != d.Slot || got.Capacity != 9 || got.Own || got.Closed || got.Inflight != 1 || len(got.Holds) != 2 {
			f.Fatalf("slot %+v", got)
		}
		if n, known := got.Available(); n != 4 || !known {
			f.Fatalf("available %d, known %t", n, known)
		}
	}},
	{"every change moves the version", func(f *fixture) {
		d := request()
		got := f.admit(d)
		first := f.slot(d).Version
		f.settle(d, got, rules.Booked)
		second := f.slot(d).Version
		f.change(d, store.SlotChange{Closed: ptr(true)})
		if third := f.slot(d).Version; first <= 0 || second <= first || third <= second {
			f.Fatalf("versions %d, %d, %d", first, second, third)
		}
	}},
	{"a change makes the slot", func(f *fixture) {
		d := request()
		got := f.change(d, store.SlotChange{Capacity: ptr(int64(5))})
		if got.Capacity != 5 || !got.Own {
			f.Fatalf("slot %+v", got)
		}
		f.units(d, 0, 0)
	}},
	{"a slot's own capacity goes before the configured one, until cleared", func(f *fixture) {
		d := request(withCapacity(1))
		f.change(d, store.SlotChange{Capacity: ptr(int64(2))})
		f.admit(again(d))
		f.admit(again(d))
		f.expect(decision.SoldOut, again(d))
		f.expect(decision.OverCapacity, again(d, withUnits(3), withCapacity(9)))
		got := f.change(d, store.SlotChange{ClearCapacity: true})
		if got.Capacity != 1 || got.Own {
			f.Fatalf("slot %+v", got)
		}
		f.expect(decision.OverCapacity, again(d, withUnits(2)))
		f.admit(again(d, withCapacity(3)))
	}},
	{"a learned slot becomes a numbered one when set", func(f *fixture) {
		d := request(learned)
		f.change(d, store.SlotChange{Capacity: ptr(int64(1))})
		f.admit(again(d))
		f.expect(decision.SoldOut, again(d))
	}},
	{"fields that are nil stay", func(f *fixture) {
		d := request()
		f.change(d, store.SlotChange{Capacity: ptr(int64(5)), Closed: ptr(true)})
		opens := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
		f.change(d, store.SlotChange{OpensAt: &opens})
		got := f.slot(d)
		if got.Capacity != 5 || !got.Closed || !got.OpensAt.Equal(opens) {
			f.Fatalf("slot %+v", got)
		}
	}},
	{"a release frees open and confirmed holds and tells what they were", func(f *fixture) {
		held, unknown, confirmed := request(withCapacity(9)), request(withCapacity(9)), request(withCapacity(9))
		f.admit(held)
		f.settle(unknown, f.admit(unknown), rules.Unknown)
		f.finish(rules.Booked, confirmed)
		f.release(held, held.ID, decision.Held)
		f.release(held, unknown.ID, decision.HoldUnknown)
		f.release(held, confirmed.ID, decision.Confirmed)
		f.units(held, 0, 0)
		f.state(held, held.ID, decision.NoHold)
	}},
	{"a release of what is not there is ErrNoHold", func(f *fixture) {
		d := request()
		f.finish(rules.Refused, d)
		for _, hold := range []string{d.ID, newID()} {
			if _, err := f.gate().Release(context.Background(), query(d), hold); !errors.Is(err, store.ErrNoHold) {
				f.Fatalf("release %s: %v", hold, err)
			}
		}
		lapsed := request()
		f.admit(lapsed)
		f.Advance(holdTTL + moment)
		f.units(d, 0, 0)
		if _, err := f.gate().Release(context.Background(), query(d), lapsed.ID); !errors.Is(err, store.ErrNoHold) {
			f.Fatalf("release of a lapsed hold: %v", err)
		}
		elsewhere := request(func(d *store.Decide) { d.Slot = "never seen" })
		if _, err := f.gate().Release(context.Background(), query(elsewhere), d.ID); !errors.Is(err, store.ErrNoHold) && !errors.Is(err, store.ErrNoSlot) {
			f.Fatalf("release in a slot never seen: %v", err)
		}
		f.unseen(elsewhere)
	}},
	{"holds are listed open first, then confirmed, newest 100 in all", func(f *fixture) {
		d := request(withCapacity(999))
		open := []string{}
		for range 3 {
			r := again(d)
			f.admit(r)
			open = append(open, r.ID)
		}
		newest := ""
		for range 105 {
			r := again(d)
			f.finish(rules.Booked, r)
			newest = r.ID
			f.Advance(10 * time.Millisecond)
		}
		got := f.slot(d)
		if len(got.Holds) != 100 || got.Confirmed != 105 {
			f.Fatalf("%d holds, %d confirmed", len(got.Holds), got.Confirmed)
		}
		has := func(id string) bool {
			return slices.ContainsFunc(got.Holds, func(h store.Hold) bool { return h.ID == id })
		}
		for i, h := range got.Holds {
			if (i < len(open)) != h.State.Open() {
				f.Fatalf("hold %d is %s", i, h.State)
			}
		}
		if !has(open[0]) || !has(open[2]) || !has(newest) {
			f.Fatal("an open hold or the newest is missing")
		}
	}},
	{"a pool is listed in pages", func(f *fixture) {
		want := map[string]bool{}
		for i := range 47 {
			d := request(func(d *store.Decide) { d.Slot = fmt.Sprintf("lesson-%d", i) })
			f.admit(d)
			want[d.Slot] = true
		}
		f.admit(request(func(d *store.Decide) { d.Pool = "seats"; d.Slot = "elsewhere" }))
		seen := map[string]bool{}
		cursor := ""
		for page := 0; ; page++ {
			slots, next, err := f.gate().Slots(context.Background(), store.SlotQuery{Pool: pool, Capacity: 2, Retain: retain}, cursor, 10)
			if err != nil {
				f.Fatal(err)
			}
			if len(slots) > 10 || page > 1000 {
				f.Fatalf("page %d has %d slots", page, len(slots))
			}
			for _, s := range slots {
				if !want[s.Slot] || s.Pool != pool || s.Held != 1 || s.Capacity != 2 || len(s.Holds) != 0 {
					f.Fatalf("listed %+v", s)
				}
				seen[s.Slot] = true
			}
			if cursor = next; cursor == "" {
				break
			}
		}
		if len(seen) != len(want) {
			f.Fatalf("listed %d of %d slots", len(seen), len(want))
		}
	}},
	{"a pool without slots lists none", func(f *fixture) {
		slots, next, err := f.gate().Slots(context.Background(), store.SlotQuery{Pool: "nothing", Capacity: 2, Retain: retain}, "", 10)
		if err != nil || len(slots) != 0 || next != "" {
			f.Fatalf("%v, %q, %v", slots, next, err)
		}
	}},
	{"the ledger tells every transition, newest first", func(f *fixture) {
		d := request(withKey("k"), withSubject("student-1"), retrying, withUnits(2))
		f.settle(d, f.admit(d), rules.Unknown)
		second := again(d)
		f.settle(second, f.admit(second), rules.Booked)
		f.release(d, d.ID, decision.Confirmed)
		lapsing := request(withSubject("student-2"))
		f.admit(lapsing)
		f.Advance(holdTTL + moment)
		f.units(d, 0, 0)

		want := []store.Entry{
			{Hold: lapsing.ID, Units: 1, From: decision.Held, To: decision.Lapsed, Cause: "lapse"},
			{Hold: lapsing.ID, Units: 1, From: decision.NoHold, To: decision.Held, Cause: "decide"},
			{Hold: d.ID, Units: 2, From: decision.Confirmed, To: decision.Released, Cause: "operator"},
			{Hold: d.ID, Units: 2, From: decision.Held, To: decision.Confirmed, Cause: "booked"},
			{Hold: d.ID, Units: 2, From: decision.HoldUnknown, To: decision.Held, Cause: "adopt"},
			{Hold: d.ID, Units: 2, From: decision.Held, To: decision.HoldUnknown, Cause: "unknown"},
			{Hold: d.ID, Units: 2, From: decision.NoHold, To: decision.Held, Cause: "decide"},
		}
		got, err := f.gate().Ledger(context.Background(), d.Pool, d.Slot, 100)
		if err != nil || len(got) != len(want) {
			f.Fatalf("%d entries, %v; want %d: %+v", len(got), err, len(want), got)
		}
		ids := map[string]bool{}
		for i, e := range got {
			w := want[i]
			if e.Hold != w.Hold || e.Units != w.Units || e.From != w.From || e.To != w.To || e.Cause != w.Cause {
				f.Fatalf("entry %d is %+v, want %+v", i, e, w)
			}
			if i > 0 && e.Time.After(got[i-1].Time) {
				f.Fatalf("entry %d is newer than the one before it", i)
			}
			ids[e.ID] = true
		}
		if len(ids) != len(got) {
			f.Fatal("two entries have one id")
		}
		if got[2].SubjectHash != got[6].SubjectHash || got[0].SubjectHash == got[6].SubjectHash || got[6].SubjectHash == "" || got[6].SubjectHash == "student-1" {
			f.Fatalf("subject hashes %q and %q", got[0].SubjectHash, got[6].SubjectHash)
		}
		if newest, err := f.gate().Ledger(context.Background(), d.Pool, d.Slot, 2); err != nil || len(newest) != 2 || newest[0].ID != got[0].ID {
			f.Fatalf("the newest two are %+v, %v", newest, err)
		}
	}},
	{"a cancelled context is a failure of the store that did nothing", func(f *fixture) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		d := request()
		_, err := f.gate().Decide(ctx, d)
		var failure *store.Error
		if !errors.As(err, &failure) || !errors.Is(err, context.Canceled) {
			f.Fatalf("decide: %v", err)
		}
		f.unseen(d)
	}},
	{"a closed store says so, and closes twice", func(f *fixture) {
		s := f.Store
		if err := s.Ping(context.Background()); err != nil {
			f.Fatal(err)
		}
		for range 2 {
			if err := s.Close(); err != nil {
				f.Fatal(err)
			}
		}
		d := request()
		_, decide := s.Decide(context.Background(), d)
		_, settle := s.Settle(context.Background(), settlement(d, store.Decided{Hold: d.ID}, rules.Booked))
		_, read := s.Slot(context.Background(), query(d))
		_, _, list := s.Slots(context.Background(), query(d), "", 10)
		_, change := s.Change(context.Background(), query(d), store.SlotChange{})
		_, release := s.Release(context.Background(), query(d), d.ID)
		_, ledger := s.Ledger(context.Background(), d.Pool, d.Slot, 10)
		for op, err := range map[string]error{
			"decide": decide, "settle": settle, "slot": read, "slots": list, "change": change,
			"release": release, "ledger": ledger, "ping": s.Ping(context.Background()),
		} {
			var failure *store.Error
			if !errors.As(err, &failure) || failure.Kind != store.KindClosed {
				f.Fatalf("%s after close: %v", op, err)
			}
		}
	}},
}
