package memstore

import "sync"

// quotaName is what one subject holds in one pool.
type quotaName struct{ pool, subject string }

// quotaShard counts the units, open and confirmed, of subjects that max_per_subject
// is asked for. A subject without units is not kept.
type quotaShard struct {
	mu    sync.Mutex
	units map[quotaName]int64
}

func (s *Store) quotaShard(name quotaName) *quotaShard {
	return &s.quotas[shardOf(s.seed, name)]
}

// addQuota moves a subject's units.
func (s *Store) addQuota(name quotaName, units int64) {
	shard := s.quotaShard(name)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	shard.add(&s.memory, name, units)
}

func (shard *quotaShard) add(memory *account, name quotaName, units int64) {
	before := shard.units[name]
	after := before + units
	cost := quotaCost + int64(len(name.pool)+len(name.subject))
	switch {
	case before == 0 && after != 0:
		memory.charge(cost)
	case before != 0 && after == 0:
		memory.free(cost)
		delete(shard.units, name)
		return
	}
	if shard.units == nil {
		shard.units = map[quotaName]int64{}
	}
	shard.units[name] = after
}
