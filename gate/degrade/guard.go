package degrade

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// KindOpen is the kind of a call that the open breaker did not make.
const KindOpen store.ErrorKind = "open"

// Guard puts a circuit breaker around a store's Decide and Settle. Its other
// calls (operators', watches) are the embedded store's own: a person who asks
// should hear the real error.
type Guard struct {
	store.Store
	breaker *gobreaker.CircuitBreaker[struct{}]
}

// NewGuard opens after cfg.Failures store failures in a row and lets cfg.Probes
// calls through after cfg.OpenFor, lengthened by up to a fifth at random so that
// gates of one outage do not come back in step.
func NewGuard(s store.Store, cfg rules.StoreBreaker) *Guard {
	jitter := time.Duration(rand.Int64N(int64(cfg.OpenFor)/5 + 1))
	return &Guard{Store: s, breaker: gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name:        "store",
		MaxRequests: uint32(cfg.Probes),
		Timeout:     cfg.OpenFor + jitter,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= uint32(cfg.Failures) },
		IsExcluded:  notAnOutage,
	})}
}

// notAnOutage tells failures of one call from failures of the store: one that is
// full still answers for the slots and keys it has, and a call that was not sent says
// nothing of it. The breaker forgets such a call: it is no success either, and another
// may be made in the place of a probe that ends so.
func notAnOutage(err error) bool {
	failure, ok := errors.AsType[*store.Error](err)
	return ok && (failure.Kind == store.KindFull || failure.Kind == store.KindUnsent)
}

// Decide is store.Store's, or a failure of KindOpen at once.
func (g *Guard) Decide(ctx context.Context, d *store.Decide) (decided store.Decided, err error) {
	err = g.call("decide", func() error {
		decided, err = g.Store.Decide(ctx, d)
		return err
	})
	return decided, err
}

// Settle is store.Store's, or a failure of KindOpen at once.
func (g *Guard) Settle(ctx context.Context, s *store.Settle) (settled store.Settled, err error) {
	err = g.call("settle", func() error {
		settled, err = g.Store.Settle(ctx, s)
		return err
	})
	return settled, err
}

// call makes a call and counts how it ended. One that panics has failed.
func (g *Guard) call(op string, call func() error) error {
	made := false
	_, err := g.breaker.Execute(func() (struct{}, error) {
		made = true
		return struct{}{}, call()
	})
	if !made {
		return &store.Error{Op: op, Kind: KindOpen, Err: err}
	}
	return err
}

// Answers reports whether the store can be used: the breaker is closed, or lets a
// probe through and the probe is answered.
func (g *Guard) Answers(ctx context.Context) bool {
	if g.State() == 0 {
		return true
	}
	return g.call("ping", func() error { return g.Ping(ctx) }) == nil
}

// State is 0 closed, 1 half-open, 2 open.
func (g *Guard) State() int { return int(g.breaker.State()) }
