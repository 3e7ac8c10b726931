package degrade

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/memstore"
)

const (
	// localMemory bounds what the process notes in an outage.
	localMemory = 32 << 20
	// maxKnownSlots bounds the slots of which the last known remainder is kept.
	maxKnownSlots = 65536
	// shareLife is how long a share of what was last known may be admitted from, from
	// its first admission on. So long it is remembered what was.
	shareLife = 4 * time.Hour

	// unbounded is the capacity of a slot whose bound is the backend's own.
	unbounded = int64(1) << 50
)

// Local is the store of one process for the time of an outage: the same
// decisions on keys, subjects and limits, but only about what went through this
// process. It is safe for concurrent use and bounded.
type Local struct {
	*memstore.Store
	memos *memos
	known atomic.Pointer[otter.Cache[slotName, *lastKnown]] // nil: nobody wants to know
}

// lastKnown is what the store last said of a slot. A share of it is given away in one
// outage: were a second to begin before the store has told what the first one left, the
// same units would be given away twice.
type lastKnown struct {
	left int64 // units

	mu     sync.Mutex
	outage int64     // in which it is used
	since  time.Time // first use; zero: not used yet
}

// share is the part of the units that may be admitted in an outage; 0 when they were
// given away in another, or so long ago that it may be forgotten how many.
func (k *lastKnown) share(outage int64, share float64, use bool) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case !k.since.IsZero() && (k.outage != outage || time.Since(k.since) > shareLife-localMemo):
		return 0
	case k.since.IsZero() && use:
		k.outage, k.since = outage, time.Now()
	}
	return int64(share * float64(k.left))
}

type slotName struct{ pool, slot string }

// NewLocal makes an empty one.
func NewLocal() *Local {
	return &Local{Store: memstore.New(memstore.Options{MaxMemory: localMemory}), memos: newMemos()}
}

// Know has it remember from now on what the store says is left, because some rule
// admits a share of that. It may be called again, but not by two at a time.
func (l *Local) Know() {
	if l.known.Load() == nil {
		l.known.Store(otter.Must(&otter.Options[slotName, *lastKnown]{MaximumSize: maxKnownSlots}))
	}
}

// Close ends the background work.
func (l *Local) Close() error {
	if known := l.known.Load(); known != nil {
		known.StopAllGoroutines()
	}
	return l.Store.Close()
}

// Learn notes how many units the store said are left.
func (l *Local) Learn(pool, slot string, left int64) {
	if known := l.known.Load(); known != nil && left >= 0 {
		known.Set(slotName{pool, slot}, &lastKnown{left: left})
	}
}

// Remember keeps an answer that was stored under a key, for a while: an outage has it,
// as far as there is room; the store has it.
func (l *Local) Remember(s *store.Settle) {
	if s.Key != "" && s.Keep {
		l.memos.add(s, min(s.KeyTTL, localMemo))
	}
}

// Decide is store.Store's. A key that has an answer from normal times is done.
func (l *Local) Decide(ctx context.Context, d *store.Decide) (store.Decided, error) {
	if decided, known := l.memos.decide(d); known {
		return decided, nil
	}
	return l.Store.Decide(ctx, d)
}

// Question turns a question to the store into one to this process, in a given
// outage. Each outage counts its units anew. share is the part of what was last
// known to be left that this process may admit; a negative share leaves the bound
// to the backend. It returns that bound, in units, -1 for the backend's; 0 where
// nothing is known. Units of a share whose outcome is not known are kept.
func (l *Local) Question(d *store.Decide, outage int64, share float64) (bound int64) {
	d.Charged, d.Await = false, ""
	if d.Pool == "" {
		return -1
	}
	name := slotName{d.Pool, d.Slot}
	d.Pool = localPool(d.Pool, outage)
	d.Capacity, d.Truth, d.Retain = unbounded, store.NoTruth, localMemo
	if share < 0 {
		return -1
	}
	if k, ok := l.known.Load().GetIfPresent(name); ok {
		bound = k.share(outage, share, d.Action == store.Book)
	}
	d.Capacity, d.KeepUnknown, d.Retain = bound, true, shareLife
	return bound
}

// Bound is how many units of a pool this process may admit in an outage, as far as it
// knows the pool's slots: the sum of what Question returns for each.
func (l *Local) Bound(pool string, outage int64, share float64) (units int64) {
	for name, k := range l.known.Load().All() {
		if name.pool == pool {
			units += k.share(outage, share, false)
		}
	}
	return units
}

func localPool(pool string, outage int64) string {
	return pool + "#" + strconv.FormatInt(outage, 10)
}
