package truth

import (
	"context"
	"errors"
	"time"

	"github.com/slotgate/slotgate/gate/store"
)

// look is one comparison of a slot with truth, under way.
type look struct {
	pool *Pool
	slot string
	// fence is the leader's, 0 for a look that is not a leader's.
	fence int64
	// force: another's lease is not waited for.
	force bool
	// fresh: a look that began no longer ago will do.
	fresh time.Duration
}

// seen is how a look ended.
type seen struct {
	result  LookResult
	reading store.Reading
	applied store.Applied
	cause   error // of LookFailed
}

// leaseMargin is what a look's lease has beyond the source's time-out, for the
// store's own calls.
const leaseMargin = time.Second

// begin takes the slot's look lease, unless it is busy, and notes where the counters
// stand.
func (l *look) begin(ctx context.Context) (*store.Look, store.Looked, error) {
	asked := &store.Look{
		Query: l.pool.query(l.slot), ID: newID(), Lag: l.pool.truth.Lag,
		Lease: l.pool.truth.Timeout + leaseMargin, Force: l.force, Fresh: l.fresh,
	}
	looked, err := l.pool.store.Look(ctx, asked)
	return asked, looked, err
}

// finish reads the source and gives the store what it said. The read ends with ctx
// or the source's time-out; an apply is made all the same, so that a source that
// does not answer leaves the slot learned and not as it was; but not one whose ctx was
// cancelled, which says nothing of the source. Other errors are the store's and
// errNotLeading.
func (l *look) finish(ctx context.Context, asked *store.Look, looked store.Looked) (seen, error) {
	p := l.pool
	reading, cause := l.read(ctx, asked, looked)
	if errors.Is(ctx.Err(), context.Canceled) {
		return seen{}, ctx.Err()
	}
	if l.fence != 0 && !p.lead.holds() {
		return seen{}, errNotLeading
	}
	applied, err := p.store.Apply(p.ctx, &reading)
	if err != nil {
		return seen{}, err
	}
	s := seen{result: resultOf(&reading, applied), reading: reading, applied: applied, cause: cause}
	p.noteLook(l.slot, &s)
	return s, nil
}

func (l *look) read(ctx context.Context, asked *store.Look, looked store.Looked) (store.Reading, error) {
	p := l.pool
	reading := store.Reading{
		Look: asked, Looked: looked, Fence: l.fence, Total: store.Learned,
		Hot: p.jitter(p.truth.Hot), Refresh: p.jitter(p.truth.Refresh),
	}
	value, err := p.read(ctx, l.slot)
	switch {
	case err != nil:
		return reading, err
	case value.Missing:
		reading.Missing = true
	case value.None:
		return reading, errNoValue
	default:
		reading.Found, reading.Value, reading.Total = true, value.N, value.Total
	}
	return reading, nil
}

// resultOf is the word for what came of a reading.
func resultOf(r *store.Reading, a store.Applied) LookResult {
	switch {
	case r.Missing:
		return LookMissing
	case !r.Found:
		return LookFailed
	case !a.Applied:
		return LookRefused
	}
	return LookApplied
}
