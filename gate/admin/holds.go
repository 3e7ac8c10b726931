package admin

import (
	"context"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

// The bounds of one count. A pool has at most so many slots listed, and so many
// slots with open holds read, each round; beyond the reads a slot's open units
// all count as held, beyond the list slots are not counted.
const (
	holdsEvery   = 15 * time.Second
	holdsPage    = 500
	holdsListed  = 10_000
	holdsReads   = 256
	holdsTimeout = 10 * time.Second
)

var holdStates = []decision.HoldState{decision.Held, decision.Pending, decision.HoldUnknown, decision.Confirmed}

// CountHolds keeps slotgate_holds{pool,state} fresh until ctx ends. A pool that
// the store cannot list at the moment has no series, rather than an old number.
func (m *Metrics) CountHolds(ctx context.Context, g Gate, s Slots) {
	tick := time.NewTicker(holdsEvery)
	defer tick.Stop()
	for {
		for _, pool := range g.Pools() {
			m.countPool(ctx, g, s, pool)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (m *Metrics) countPool(ctx context.Context, g Gate, s Slots, pool string) {
	ctx, cancel := context.WithTimeout(ctx, holdsTimeout)
	defer cancel()
	units, err := poolUnits(ctx, g, s, pool)
	for _, state := range holdStates {
		if err != nil {
			m.holds.DeleteLabelValues(pool, state.String())
			continue
		}
		m.holds.WithLabelValues(pool, state.String()).Set(float64(units[state]))
	}
}

func poolUnits(ctx context.Context, g Gate, s Slots, pool string) (map[decision.HoldState]int64, error) {
	q, ok := g.Query(pool, "")
	if !ok {
		return nil, store.ErrNoSlot
	}
	units := make(map[decision.HoldState]int64, len(holdStates))
	reads, listed, cursor := 0, 0, ""
	for {
		page, next, err := s.Slots(ctx, q, cursor, holdsPage)
		if err != nil {
			return nil, err
		}
		for i := range page {
			slot := &page[i]
			units[decision.Confirmed] += slot.Confirmed
			if slot.Held == 0 {
				continue
			}
			if reads++; reads > holdsReads {
				units[decision.Held] += slot.Held
				continue
			}
			if err := openUnits(ctx, g, s, slot, units); err != nil {
				return nil, err
			}
		}
		listed += len(page)
		if cursor = next; cursor == "" || listed >= holdsListed {
			return units, nil
		}
	}
}

// openUnits adds one slot's open units by state. Those beyond the holds that the
// store shows count as held.
func openUnits(ctx context.Context, g Gate, s Slots, listed *store.Slot, units map[decision.HoldState]int64) error {
	q, ok := g.Query(listed.Pool, listed.Slot)
	if !ok {
		return store.ErrNoSlot
	}
	slot, err := s.Slot(ctx, q)
	if err != nil {
		return err
	}
	rest := slot.Held
	for _, hold := range slot.Holds {
		if hold.State.Open() {
			units[hold.State] += hold.Units
			rest -= hold.Units
		}
	}
	units[decision.Held] += max(0, rest)
	return nil
}
