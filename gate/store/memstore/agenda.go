package memstore

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/slotgate/slotgate/gate/store"
)

// agenda tells which slots are due for a look, pool by pool. Its lock is taken
// last.
type agenda struct {
	mu    sync.Mutex
	pools map[string]*queue[*lookTime]
}

// lookTime is when one slot is due. It is part of the slot but belongs to the
// agenda's lock.
type lookTime struct {
	deadline
	slot  string
	taken int64 // until when whoever took it is believed to be looking
}

// dueBy lets the slot be due no later than at, unless it is being looked at: the
// apply will see what has moved.
func (v *visit) dueBy(at int64) {
	if v.of.truth == store.NoTruth || !v.seen {
		return
	}
	t := &v.slot.look
	v.agenda.mu.Lock()
	defer v.agenda.mu.Unlock()
	if t.taken <= v.now && (t.place == 0 || at < t.at) {
		v.agenda.put(v.slot, at)
	}
}

// never is when a slot is due that is not.
const never = math.MaxInt64

// plan makes the slot due at, and not before.
func (v *visit) plan(s *slot, at int64) {
	v.agenda.mu.Lock()
	defer v.agenda.mu.Unlock()
	s.look.taken = 0
	if at == never {
		v.agenda.remove(s)
	} else {
		v.agenda.put(s, at)
	}
}

// unplan lets the slot not be due any more.
func (s *Store) unplan(sl *slot) {
	s.agenda.mu.Lock()
	defer s.agenda.mu.Unlock()
	s.agenda.remove(sl)
}

func (a *agenda) put(s *slot, at int64) {
	if a.pools == nil {
		a.pools = map[string]*queue[*lookTime]{}
	}
	q := a.pools[s.name.pool]
	if q == nil {
		q = &queue[*lookTime]{}
		a.pools[s.name.pool] = q
	}
	s.look.slot = s.name.slot
	q.put(&s.look, at)
}

func (a *agenda) remove(s *slot) {
	if s.look.place > 0 {
		a.pools[s.name.pool].remove(&s.look)
	}
}

// Due takes slots of a pool whose look is due; see the package gate/store.
func (s *Store) Due(ctx context.Context, pool string, most int, lease time.Duration) (slots []string, next time.Duration, err error) {
	defer s.observed("due")(&err)
	if err := s.ready(ctx, "due"); err != nil {
		return nil, 0, err
	}
	s.agenda.mu.Lock()
	defer s.agenda.mu.Unlock()
	q := s.agenda.pools[pool]
	if q == nil || len(*q) == 0 {
		return nil, -1, nil
	}
	now := s.now()
	for len(slots) < most {
		t, ok := q.due(now)
		if !ok {
			break
		}
		t.taken = now + int64(lease)
		q.put(t, t.taken)
		slots = append(slots, t.slot)
	}
	return slots, time.Duration(max(0, (*q)[0].at-now)), nil
}
