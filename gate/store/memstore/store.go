package memstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slotgate/slotgate/gate/store"
)

// shards is how many locks each kind of state is spread over.
const shards = 64

// Options configure a Store. The zero value is one without a bound.
type Options struct {
	// MaxMemory bounds what is kept, in bytes; 0 does not.
	MaxMemory int64
	// Clock is the store's time, for tests; nil is the process's own.
	Clock func() time.Time
	// Observe is told how long each call took and how it failed; it is called by
	// many goroutines at once, with no lock held.
	Observe func(op string, d time.Duration, err error)
}

// Store is a store.Store in the memory of this process.
type Store struct {
	clock   func() time.Time
	observe func(op string, d time.Duration, err error)
	memory  account
	seed    maphash.Seed
	hashKey [32]byte // keys the subjects' hashes in ledgers

	keys    [shards]keyShard
	slots   [shards]slotShard
	buckets [shards]bucketShard
	quotas  [shards]quotaShard
	refs    [shards]refShard
	births  atomic.Int64 // of slots
	agenda  agenda
	leaders leaders

	keyWatches  hub[keyName]
	slotWatches hub[slotName]

	closed   atomic.Bool
	stop     chan struct{}
	sweeping sync.WaitGroup
}

var (
	_ store.Store = (*Store)(nil)
	_ store.Truth = (*Store)(nil)
)

// New opens an empty store; Close ends it.
func New(o Options) *Store {
	s := &Store{
		clock:   o.Clock,
		observe: o.Observe,
		memory:  account{limit: o.MaxMemory},
		seed:    maphash.MakeSeed(),
		stop:    make(chan struct{}),
	}
	if s.clock == nil {
		s.clock = steadyClock()
	}
	if _, err := rand.Read(s.hashKey[:]); err != nil {
		panic(err) // never fails: crypto/rand.Read ends the process instead
	}
	s.sweeping.Go(s.sweepUntilClosed)
	return s
}

// steadyClock is the wall clock as of now, moved on by the monotonic one, so that
// no hold lapses or lives on because somebody set the clock.
func steadyClock() func() time.Time {
	start := time.Now()
	return func() time.Time { return start.Add(time.Since(start)) }
}

// MemoryUsed is the memory in use in bytes, by estimate.
func (s *Store) MemoryUsed() int64 { return s.memory.used.Load() }

// Ping checks that the store is open.
func (s *Store) Ping(ctx context.Context) (err error) {
	defer s.observed("ping")(&err)
	return s.ready(ctx, "ping")
}

// Close ends all watches and the sweeper. It may be called twice.
func (s *Store) Close() error {
	if s.closed.CompareAndSwap(false, true) {
		close(s.stop)
		s.sweeping.Wait()
		s.keyWatches.close()
		s.slotWatches.close()
	}
	return nil
}

// ready refuses a call to a closed store, or one that nobody waits for any more.
func (s *Store) ready(ctx context.Context, op string) error {
	if s.closed.Load() {
		return &store.Error{Op: op, Kind: store.KindClosed, Err: errClosed}
	}
	if err := ctx.Err(); err != nil {
		return &store.Error{Op: op, Kind: store.KindTimeout, Err: err}
	}
	return nil
}

var errClosed = fmt.Errorf("the memory store has been closed")

func (s *Store) full(op string) error {
	return &store.Error{Op: op, Kind: store.KindFull, Err: fmt.Errorf(
		"%d of %d bytes are in use and nothing alive is evicted; raise store.max_memory", s.MemoryUsed(), s.memory.limit)}
}

func nothing(*error) {}

// observed starts timing a call; the function it returns ends that.
func (s *Store) observed(op string) func(err *error) {
	if s.observe == nil {
		return nothing
	}
	start := time.Now()
	return func(err *error) { s.observe(op, time.Since(start), *err) }
}

func (s *Store) now() int64 { return s.clock().UnixNano() }

// shardOf spreads names over shards.
func shardOf[N comparable](seed maphash.Seed, name N) uint64 {
	return maphash.Comparable(seed, name) % shards
}
