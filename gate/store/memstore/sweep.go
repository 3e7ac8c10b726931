package memstore

import (
	"math"
	"time"
)

const (
	// sweepBatch is how many things of a kind a call drops in its shards: more than
	// it can make, so that calls alone keep up.
	sweepBatch = 4
	// sweepEvery is how often the sweeper looks, sweepShare what it drops of a
	// shard before it lets calls in again.
	sweepEvery = time.Second
	sweepShare = 256
)

func (s *Store) sweepUntilClosed() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			s.sweep()
		}
	}
}

// sweep drops all that is due.
func (s *Store) sweep() {
	for i := range shards {
		for now := s.now(); s.sweepShard(i, now); now = s.now() {
			select {
			case <-s.stop:
				return
			default:
			}
		}
	}
}

// sweepShard drops a share of what is due in the i-th shards and reports whether
// there may be more.
func (s *Store) sweepShard(i int, now int64) bool {
	keys, slots, buckets := &s.keys[i], &s.slots[i], &s.buckets[i]

	keys.mu.Lock()
	keys.sweep(&s.memory, now, sweepShare)
	next := keys.next()
	keys.mu.Unlock()

	buckets.mu.Lock()
	buckets.sweep(&s.memory, now, sweepShare)
	next = min(next, soonest(buckets.full))
	buckets.mu.Unlock()

	slots.mu.Lock()
	s.sweepSlots(slots, now, sweepShare)
	slots.sweepLooks(&s.memory, now, sweepShare)
	next = min(next, soonest(slots.due), soonest(slots.looking))
	slots.mu.Unlock()
	return next <= now
}

func soonest[T interface{ when() *deadline }](q queue[T]) int64 {
	if len(q) == 0 {
		return math.MaxInt64
	}
	return q[0].when().at
}

func (shard *keyShard) next() int64 {
	return min(soonest(shard.expiring), soonest(shard.unwaited), soonest(shard.forgotten))
}

// sweepSlots looks at no more than n slots that are due: it drops them if they
// have been idle, else forgets their gone holds. The shard is locked.
func (s *Store) sweepSlots(shard *slotShard, now int64, n int) {
	for range n {
		sl, ok := shard.due.due(now)
		if !ok {
			return
		}
		if sl.idleAt <= now {
			s.dropSlot(shard, sl)
			continue
		}
		s.memory.free(sl.forget(now, sweepShare))
		shard.due.put(sl, sl.wakeAt())
	}
}

// dropSlot forgets a slot with all its holds. The shard is locked.
func (s *Store) dropSlot(shard *slotShard, sl *slot) {
	for id, h := range sl.holds {
		if h.id != id || h.gone() {
			continue
		}
		if h.quota {
			s.addQuota(quotaName{sl.name.pool, h.subject}, -h.units)
		}
		s.unrefer(sl.name, h)
	}
	s.unplan(sl)
	shard.due.remove(sl)
	delete(shard.slots, sl.name)
	s.memory.free(sl.cost)
}
