package redisstore

import (
	"context"
	"sync"
	"time"

	"github.com/slotgate/slotgate/luascripts"
)

const (
	// clerkRetry is how long the clerk waits after a failure, and between two shipments.
	clerkRetry = 500 * time.Millisecond
	// clerkBacklog bounds what waits to be carried, of each kind. What finds no place is
	// lost for a while: a look is asked for again (DUE_LOST in luascripts/bounds.lua),
	// and a ledger is found by the next sweep.
	clerkBacklog = 8192
	// planBatch bounds the looks that one script plans.
	planBatch = 256
)

// clerk carries what slots tell to their pools, on a cluster, where that may be late: it
// plans looks and ships ledgers to the outbox.
type clerk struct {
	mu    sync.Mutex
	plans map[slotName]*plan
	ships map[slotName]place
	wake  chan struct{} // holds one hint
}

type slotName struct{ pool, slot string }

// plan is when a slot's look is due, as the slot told last. done is closed when it stands
// in the pool's looks.
type plan struct {
	due, retain string
	done        chan struct{}
}

func newClerk() *clerk {
	return &clerk{plans: make(map[slotName]*plan), ships: make(map[slotName]place), wake: make(chan struct{}, 1)}
}

// takeTold notes what a slot told. It waits a little for a look to be planned, so that who
// makes the call finds it due, but no longer than a call can spare.
func (s *Store) takeTold(ctx context.Context, at place, t news) {
	planned := s.clerk.add(at, t)
	if planned == nil {
		return
	}
	timer := time.NewTimer(s.timeout / 10)
	defer timer.Stop()
	select {
	case <-planned:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// add returns a channel that is closed when the slot's look is planned; nil if there is
// nothing to plan, or no place for it.
func (c *clerk) add(at place, t news) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := slotName{at.pool, at.slot}
	if before, waits := c.ships[name]; t.entries && (waits || len(c.ships) < clerkBacklog) {
		ship := at
		ship.counts = at.counts || before.counts
		c.ships[name] = ship
	}
	p := c.plans[name]
	if t.due == "" || p == nil && len(c.plans) >= clerkBacklog {
		return nil
	}
	if p == nil {
		p = &plan{done: make(chan struct{})}
		c.plans[name] = p
	}
	p.due, p.retain = t.due, at.retain
	select {
	case c.wake <- struct{}{}:
	default: // it has been woken
	}
	return p.done
}

// takePlans returns some looks of one pool that are to be planned.
func (c *clerk) takePlans() (pool string, plans map[string]*plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, p := range c.plans {
		if plans == nil {
			pool, plans = name.pool, make(map[string]*plan)
		}
		if name.pool == pool && len(plans) < planBatch {
			plans[name.slot] = p
			delete(c.plans, name)
		}
	}
	return pool, plans
}

// putBack returns looks that could not be planned, unless their slots have told anew.
func (c *clerk) putBack(pool string, plans map[string]*plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for slot, p := range plans {
		if name := (slotName{pool, slot}); c.plans[name] == nil && len(c.plans) < clerkBacklog {
			c.plans[name] = p
		}
	}
}

// takeShips returns the slots whose ledgers are to be shipped.
func (c *clerk) takeShips() map[slotName]place {
	c.mu.Lock()
	defer c.mu.Unlock()
	ships := c.ships
	c.ships = make(map[slotName]place)
	return ships
}

// keepPlanning plans looks until ctx ends.
func (s *Store) keepPlanning(ctx context.Context) {
	tick := time.NewTicker(clerkRetry)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.clerk.wake:
		case <-tick.C:
		}
		s.planLooks(ctx)
	}
}

// keepShipping ships ledgers until ctx ends.
func (s *Store) keepShipping(ctx context.Context) {
	swept := newSweeps()
	tick := time.NewTicker(clerkRetry)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.shipLedgers(ctx, &swept)
			s.sweepLedgers(ctx, &swept)
		}
	}
}

// planLooks plans what waits, until one fails.
func (s *Store) planLooks(ctx context.Context) {
	for ctx.Err() == nil {
		pool, plans := s.clerk.takePlans()
		if len(plans) == 0 {
			return
		}
		c := &call{op: "plan", script: luascripts.Plan, keys: []string{s.keys.Looks(pool)}, args: []any{""}}
		for slot, p := range plans {
			c.args[0] = p.retain
			c.args = append(c.args, slot, p.due)
		}
		if _, err := s.run(ctx, c); err != nil {
			s.clerk.putBack(pool, plans)
			return
		}
		for _, p := range plans {
			close(p.done)
		}
	}
}
