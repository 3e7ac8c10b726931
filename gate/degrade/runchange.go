package degrade

import (
	"sync"
	"time"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// A store that comes back with other data (design H16, H17) may lack what it granted and
// what it was told last: a replica that was promoted lags, a server that was started
// again is empty. Work that it took in vain is work that passed it by. So when the run
// changes, each gate marks the slots of that work, registers its requests that are still
// at the backend or without an answer, and sends the last settlements again, in order, as
// on a return (H18). Of what the store still has nothing changes (P3).
//
// No request waits for it. Until the slots are marked they are unverified under the new
// run, and admit as learned; none is loaded before hold_ttl has passed.

// Run numbers the runs of the store that this process has seen.
func (r *Recovery) Run() int64 { return r.runs.Load() }

// Admitted notes a request that the store granted when it was asked in the given run, so
// that it can be registered should the store lose the grant; nil where no store can.
func (r *Recovery) Admitted(run int64, q store.SlotQuery, forced store.Forced) *Passing {
	if !r.mayChange() {
		return nil
	}
	p := passings.Get().(*Passing)
	p.begin(q, forced)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[p] = struct{}{}
	if run != r.runs.Load() {
		r.move(p)
		r.nudge()
	}
	return p
}

// passings are those of Admitted whose request has ended.
var passings = sync.Pool{New: func() any { return new(Passing) }}

// Ended notes how a request that Admitted noted ended (nil: none), once its settlement
// has been sent, or waits. p is no longer the caller's. It keeps nothing of s but the texts in it.
func (r *Recovery) Ended(p *Passing, s *store.Settle) {
	if p == nil {
		return
	}
	r.mu.Lock()
	delete(r.running, p)
	if !p.moved {
		r.mu.Unlock()
		*p = Passing{} // it was in running only: nobody else has it
		passings.Put(p)
		return
	}
	// Which run took the settlement is not known: to be settled after the request was
	// registered, it is sent again.
	kept := *s
	pending := r.isPending(p)
	if pending {
		p.ended = &kept
	}
	r.mu.Unlock()
	if !pending {
		r.backlog.AddAll([]*store.Settle{&kept}, false)
	}
}

// Took keeps a settlement that the store took, for a while, and nothing of s.
func (r *Recovery) Took(s *store.Settle) {
	if r.mayChange() {
		r.tail.add(s)
	}
}

// mayChange reports whether the store could come back with other data.
func (r *Recovery) mayChange() bool { return r.watch.C() != nil }

// runChanged makes up for what the store may have lost.
func (r *Recovery) runChanged() {
	last := r.tail.take()
	again := make([]*store.Settle, 0, len(last))
	r.mu.Lock()
	r.runs.Add(1)
	r.flushing = false
	for _, slot := range r.touched {
		slot.marked = time.Time{} // the mark may be lost too
	}
	for p := range r.running {
		r.move(p)
	}
	for _, s := range last {
		switch {
		case s.Pool != "" && s.Action == store.Book && s.Outcome == rules.Unknown:
			// The store must hold its unit first, as on a return.
			p := newPassing(queryOf(s), forcedOf(s))
			p.ended = s
			if !r.await(p) {
				again = append(again, s)
			}
		case s.Pool != "":
			r.touch(queryOf(s))
			fallthrough
		default:
			again = append(again, s)
		}
	}
	touched := len(r.touched)
	r.mu.Unlock()
	r.log.Warn("the store's data may lack what it was told last: telling it again",
		"settlements", len(last), "slots", touched)
	r.backlog.AddAll(again, true)
	r.nudge()
}

// move notes that the run changed while a request ran; r.mu is held. Where too many slots
// are touched, the request's settlement has to do.
func (r *Recovery) move(p *Passing) {
	p.moved = true
	r.await(p)
}

// queryOf is what a settlement tells of its slot.
func queryOf(s *store.Settle) store.SlotQuery {
	return store.SlotQuery{
		Pool: s.Pool, Slot: s.Slot, Capacity: s.Capacity, Truth: s.Truth,
		HoldTTL: s.HoldTTL, Retain: s.Retain, KeepUnknown: s.KeepUnknown, MaxPerSubject: s.MaxPerSubject,
	}
}

// forcedOf is a settlement's request as the store is to know it, when nobody waits for
// its answer any more.
func forcedOf(s *store.Settle) store.Forced {
	return store.Forced{
		ID: s.ID, Hold: s.Hold, Subject: s.Subject, Units: s.Units,
		HoldTTL: s.HoldTTL, MaxPerSubject: s.MaxPerSubject,
		Scope: s.Scope, Fingerprint: s.Fingerprint,
		Group: s.Group, Partition: s.Partition, Key: s.Key, KeyTTL: s.KeyTTL,
	}
}
