package degrade

import (
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/time/rate"

	"github.com/slotgate/slotgate/rules"
)

const (
	// maxLocalSlots bounds the slots whose pass-through is limited one by one.
	// The rule's own limit holds for what is evicted.
	maxLocalSlots = 65536
	localSlotIdle = 10 * time.Minute
)

// Passthrough limits what one rule lets through while the store is away. It is
// safe for concurrent use and its memory is bounded.
type Passthrough struct {
	rule  *rate.Limiter
	slot  rules.LimitConfig
	slots *otter.Cache[string, *rate.Limiter]
	room  chan struct{}
}

// NewPassthrough makes the limits of a rule.
func NewPassthrough(cfg rules.PassthroughConfig) *Passthrough {
	return &Passthrough{
		rule: NewLimiter(cfg.Rule),
		slot: cfg.Slot,
		slots: otter.Must(&otter.Options[string, *rate.Limiter]{
			MaximumSize:      maxLocalSlots,
			ExpiryCalculator: otter.ExpiryAccessing[string, *rate.Limiter](localSlotIdle),
		}),
		room: make(chan struct{}, cfg.MaxInflight),
	}
}

// NewLimiter turns a configured limit into a token bucket that starts full.
func NewLimiter(cfg rules.LimitConfig) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(float64(cfg.Rate.Count)/cfg.Rate.Per.Seconds()), cfg.Burst)
}

// Enter asks to pass one request of a slot ("" for none) through. If ok, leave
// must be called once it is answered; else retryAfter tells when to try again.
func (p *Passthrough) Enter(slot string) (leave func(), retryAfter time.Duration, ok bool) {
	select {
	case p.room <- struct{}{}:
	default:
		return nil, time.Second, false
	}
	leave = func() { <-p.room }
	if slot != "" {
		limiter, _ := p.slots.ComputeIfAbsent(slot, func() (*rate.Limiter, bool) { return NewLimiter(p.slot), false })
		if wait, allowed := Take(limiter); !allowed {
			leave()
			return nil, wait, false
		}
	}
	if wait, allowed := Take(p.rule); !allowed {
		leave()
		return nil, wait, false
	}
	return leave, 0, true
}

// Over says how long it takes until one more request of a slot could pass; 0 when it
// could now. It takes nothing: a request that cannot pass should not be decided on,
// or a flood of them fills this process's memory and keeps out those that could.
func (p *Passthrough) Over(slot string) time.Duration {
	if len(p.room) == cap(p.room) {
		return time.Second
	}
	wait := untilToken(p.rule)
	if limiter, ok := p.slots.GetIfPresent(slot); ok {
		wait = max(wait, untilToken(limiter))
	}
	return wait
}

// Close stops the map's background work. The limits stay usable.
func (p *Passthrough) Close() { p.slots.StopAllGoroutines() }

// Take takes one token, or says how long until there is one. (A reservation that is
// cancelled gives its token back only in part when others were made meanwhile.)
func Take(limiter *rate.Limiter) (wait time.Duration, ok bool) {
	if limiter.Allow() {
		return 0, true
	}
	return max(time.Millisecond, untilToken(limiter)), false
}

// untilToken is how long until there is a token; 0 when there is one.
func untilToken(limiter *rate.Limiter) time.Duration {
	missing := 1 - limiter.Tokens()
	return time.Duration(max(0, missing) / float64(limiter.Limit()) * float64(time.Second))
}
