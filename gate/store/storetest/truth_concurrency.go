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

// seats is a backend that sells to whoever asks.
type seats struct {
	mu   sync.Mutex
	left int64
	low  int64 // the least there ever was
}

func (s *seats) take(units int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left -= units
	s.low = min(s.low, s.left)
}

func (s *seats) read() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

// truthConcurrentTests press from many goroutines through both gates while looks
// are made.
var truthConcurrentTests = []test{
	{"a crowd on a slot that nobody knows gets exactly what truth has left", func(f *fixture) {
		d, backend := request(truthful), &seats{left: 7}
		var admitted atomic.Int64
		f.crowd(func(i int, gate store.Store) {
			for {
				r := again(d)
				switch got := f.ask(gate, r); got.Verdict {
				case decision.Load:
					f.lookOnce(gate, d, backend, false)
				case decision.Admitted:
					admitted.Add(1)
					backend.take(1)
					f.tell(gate, settlement(r, got, rules.Booked))
				default:
					return
				}
				if f.Failed() {
					return
				}
			}
		})
		if admitted.Load() != 7 || backend.left != 0 {
			f.Fatalf("%d admitted, %d left", admitted.Load(), backend.left)
		}
		f.sync(d, 0)
		f.free(d, 0)
		f.units(d, 7, 0)
	}},
	{"bookings, failures, cancels and looks at once sell nothing twice, and are exact in the end", func(f *fixture) {
		d, backend := request(truthful, onePerSubject, blind), &seats{left: 5}
		f.sync(d, 5)
		f.crowd(func(i int, gate store.Store) {
			subject := withSubject(fmt.Sprintf("s%d", i))
			for n := range 20 {
				r := again(d, subject)
				got := f.ask(gate, r)
				switch {
				case got.Verdict != decision.Admitted:
					if n%4 == 0 {
						f.lookOnce(gate, d, backend, true)
					}
					continue
				case n%3 == 0:
					f.tell(gate, settlement(r, got, rules.Refused))
					continue
				}
				backend.take(1)
				f.tell(gate, settlement(r, got, rules.Booked))
				c := cancelOf(r)
				if got = f.ask(gate, c); got.Verdict != decision.Admitted || got.Hold != r.ID {
					f.Errorf("cancel decided %+v, want hold %s", got, r.ID)
					return
				}
				backend.take(-1)
				f.tell(gate, settlement(c, got, rules.Done))
			}
		})
		if backend.low < 0 || backend.left != 5 {
			f.Fatalf("%d left, once %d", backend.left, backend.low)
		}
		f.sync(d, 5)
		f.free(d, 5)
		f.units(d, 0, 0)
	}},
	{"of many looks at once one goes on, of many applies of one look one counts", func(f *fixture) {
		d := request(truthful)
		var began, applied atomic.Int64
		f.crowd(func(i int, gate store.Store) {
			l := &store.Look{Query: query(d), ID: fmt.Sprintf("look-%08d-%d", i, requestIDs.Add(1)), Lease: lookLease}
			got, err := gate.Look(context.Background(), l)
			if err != nil {
				f.Errorf("look: %v", err)
			}
			if got.Busy == 0 {
				began.Add(1)
			}
		})
		r := says(f.look(d, forced), 3)
		f.crowd(func(i int, gate store.Store) {
			got, err := gate.Apply(context.Background(), r)
			if err != nil {
				f.Errorf("apply: %v", err)
			}
			if got.Applied {
				applied.Add(1)
			}
		})
		if began.Load() != 1 || applied.Load() != 1 {
			f.Fatalf("%d looks began, %d applies counted", began.Load(), applied.Load())
		}
	}},
	{"of a crowd one leads, and a slot that is due is handed out once", func(f *fixture) {
		d := request(truthful)
		f.sync(d, 5)
		f.finish(rules.Booked, d)
		f.Advance(hot + moment)
		var leads, due atomic.Int64
		f.crowd(func(i int, gate store.Store) {
			if _, ok, err := gate.Lead(context.Background(), d.Pool, fmt.Sprintf("gate-%d", i), leadTTL); err != nil {
				f.Errorf("lead: %v", err)
			} else if ok {
				leads.Add(1)
			}
			slots, _, err := gate.Due(context.Background(), d.Pool, 9, dueLease)
			if err != nil {
				f.Errorf("due: %v", err)
			}
			due.Add(int64(len(slots)))
		})
		if leads.Load() != 1 || due.Load() != 1 {
			f.Fatalf("%d lead, the slot was handed out %d times", leads.Load(), due.Load())
		}
	}},
}

// lookOnce makes one look, unless another goes on.
func (f *fixture) lookOnce(gate store.Store, d *store.Decide, backend *seats, force bool) {
	l := &store.Look{Query: query(d), ID: newID(), Lease: lookLease, Force: force}
	if !force {
		l.Fresh = d.Hot // another's look in mid-sale would be short by what is open
	}
	looked, err := gate.Look(context.Background(), l)
	if err != nil {
		f.Errorf("look: %v", err)
		return
	}
	if looked.Busy > 0 {
		return
	}
	r := &store.Reading{Look: l, Looked: looked, Found: true, Value: backend.read(), Total: store.Learned, Hot: hot, Refresh: refresh}
	if _, err := gate.Apply(context.Background(), r); err != nil {
		f.Errorf("apply: %v", err)
	}
}
