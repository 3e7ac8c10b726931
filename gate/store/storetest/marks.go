package storetest

import (
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// markTests are about the full mark and its lone probe.
var markTests = []test{
	{"sold_out marks the slot full though units are left", func(f *fixture) {
		d := request(withCapacity(9))
		f.finish(rules.SoldOut, d)
		f.full(d, 1)
		f.units(d, 0, 0)
		got := f.expect(decision.SoldOut, again(d))
		f.between("retry after", got.RetryAfter, 1, time.Second)
	}},
	{"a mark is for so many units or more", func(f *fixture) {
		d := request(withCapacity(9))
		f.finish(rules.SoldOut, again(d, withUnits(3)))
		f.full(d, 3)
		f.expect(decision.SoldOut, again(d, withUnits(4)))
		f.expect(decision.SoldOut, again(d, withUnits(3)))
		fewer := again(d, withUnits(2))
		got := f.admit(fewer)
		if got.Probe {
			f.Fatal("a request below the mark is no probe")
		}
		f.settle(fewer, got, rules.SoldOut)
		f.full(d, 2)
	}},
	{"after the pause one request is the lone probe", func(f *fixture) {
		d := f.marked(withCapacity(9))
		probe := f.probe(d)
		if h := f.admit(probe); !h.Probe {
			f.Fatal("a repeated probe's grant lost its Probe")
		}
		f.expect(decision.SoldOut, again(d))
		f.Advance(lease - moment)
		f.expect(decision.SoldOut, again(d))
	}},
	{"a probe that never settles is followed by another after its lease", func(f *fixture) {
		d := f.marked(withCapacity(9))
		f.probe(d)
		f.Advance(lease + moment)
		f.probe(d)
	}},
	{"the probe's sold_out doubles the pause, from 1 s up to 30 s", func(f *fixture) {
		d := f.marked(learned)
		for _, pause := range []time.Duration{2, 4, 8, 16, 30, 30} {
			pause *= time.Second
			probe := again(d)
			got := f.admit(probe)
			if !got.Probe {
				f.Fatalf("before the pause of %v: not a probe", pause)
			}
			f.settle(probe, got, rules.SoldOut)
			refused := f.expect(decision.SoldOut, again(d))
			f.between("retry after", refused.RetryAfter, pause-time.Second, pause)
			if pause > 2*moment {
				f.Advance(pause - moment)
				f.expect(decision.SoldOut, again(d))
				f.Advance(2 * moment)
			} else {
				f.Advance(pause + moment)
			}
		}
	}},
	{"sold_out of requests that are not the probe leaves the pause", func(f *fixture) {
		d := request(learned)
		var grants []store.Decided
		var requests []*store.Decide
		for range store.LearnedInflight {
			r := again(d)
			requests, grants = append(requests, r), append(grants, f.admit(r))
		}
		for i, r := range requests {
			f.settle(r, grants[i], rules.SoldOut)
		}
		got := f.expect(decision.SoldOut, again(d))
		f.between("retry after", got.RetryAfter, 1, time.Second)
		f.Advance(moment)
		f.probe(d)
	}},
	{"the probe's unknown keeps mark and pause", func(f *fixture) {
		d := f.marked(learned)
		probe := again(d)
		f.settle(probe, f.admit(probe), rules.Unknown)
		f.full(d, 1)
		f.expect(decision.SoldOut, again(d))
		f.Advance(lease + moment)
		second := f.probe(d)
		f.settle(second, f.admit(second), rules.SoldOut)
		got := f.expect(decision.SoldOut, again(d))
		f.between("retry after", got.RetryAfter, time.Second, 2*time.Second)
	}},
	{"the probe's refused and busy let the next probe go at once", func(f *fixture) {
		for _, outcome := range []rules.Outcome{rules.Refused, rules.Busy} {
			d := f.marked(withCapacity(9), func(d *store.Decide) { d.Slot = outcome.String() })
			probe := f.probe(d)
			f.settle(probe, f.admit(probe), outcome)
			f.full(d, 1)
			f.probe(d)
			f.expect(decision.SoldOut, again(d))
		}
	}},
	{"the probe's never_sent lets the next probe go after a second", func(f *fixture) {
		d := f.marked(withCapacity(9))
		probe := f.probe(d)
		f.settle(probe, f.admit(probe), rules.NeverSent)
		f.full(d, 1)
		got := f.expect(decision.SoldOut, again(d))
		f.between("retry after", got.RetryAfter, 1, time.Second)
		f.Advance(moment)
		f.probe(d)
	}},
	{"the probe's booked ends the mark where the capacity is a number", func(f *fixture) {
		d := f.marked(withCapacity(9))
		probe := f.probe(d)
		f.settle(probe, f.admit(probe), rules.Booked)
		f.full(d, 0)
		for range 3 {
			if f.admit(again(d)).Probe {
				f.Fatal("a probe without a mark")
			}
		}
	}},
	{"the probe's booked reopens a learned slot one unit at a time", func(f *fixture) {
		d := f.marked(learned)
		probe := f.probe(d)
		for range 3 {
			f.settle(probe, f.admit(probe), rules.Booked)
			f.full(d, 1)
			probe = f.probe(d)
			f.expect(decision.SoldOut, again(d))
		}
	}},
	{"no probe where the units are gone", func(f *fixture) {
		d := request(withCapacity(1))
		first := again(d)
		got := f.admit(first)
		f.settle(first, got, rules.SoldOut)
		f.change(d, store.SlotChange{Closed: ptr(false)})
		f.finish(rules.Booked, again(d))
		f.Advance(moment)
		f.expect(decision.SoldOut, again(d))
	}},
	{"H12: a release since the decide leaves no mark", func(f *fixture) {
		for name, release := range map[string]func(d, other *store.Decide, got store.Decided){
			"refused":  func(_, other *store.Decide, got store.Decided) { f.settle(other, got, rules.Refused) },
			"operator": func(d, other *store.Decide, _ store.Decided) { f.release(d, other.ID, decision.Held) },
			"set":      func(d, _ *store.Decide, _ store.Decided) { f.change(d, store.SlotChange{Capacity: ptr(int64(9))}) },
			"open":     func(d, _ *store.Decide, _ store.Decided) { f.change(d, store.SlotChange{Closed: ptr(false)}) },
		} {
			d := request(withCapacity(9), func(d *store.Decide) { d.Slot = name })
			other := again(d)
			otherGot := f.admit(other)
			got := f.admit(d)
			release(d, other, otherGot)
			f.settle(d, got, rules.SoldOut)
			f.full(d, 0)
			f.admit(again(d))
		}
	}},
	{"H12: sold_out, busy and never_sent are no release", func(f *fixture) {
		for _, outcome := range []rules.Outcome{rules.Busy, rules.NeverSent} {
			d := request(withCapacity(9), func(d *store.Decide) { d.Slot = outcome.String() })
			other := again(d)
			otherGot := f.admit(other)
			got := f.admit(d)
			f.settle(other, otherGot, outcome)
			f.settle(d, got, rules.SoldOut)
			f.full(d, 1)
		}
	}},
	{"a release ends the mark", func(f *fixture) {
		for name, release := range map[string]func(d, other *store.Decide, got store.Decided){
			"refused":  func(_, other *store.Decide, got store.Decided) { f.settle(other, got, rules.Refused) },
			"operator": func(d, other *store.Decide, _ store.Decided) { f.release(d, other.ID, decision.Held) },
			"set":      func(d, _ *store.Decide, _ store.Decided) { f.change(d, store.SlotChange{Capacity: ptr(int64(9))}) },
			"open":     func(d, _ *store.Decide, _ store.Decided) { f.change(d, store.SlotChange{Closed: ptr(false)}) },
		} {
			d := request(withCapacity(9), func(d *store.Decide) { d.Slot = name })
			other := again(d)
			got := f.admit(other)
			f.finish(rules.SoldOut, d)
			f.expect(decision.SoldOut, again(d))
			release(d, other, got)
			f.full(d, 0)
			if f.admit(again(d)).Probe {
				f.Fatalf("%s: a probe without a mark", name)
			}
		}
	}},
	{"sold_out, busy, never_sent and booked of others keep the mark", func(f *fixture) {
		for _, outcome := range []rules.Outcome{rules.SoldOut, rules.Busy, rules.NeverSent, rules.Booked, rules.Unknown} {
			d := request(withCapacity(9), func(d *store.Decide) { d.Slot = outcome.String() })
			other := again(d)
			got := f.admit(other)
			f.finish(rules.SoldOut, d)
			f.settle(other, got, outcome)
			f.full(d, 1)
		}
	}},
	{"learned: 1,000 requests for 5 seats, at most 40 reach the backend", func(f *fixture) {
		d := request(learned)
		type attempt struct {
			d   *store.Decide
			got store.Decided
		}
		var atBackend []attempt
		booked, reached := 0, 0
		settle := func() {
			a := atBackend[0]
			atBackend = atBackend[1:]
			outcome := rules.SoldOut
			if booked < 5 {
				booked++
				outcome = rules.Booked
			}
			f.settle(a.d, a.got, outcome)
		}
		for i := range 1000 {
			if i%50 == 49 {
				f.Advance(time.Second)
			}
			r := again(d)
			got := f.decide(r)
			for got.Verdict == decision.NoRoom {
				settle()
				got = f.decide(r)
			}
			if got.Verdict == decision.Admitted {
				reached++
				atBackend = append(atBackend, attempt{r, got})
			}
			if i%2 == 0 && len(atBackend) > 0 {
				settle()
			}
		}
		for len(atBackend) > 0 {
			settle()
		}
		if booked != 5 || reached > 40 {
			f.Fatalf("%d booked, %d reached the backend; want 5 and at most 40", booked, reached)
		}
		f.units(d, 5, 0)
	}},
}

// marked is a request for a slot that has been marked full and whose first pause
// has passed.
func (f *fixture) marked(change ...func(*store.Decide)) *store.Decide {
	f.Helper()
	d := request(change...)
	f.finish(rules.SoldOut, again(d))
	f.Advance(moment)
	return d
}

// probe admits a request like d and fails unless it is the lone probe.
func (f *fixture) probe(d *store.Decide) *store.Decide {
	f.Helper()
	r := again(d)
	if got := f.admit(r); !got.Probe {
		f.Fatalf("admitted, but not as the probe: %+v", got)
	}
	return r
}

// full fails unless the slot of d is marked full for so many units; 0 is not.
func (f *fixture) full(d *store.Decide, units int64) {
	f.Helper()
	if got := f.slot(d).Full; got != units {
		f.Fatalf("marked full for %d units, want %d", got, units)
	}
}
