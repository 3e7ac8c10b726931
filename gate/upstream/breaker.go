package upstream

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/rules"
)

// windowBuckets is how finely the rolling window forgets.
const windowBuckets = 10

// breaker stops gated requests for a while when too many of the last ones could
// not connect or timed out. An answer counts as a success whatever its status;
// what says nothing about the backend's health (its connections are all in use, a
// connection broke) is not counted.
type breaker struct {
	cb      *gobreaker.CircuitBreaker[struct{}]
	openFor time.Duration
	until   atomic.Int64 // Unix nanoseconds: when it half-opens; 0 while closed
}

func newBreaker(cfg rules.BackendBreaker) *breaker {
	orDefault(&cfg.Window, 10*time.Second)
	orDefault(&cfg.OpenFor, 2*time.Second)
	orDefault(&cfg.MinRequests, 20)
	orDefault(&cfg.Probes, 3)
	if cfg.FailureRatio <= 0 {
		cfg.FailureRatio = 0.5
	}
	// Gates that lost the backend together must not probe it together.
	b := &breaker{openFor: cfg.OpenFor + rand.N(cfg.OpenFor/4+1)}
	b.cb = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name:         "backend",
		MaxRequests:  uint32(cfg.Probes),
		Interval:     cfg.Window,
		BucketPeriod: max(cfg.Window/windowBuckets, time.Millisecond),
		Timeout:      b.openFor,
		ReadyToTrip: func(n gobreaker.Counts) bool {
			return int(n.Requests) >= cfg.MinRequests &&
				float64(n.TotalFailures) >= cfg.FailureRatio*float64(n.Requests)
		},
		// Called under the breaker's lock: it must not ask the breaker anything.
		OnStateChange: func(_ string, _, to gobreaker.State) {
			switch to {
			case gobreaker.StateOpen:
				b.until.Store(time.Now().Add(b.openFor).UnixNano())
			case gobreaker.StateClosed:
				b.until.Store(0)
			}
		},
		IsExcluded: func(err error) bool {
			return err != nil && !countsAsFailure(err)
		},
	})
	return b
}

// countsAsFailure: connect failures and time-outs.
func countsAsFailure(err error) bool {
	if errors.Is(err, errPoolFull) {
		return false
	}
	var failure *gate.BackendError
	return errors.As(err, &failure) && (failure.Failure == gate.NotConnected || failure.Failure == gate.TimedOut)
}

// retryAfter is how long to wait after the breaker refused a request with err.
func (b *breaker) retryAfter(err error) (wait time.Duration) {
	if errors.Is(err, gobreaker.ErrOpenState) {
		wait = time.Until(time.Unix(0, b.until.Load()))
	}
	// Half-open: the probes under way decide within a moment.
	return max(wait, 100*time.Millisecond)
}

// BreakerState is 0 closed, 1 half-open, 2 open.
func (c *Client) BreakerState() int { return int(c.breaker.cb.State()) }
