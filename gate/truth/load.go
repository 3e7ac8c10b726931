package truth

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/store"
)

// Load looks at a slot that the store cannot decide on, or waits for the look that
// is under way in this process or another. It returns within truth.timeout and what
// the store takes for one call, or when ctx ends, which ends the wait and not the
// look. LoadDone: ask the store again. LoadMissing: there is no such slot, keep no
// state of it. LoadFailed: truth does not tell, go on as where capacity is not known.
// LoadAway: the store does not answer.
func (p *Pool) Load(ctx context.Context, slot string) gate.Loaded {
	if p.missing.has(slot, time.Now()) {
		return gate.LoadMissing
	}
	f, first := p.flights.join(slot)
	if first && !p.tasks.Go(func() {
		f.loaded = p.load(slot)
		p.flights.land(slot, f)
	}) {
		p.flights.land(slot, f) // closed
	}
	select {
	case <-f.landed:
		return f.loaded
	case <-ctx.Done():
		return gate.LoadFailed
	}
}

// load is the one load of a slot in this process.
func (p *Pool) load(slot string) gate.Loaded {
	ctx, cancel := context.WithTimeout(p.ctx, p.truth.Timeout)
	defer cancel()
	l := &look{pool: p, slot: slot, fresh: p.truth.Hot}
	if err := p.take(ctx, awaited); err != nil {
		return gate.LoadFailed
	}
	asked, looked, err := p.beginOrWait(ctx, l)
	switch {
	case err != nil:
		p.noteStore("look", err)
		return unloaded(err)
	case asked == nil:
		return gate.LoadDone
	}
	s, err := l.finish(ctx, asked, looked)
	if err != nil {
		p.noteStore("apply", err)
		return unloaded(err)
	}
	switch s.result {
	case LookMissing:
		p.missing.add(slot, time.Now())
		return gate.LoadMissing
	case LookFailed:
		return gate.LoadFailed
	}
	return gate.LoadDone // also where a later look was applied before
}

// unloaded tells a store that does not answer from a look that was not ended.
func unloaded(err error) gate.Loaded {
	if failure := new(store.Error); errors.As(err, &failure) {
		return gate.LoadAway
	}
	return gate.LoadFailed
}

// beginOrWait begins the look, or waits while another gate has the slot's lease:
// until its watch fires or the lease ends. It does not wait for a look that has been
// applied since this one was asked for. asked is nil after a wait. The watch is
// opened between two tries, so that an apply before it is not waited for.
func (p *Pool) beginOrWait(ctx context.Context, l *look) (asked *store.Look, looked store.Looked, err error) {
	asked, looked, err = l.begin(ctx)
	if err != nil || looked.Busy == 0 {
		return asked, looked, err
	}
	watch := p.store.WatchSlot(p.name, l.slot)
	defer watch.Close()
	asked, looked, err = l.begin(ctx)
	if err != nil || looked.Busy == 0 {
		return asked, looked, err
	}
	lease := time.NewTimer(looked.Busy)
	defer lease.Stop()
	select {
	case <-watch.C():
	case <-lease.C:
	case <-ctx.Done():
		return nil, store.Looked{}, ctx.Err()
	}
	return nil, store.Looked{}, nil
}

// Resync looks at a slot because an operator asks: it waits for max_rate, but for no
// other look. store.ErrNoSlot: truth has no such slot. Any other error says what kept
// the look from knowing.
func (p *Pool) Resync(ctx context.Context, slot string) error {
	l := &look{pool: p, slot: slot, force: true}
	if err := p.take(ctx, awaited); err != nil {
		return err
	}
	asked, looked, err := l.begin(ctx)
	if err != nil {
		return err
	}
	if looked.Busy > 0 {
		return fmt.Errorf("pool %s: the slot is not to be looked at for another %v", p.name, looked.Busy)
	}
	s, err := l.finish(ctx, asked, looked)
	switch {
	case err != nil:
		return err
	case s.result == LookMissing:
		return store.ErrNoSlot
	case s.result == LookFailed:
		return fmt.Errorf("truth of pool %s: %w", p.name, s.cause)
	}
	p.missing.forget(slot)
	return nil
}

// take waits for a token of max_rate.
func (p *Pool) take(ctx context.Context, who urgency) error {
	err := p.pace.take(ctx, who)
	switch {
	case errors.Is(err, errPaced), errors.Is(err, context.DeadlineExceeded):
		p.meter.Look(p.name, LookPaced)
	case err != nil:
		p.noteStore("decide", err)
	}
	return err
}

// flights are the loads under way, by slot.
type flights struct {
	mu sync.Mutex
	by map[string]*flight
}

// flight is one load. loaded may be read once landed is closed.
type flight struct {
	loaded gate.Loaded
	landed chan struct{}
}

// join returns the slot's flight; first says that the caller has to fly it.
func (f *flights) join(slot string) (_ *flight, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if under := f.by[slot]; under != nil {
		return under, false
	}
	if f.by == nil {
		f.by = map[string]*flight{}
	}
	made := &flight{landed: make(chan struct{})}
	f.by[slot] = made
	return made, true
}

// land ends a flight: who joins from now on flies anew.
func (f *flights) land(slot string, flown *flight) {
	f.mu.Lock()
	delete(f.by, slot)
	f.mu.Unlock()
	close(flown.landed)
}
