package degrade

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// errHeld: a settlement waits until the touched slots are marked.
var errHeld = errors.New("the touched slots are not marked yet")

// Passing is one request at the backend that the store may not know of: because it
// was sent without the store's leave, or because the store has lost what it granted.
type Passing struct {
	name   slotName
	query  store.SlotQuery
	forced store.Forced
	ends   time.Time // of its lease
	// sent: the store may know it. moved: the store's run changed while it ran.
	// ended: its settlement, when it ended before the store was known to know it. All
	// are guarded by Recovery.mu.
	sent, moved bool
	ended       *store.Settle
}

func newPassing(q store.SlotQuery, forced store.Forced) *Passing {
	p := new(Passing)
	p.begin(q, forced)
	return p
}

func (p *Passing) begin(q store.SlotQuery, forced store.Forced) {
	p.name, p.query, p.forced, p.ends = slotName{q.Pool, q.Slot}, q, forced, time.Now().Add(forced.Lease)
}

// Begin notes a request of a slot before it is sent without the store's leave; nil when
// this outage has touched too many slots.
func (r *Recovery) Begin(q store.SlotQuery, forced store.Forced) *Passing {
	p := newPassing(q, forced)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.await(p) {
		return nil
	}
	r.running[p] = struct{}{}
	r.nudge()
	return p
}

// await notes that a request is to be registered in the store; false when too many
// slots are touched. r.mu is held.
func (r *Recovery) await(p *Passing) bool {
	slot := r.touch(p.query)
	if slot == nil {
		return false
	}
	slot.pending[p.forced.ID] = p
	return true
}

// touch notes that a slot is to be marked; nil when there are too many. r.mu is held.
func (r *Recovery) touch(q store.SlotQuery) *touchedSlot {
	name := slotName{q.Pool, q.Slot}
	slot := r.touched[name]
	if slot == nil && len(r.touched) < maxTouched {
		slot = &touchedSlot{query: q, pending: make(map[string]*Passing)}
		r.touched[name] = slot
	}
	return slot
}

// End notes how a request that Begin noted ended. seen says that the store may have
// taken its decide, so that even a definite failure has to be settled.
func (r *Recovery) End(p *Passing, s *store.Settle, seen bool) {
	r.mu.Lock()
	delete(r.running, p)
	settle := p.sent || seen || !s.Outcome.Definite() || s.Keep
	pending := r.isPending(p)
	if pending && s.Outcome == rules.Unknown {
		// The store must hold its unit first; touchAll settles it then.
		p.ended, settle, pending = s, false, false
	}
	r.mu.Unlock()
	switch {
	case settle && pending:
		r.backlog.AddUnseen(s)
	case settle:
		r.backlog.Add(s)
	}
	if pending {
		// Only now: what is neither pending nor in the backlog counts as settled, and
		// the slot would be given back to its counters without this booking.
		r.mu.Lock()
		if r.isPending(p) {
			delete(r.touched[p.name].pending, p.forced.ID)
		}
		r.mu.Unlock()
	}
	r.nudge()
}

// isPending: the store does not know the request yet. r.mu is held.
func (r *Recovery) isPending(p *Passing) bool {
	slot := r.touched[p.name]
	return slot != nil && slot.pending[p.forced.ID] == p
}

// touchAll marks every touched slot that is not marked, or has requests that are
// not registered, or whose mark grows old. It returns false when the store fails.
func (r *Recovery) touchAll(ctx context.Context) bool {
	return together(r.untouched(), func() error {
		slot, t, passing := r.nextTouch()
		if slot == nil {
			return errDone
		}
		err := r.guard.call("touch", func() error { return r.guard.Store.Touch(ctx, t) })
		r.noteTouched(slot, passing, err)
		return err
	}) == nil
}

// errDone: there is nothing more to do.
var errDone = errors.New("done")

// together repeats a step, at several places at once, until it says errDone everywhere
// or fails anywhere, and returns that failure. size is about how many steps there are.
func together(size int, step func() error) error {
	var failure atomic.Pointer[error]
	var steps sync.WaitGroup
	for range min(size, touchers) {
		steps.Go(func() {
			for failure.Load() == nil {
				switch err := step(); {
				case errors.Is(err, errDone):
					return
				case err != nil:
					failure.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	steps.Wait()
	if err := failure.Load(); err != nil {
		return *err
	}
	return nil
}

// untouched counts the slots for nextTouch.
func (r *Recovery) untouched() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lease := r.lease()
	for _, slot := range r.touched {
		if slot.isDue(lease) {
			n++
		}
	}
	return n
}

// lease is for how long slots are marked: the more there are, the longer a round takes.
// r.mu is held.
func (r *Recovery) lease() time.Duration {
	return touchLease + time.Duration(len(r.touched))*touchShare
}

func (s *touchedSlot) isDue(lease time.Duration) bool {
	return !s.underWay && (len(s.pending) > 0 || time.Since(s.marked) >= lease/3)
}

func (r *Recovery) nextTouch() (*touchedSlot, *store.Touch, []*Passing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lease := r.lease()
	for _, slot := range r.touched {
		if !slot.isDue(lease) {
			continue
		}
		slot.underWay = true
		t := &store.Touch{Gate: r.gate, Query: slot.query, Lease: lease}
		var passing []*Passing
		for _, p := range slot.pending {
			p.sent = true
			forced := p.forced
			forced.Lease = max(0, time.Until(p.ends))
			if p.ended != nil {
				forced.Lease = 0 // nobody waits for it any more
			}
			t.Forced = append(t.Forced, forced)
			passing = append(passing, p)
		}
		return slot, t, passing
	}
	return nil, nil, nil
}

func (r *Recovery) noteTouched(slot *touchedSlot, passing []*Passing, err error) {
	var ended []*store.Settle
	r.mu.Lock()
	slot.underWay = false
	if err == nil {
		slot.marked = time.Now()
		for _, p := range passing {
			delete(slot.pending, p.forced.ID)
			if p.ended != nil {
				ended = append(ended, p.ended)
			}
		}
	}
	r.mu.Unlock()
	r.backlog.AddAll(ended, true) // nobody was promised that they are in the journal
}

func (r *Recovery) hasTouched() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.touched) > 0
}
