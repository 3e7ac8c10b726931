package memstore

import (
	"net/netip"
	"sync"
	"time"

	"github.com/slotgate/slotgate/gate/store"
)

// A limit is a token bucket kept as GCRA: one number, the theoretical arrival time
// (tat), at which the bucket will be full again.

// interval is the time in which one event is refilled.
func interval(l store.Limit) int64 { return max(1, int64(l.Per)/int64(l.Count)) }

// span is what an empty bucket takes to fill.
func span(l store.Limit) int64 { return interval(l) * int64(max(1, l.Burst)) }

// pass returns the bucket's tat after one more event, or how long until one passes.
func pass(l store.Limit, tat, now int64) (next int64, wait time.Duration) {
	next = max(tat, now) + interval(l)
	return next, time.Duration(max(0, next-span(l)-now))
}

// limitState is where a bucket stands.
func limitState(name string, l store.Limit, tat, now int64) store.LimitState {
	reset := max(0, tat-now)
	return store.LimitState{
		Name: name, Limit: l,
		Remaining: int(max(0, span(l)-reset) / interval(l)),
		Reset:     time.Duration(reset),
	}
}

// bucketName is a subject's or a client's bucket of one rule; slots keep their own.
type bucketName struct {
	rule, subject string
	client        netip.Addr
}

// bucket is kept until it is full again; its deadline is its tat.
type bucket struct {
	deadline
	name bucketName
	cost int64
}

type bucketShard struct {
	mu      sync.Mutex
	buckets map[bucketName]*bucket
	full    queue[*bucket]
}

// chargeLimit takes one event from a bucket. wait tells how long until one passes
// when none is left; fits is false when there is no memory for a new bucket.
func (s *Store) chargeLimit(kind string, name bucketName, l store.Limit, now int64) (state store.LimitState, wait time.Duration, fits bool) {
	shard := &s.buckets[shardOf(s.seed, name)]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	shard.sweep(&s.memory, now, sweepBatch)

	b := shard.buckets[name]
	tat := now
	if b != nil {
		tat = max(now, b.at)
	}
	next, wait := pass(l, tat, now)
	if wait > 0 {
		return limitState(kind, l, tat, now), wait, true
	}
	if b == nil {
		b = &bucket{name: name, cost: bucketCost + int64(len(name.rule)+len(name.subject))}
		if !s.memory.reserve(b.cost) {
			return store.LimitState{}, 0, false
		}
		if shard.buckets == nil {
			shard.buckets = map[bucketName]*bucket{}
		}
		shard.buckets[name] = b
	}
	shard.full.put(b, next)
	return limitState(kind, l, next, now), 0, true
}

// sweep forgets at most n buckets that are full again.
func (shard *bucketShard) sweep(memory *account, now int64, n int) {
	for ; n > 0; n-- {
		b, ok := shard.full.due(now)
		if !ok {
			return
		}
		shard.full.remove(b)
		delete(shard.buckets, b.name)
		memory.free(b.cost)
	}
}
