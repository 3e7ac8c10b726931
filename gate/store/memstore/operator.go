package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

// shownHolds is how many holds a slot shows.
const shownHolds = 100

// Slot reads one slot after applying its due lapses.
func (s *Store) Slot(ctx context.Context, q store.SlotQuery) (got store.Slot, err error) {
	defer s.observed("slot")(&err)
	v, err := s.look(ctx, "slot", q)
	if err != nil {
		return store.Slot{}, err
	}
	defer v.leave()
	if !v.seen {
		return store.Slot{}, store.ErrNoSlot
	}
	return v.view(q, shownHolds), nil
}

// look enters a slot for an operator. The caller leaves it.
func (s *Store) look(ctx context.Context, op string, q store.SlotQuery) (*visit, error) {
	if err := s.ready(ctx, op); err != nil {
		return nil, err
	}
	v := &visit{Store: s, now: s.now(), of: terms{q.Capacity, q.Truth}}
	v.enterSlot(slotName{q.Pool, q.Slot})
	v.isDirty()
	v.lapse(q.KeepUnknown)
	v.keepUntil(0)
	return v, nil
}

// view is the slot as operators see it.
func (v *visit) view(q store.SlotQuery, holds int) store.Slot {
	s := v.slot
	got := store.Slot{
		Pool: s.name.pool, Slot: s.name.slot,
		Own:       s.own && q.Truth == store.NoTruth,
		Confirmed: s.confirmed, Held: s.held,
		Closed: s.closed, Full: s.mark.units, Version: s.version,
		Inflight: s.inflight(v.now) + s.cancels.inflight(v.now), OpensAt: q.OpensAt,
		Dirty: v.isDirty(), Verified: true,
	}
	s.showTruth(&got, v.of)
	if s.opensAt != 0 {
		got.OpensAt = time.Unix(0, s.opensAt)
	}
	if holds > 0 {
		for _, h := range s.shown(holds) {
			got.Holds = append(got.Holds, h.view(q.KeepUnknown))
		}
	}
	return got
}

// shown is the holds that a slot shows: open ones first, then confirmed, each
// newest first.
func (s *slot) shown(most int) []*hold {
	var shown []*hold
	for id, h := range s.holds {
		if h.id == id && !h.gone() {
			shown = append(shown, h)
		}
	}
	slices.SortFunc(shown, func(a, b *hold) int {
		switch {
		case a.state.Open() == b.state.Open():
			return cmp.Compare(b.order, a.order)
		case a.state.Open():
			return -1
		}
		return 1
	})
	return shown[:min(len(shown), most)]
}

// Slots lists a pool's slots by name. The cursor is the last name behind a dot: a
// name may be empty.
func (s *Store) Slots(ctx context.Context, q store.SlotQuery, cursor string, limit int) (got []store.Slot, next string, err error) {
	defer s.observed("slots")(&err)
	if err := s.ready(ctx, "slots"); err != nil {
		return nil, "", err
	}
	names := s.namesAfter(q.Pool, cursor)
	if limit = max(1, limit); len(names) > limit {
		names = names[:limit]
		next = "." + names[limit-1]
	}
	for _, name := range names {
		q.Slot = name
		v, err := s.look(ctx, "slots", q)
		if err != nil {
			return nil, "", err
		}
		if v.seen { // it may have gone meanwhile
			got = append(got, v.view(q, q.Holds))
		}
		v.leave()
	}
	return got, next, nil
}

func (s *Store) namesAfter(pool, cursor string) []string {
	var names []string
	for i := range s.slots {
		shard := &s.slots[i]
		shard.mu.Lock()
		for name := range shard.slots {
			if name.pool == pool && (cursor == "" || name.slot > cursor[1:]) {
				names = append(names, name.slot)
			}
		}
		shard.mu.Unlock()
	}
	slices.Sort(names)
	return names
}

// Change sets what an operator may set, creating the slot if need be.
func (s *Store) Change(ctx context.Context, q store.SlotQuery, c store.SlotChange) (got store.Slot, err error) {
	defer s.observed("change")(&err)
	v, err := s.look(ctx, "change", q)
	if err != nil {
		return store.Slot{}, err
	}
	defer v.leave()
	if !s.memory.reserve(v.slotSize()) {
		return store.Slot{}, s.full("change")
	}
	v.see()
	v.slot.change(c)
	v.touched()
	v.keepUntil(v.now + int64(q.Retain))
	return v.view(q, shownHolds), nil
}

// change sets what an operator may set. What may have freed units ends the mark.
func (s *slot) change(c store.SlotChange) {
	if c.ClearCapacity {
		s.own, s.capacity = false, 0
	}
	if c.Capacity != nil {
		s.own, s.capacity = true, *c.Capacity
	}
	if c.Closed != nil {
		s.closed = *c.Closed
	}
	if c.OpensAt != nil {
		s.opensAt = 0
		if !c.OpensAt.IsZero() {
			s.opensAt = c.OpensAt.UnixNano()
		}
	}
	if c.ClearCapacity || c.Capacity != nil || c.Verify || c.Closed != nil && !*c.Closed {
		s.release()
	}
}

// Release frees a hold on an operator's word and returns the state it was in.
// Attempts that are unanswered stay so: a late booking is counted again.
func (s *Store) Release(ctx context.Context, q store.SlotQuery, hold string) (was decision.HoldState, err error) {
	defer s.observed("release")(&err)
	v, err := s.look(ctx, "release", q)
	if err != nil {
		return decision.NoHold, err
	}
	defer v.leave()
	h := v.slot.holds[hold]
	if h == nil || h.id != hold || h.gone() {
		return decision.NoHold, store.ErrNoHold
	}
	was = h.state
	v.move(h, decision.Released, 0, "operator")
	v.slot.release()
	v.keepUntil(v.now + int64(q.Retain))
	return was, nil
}

// Ledger returns the newest entries of a slot, newest first.
func (s *Store) Ledger(ctx context.Context, pool, slot string, limit int) (got []store.Entry, err error) {
	defer s.observed("ledger")(&err)
	if err := s.ready(ctx, "ledger"); err != nil {
		return nil, err
	}
	v := visit{Store: s, now: s.now()}
	v.enterSlot(slotName{pool, slot})
	defer v.leave()
	if !v.seen {
		return nil, store.ErrNoSlot
	}
	for _, e := range v.slot.ledger.newest(limit) {
		got = append(got, e.view(s.hashKey[:]))
	}
	return got, nil
}
