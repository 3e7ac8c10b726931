package redisstore

import (
	"context"
	"sync"
	"time"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/luascripts"
)

const (
	// indexTouch is how often a slot that is used is noted in its pool's index; as
	// INDEX_TOUCH in luascripts/bounds.lua.
	indexTouch = time.Hour
	// enlistedMax bounds the slots that a gate remembers to have noted.
	enlistedMax = 1 << 16
)

// enlisted is when this gate noted slots in their pools' indexes, on a cluster.
type enlisted struct {
	mu    sync.Mutex
	slots map[slotName]time.Time
	lost  store.Watch // fires when a shard has come back with other data
}

func newEnlisted(lost store.Watch) *enlisted {
	return &enlisted{slots: make(map[slotName]time.Time), lost: lost}
}

// enlist notes a slot in its pool's index before the gate first touches it, and now and
// then: a slot that exists is listed.
func (s *Store) enlist(ctx context.Context, at place) error {
	if !s.sharded() {
		return nil
	}
	name, now := slotName{at.pool, at.slot}, time.Now().Add(time.Duration(s.ahead.Load())*time.Millisecond)
	if s.enlisted.has(name, now) {
		return nil
	}
	_, err := s.run(ctx, &call{op: "enlist", script: luascripts.Enlist,
		keys: []string{s.keys.Index(at.pool)}, args: []any{at.slot, at.retain}})
	if err == nil {
		s.enlisted.add(name, now)
	}
	return err
}

func (e *enlisted) has(name slotName, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-e.lost.C():
		clear(e.slots)
	default:
	}
	at, ok := e.slots[name]
	return ok && now.Sub(at) < indexTouch
}

func (e *enlisted) add(name slotName, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.slots) >= enlistedMax {
		clear(e.slots)
	}
	e.slots[name] = now
}
