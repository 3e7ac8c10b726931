package storetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

const crowd = 64

// concurrentTests press from many goroutines through both gates.
var concurrentTests = []test{
	{"P1: a crowd on one slot gets exactly its units", func(f *fixture) {
		var admitted atomic.Int64
		f.crowd(func(i int, gate store.Store) {
			for range 4 {
				got := f.ask(gate, request(withCapacity(7)))
				if got.Verdict == decision.Admitted {
					admitted.Add(1)
				}
			}
		})
		if admitted.Load() != 7 {
			f.Fatalf("%d admitted, want 7", admitted.Load())
		}
		f.units(request(withCapacity(7)), 0, 7)
	}},
	{"P1: confirmed and held never exceed the capacity", func(f *fixture) {
		const capacity = 5
		d := request(withCapacity(capacity), retrying)
		f.crowd(func(i int, gate store.Store) {
			for n := range 30 {
				r := again(d, withKey(fmt.Sprintf("key-%d", (i+n)%20)))
				got := f.ask(gate, r)
				if got.Verdict == decision.Admitted {
					outcome := []rules.Outcome{rules.Refused, rules.Unknown, rules.Busy, rules.NeverSent, rules.Refused, rules.Booked}[(i+7*n)%6]
					if s := f.tell(gate, settlement(r, got, outcome)); s.Oversold != 0 {
						f.Errorf("oversold by %d", s.Oversold)
					}
				}
				s, err := gate.Slot(context.Background(), query(d))
				if f.Stepwise && err == store.ErrNoSlot && got.Verdict == decision.Twin {
					continue // its owner has claimed the key, and not come to the slot
				}
				if err != nil {
					f.Error(err)
				} else if s.Confirmed+s.Held > capacity {
					f.Errorf("%d confirmed and %d held of %d", s.Confirmed, s.Held, capacity)
				}
			}
		})
		if s := f.slot(d); s.Confirmed == 0 || s.Confirmed+s.Held > capacity {
			f.Fatalf("%d confirmed and %d held of %d", s.Confirmed, s.Held, capacity)
		}
	}},
	{"P2: of a crowd of twins one is admitted", func(f *fixture) {
		d := request(withKey("k"), withCapacity(999))
		var admitted, twins atomic.Int64
		owners := sync.Map{}
		f.crowd(func(i int, gate store.Store) {
			switch got := f.ask(gate, again(d)); got.Verdict {
			case decision.Admitted:
				admitted.Add(1)
				owners.Store(got.Hold, true)
			case decision.Twin:
				twins.Add(1)
				owners.Store(got.Owner, true)
			default:
				f.Errorf("verdict %s", got.Verdict)
			}
		})
		n := 0
		owners.Range(func(any, any) bool { n++; return true })
		if admitted.Load() != 1 || twins.Load() != crowd-1 || n != 1 {
			f.Fatalf("%d admitted, %d twins, %d owners", admitted.Load(), twins.Load(), n)
		}
	}},
	{"P3: one request decided by a crowd takes one hold", func(f *fixture) {
		d := request(withCapacity(999))
		f.crowd(func(i int, gate store.Store) {
			if got := f.ask(gate, d); got.Verdict != decision.Admitted || got.Hold != d.ID {
				f.Errorf("decided %+v", got)
			}
		})
		f.units(d, 0, 1)
	}},
	{"P3: one settlement reported by a crowd applies once", func(f *fixture) {
		d := request(withKey("k"))
		got := f.admit(d)
		var applied atomic.Int64
		f.crowd(func(i int, gate store.Store) {
			if f.tell(gate, settlement(d, got, rules.Booked)).Applied {
				applied.Add(1)
			}
		})
		if applied.Load() != 1 {
			f.Fatalf("applied %d times", applied.Load())
		}
		f.units(d, 1, 0)
	}},
	{"one_per_subject: of a crowd of one subject one is admitted", func(f *fixture) {
		d := request(withSubject("s"), onePerSubject, withCapacity(999))
		var admitted atomic.Int64
		f.crowd(func(i int, gate store.Store) {
			if f.ask(gate, again(d)).Verdict == decision.Admitted {
				admitted.Add(1)
			}
		})
		if admitted.Load() != 1 {
			f.Fatalf("%d admitted", admitted.Load())
		}
	}},
	{"max_per_subject: a crowd on many slots gets no more units", func(f *fixture) {
		d := request(withSubject("s"), func(d *store.Decide) { d.MaxPerSubject = 5 })
		var admitted atomic.Int64
		f.crowd(func(i int, gate store.Store) {
			if f.ask(gate, again(d, func(d *store.Decide) { d.Slot = fmt.Sprintf("lesson-%d", i) })).Verdict == decision.Admitted {
				admitted.Add(1)
			}
		})
		if admitted.Load() != 5 {
			f.Fatalf("%d admitted, want 5", admitted.Load())
		}
	}},
	{"max_inflight: never more than allowed are at the backend", func(f *fixture) {
		d := request(withCapacity(9999), func(d *store.Decide) { d.MaxInflight = 3 })
		var atBackend, served atomic.Int64
		f.crowd(func(i int, gate store.Store) {
			for range 20 {
				r := again(d)
				got := f.ask(gate, r)
				if got.Verdict != decision.Admitted {
					continue
				}
				if n := atBackend.Add(1); n > 3 {
					f.Errorf("%d at the backend", n)
				}
				served.Add(1)
				atBackend.Add(-1)
				f.tell(gate, settlement(r, got, rules.Booked))
			}
		})
		if served.Load() < 3 {
			f.Fatalf("%d served", served.Load())
		}
		f.units(d, served.Load(), 0)
	}},
	{"limits: a crowd gets exactly the burst", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(999), func(d *store.Decide) { d.SlotLimit, d.SubjectLimit = perMinute(5), perMinute(9) })
		var admitted, subject, slot atomic.Int64
		f.crowd(func(i int, gate store.Store) {
			switch f.ask(gate, again(d)).Verdict {
			case decision.Admitted:
				admitted.Add(1)
			case decision.LimitedSubject:
				subject.Add(1)
			case decision.LimitedSlot:
				slot.Add(1)
			}
		})
		if admitted.Load() != 5 || slot.Load() != 4 || subject.Load() != crowd-9 {
			f.Fatalf("%d admitted, %d over the slot's, %d over the subject's limit", admitted.Load(), slot.Load(), subject.Load())
		}
	}},
}

// crowd runs one goroutine for each of a crowd, every second one through Other,
// let off together.
func (f *fixture) crowd(member func(i int, gate store.Store)) {
	f.Helper()
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range crowd {
		gate := f.Store
		if i%2 == 1 {
			gate = f.Other
		}
		wg.Go(func() {
			<-start
			member(i, gate)
		})
	}
	close(start)
	wg.Wait()
	if f.Failed() {
		f.FailNow()
	}
}

// ask and tell are decide and settle for a goroutine of a crowd.
func (f *fixture) ask(gate store.Store, d *store.Decide) store.Decided {
	got, err := gate.Decide(context.Background(), d)
	if err != nil {
		f.Errorf("decide: %v", err)
	}
	return got
}

func (f *fixture) tell(gate store.Store, s *store.Settle) store.Settled {
	got, err := gate.Settle(context.Background(), s)
	if err != nil {
		f.Errorf("settle: %v", err)
	}
	return got
}
