package truth

import (
	"context"
	"errors"
	"sync"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/truth/source"
)

// returns looks for bookings that were given back behind the gate, in slots of which
// a look found more units than the counters knew. The zero value is ready.
type returns struct {
	mu    sync.Mutex
	slots map[string]bool // under way
}

// maxReturns bounds the slots that are looked into at once. What is over that is
// found at the slot's next drift, or by reconcile.
const maxReturns = 64

// suspect looks into a slot in the background.
func (r *returns) suspect(p *Pool, slot string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.slots[slot] || len(r.slots) >= maxReturns {
		return
	}
	if r.slots == nil {
		r.slots = map[string]bool{}
	}
	r.slots[slot] = true
	if !p.tasks.Go(func() {
		defer r.done(slot)
		if err := p.releaseReturned(p.ctx, slot); err != nil && p.ctx.Err() == nil && p.quiet.may("returned") {
			p.log.Warn("could not tell which holds' bookings were given back behind the gate; reconcile finds them",
				"slot", slot, "error", err)
		}
	}) {
		delete(r.slots, slot)
	}
}

func (r *returns) done(slot string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.slots, slot)
}

// releaseReturned releases the confirmed holds whose subject has no booking any more.
//
// A hold that is confirmed had its booking answered before it was read here; that
// booking is in a list which is read lag later (A3), unless it was given back.
func (p *Pool) releaseReturned(ctx context.Context, slot string) error {
	q := p.query(slot)
	before, err := p.store.Slot(ctx, q)
	if errors.Is(err, store.ErrNoSlot) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := sleep(ctx, p.truth.Lag); err != nil {
		return err
	}
	if err := p.pace.take(ctx, inBackground); err != nil {
		return err
	}
	list, err := p.bookings(ctx, slot)
	if err != nil {
		return err
	}
	booked := countSubjects(list)
	returned := returnedHolds(before.Holds, booked)
	if p.noteSubjects(before.Holds, booked); len(returned) > 0 && !p.known(booked) {
		return errStrangers
	}
	released := 0
	for _, h := range returned {
		_, err := p.store.Release(ctx, q, h.ID)
		switch {
		case err == nil:
			released++
		case !errors.Is(err, store.ErrNoHold):
			return err
		}
	}
	if released > 0 {
		p.log.Info("released holds whose bookings were given back behind the gate", "slot", slot, "holds", released)
	}
	return nil
}

// errStrangers: releasing would unblock every subject of the pool.
var errStrangers = errors.New("no subject of the pool's holds was ever among those that bookings.query lists: " +
	"its second column must be what the rule's subject extracts")

// returnedHolds are the confirmed holds whose subject has no booking.
func returnedHolds(holds []store.Hold, booked map[string]int) (returned []store.Hold) {
	for _, h := range holds {
		if h.State == decision.Confirmed && h.Subject != "" && booked[h.Subject] == 0 {
			returned = append(returned, h)
		}
	}
	return returned
}

// noteSubjects notes whether gate and list mean the same by a subject: that one was
// seen in both.
func (p *Pool) noteSubjects(holds []store.Hold, booked map[string]int) {
	if len(booked) == 0 || p.subjects.Load() {
		return
	}
	for _, h := range holds {
		if h.State == decision.Confirmed && booked[h.Subject] > 0 {
			p.subjects.Store(true)
			return
		}
	}
}

// known reports whether a subject that is not in the list has no booking, as far as
// that can be told.
func (p *Pool) known(booked map[string]int) bool { return len(booked) == 0 || p.subjects.Load() }

// countSubjects counts the bookings of each subject.
func countSubjects(list []source.Booking) map[string]int {
	booked := make(map[string]int, len(list))
	for i := range list {
		booked[list[i].Subject]++
	}
	return booked
}
