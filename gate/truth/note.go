package truth

import (
	"context"
	"errors"
	"sync"
	"time"
)

// noteLook counts how a look ended and acts on what it found.
func (p *Pool) noteLook(slot string, s *seen) {
	p.meter.Look(p.name, s.result)
	switch s.result {
	case LookFailed:
		if p.quiet.may("source") {
			p.log.Error("the source of truth does not tell; the slot goes on as learned until the next look. "+
				"Check capacity's dsn, query or path, and the slot, if only this one fails", "slot", slot, "error", s.cause)
		}
	case LookApplied:
		drift, worse := p.tally.add(slot, s.applied, time.Now())
		if worse && p.quiet.may("debt") {
			p.log.Warn("truth says that a slot is oversold; slotgate audit lists its bookings, latest first",
				"slot", slot, "units_over", -s.applied.After)
		}
		if drift > 0 && p.lister != nil {
			p.givenUp.suspect(p, slot)
		}
	}
}

// noteStore logs a failed store call. What it interrupted comes back by itself.
func (p *Pool) noteStore(op string, err error) {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) && p.ctx.Err() != nil {
		return
	}
	if p.quiet.may("store") {
		p.log.Warn("a look at truth could not reach the store", "call", op, "error", err)
	}
}

// quiet lets each kind of message through once in quietFor. The zero quiet is ready.
type quiet struct {
	mu   sync.Mutex
	last map[string]time.Time
}

const quietFor = 10 * time.Second

func (q *quiet) may(kind string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if last, said := q.last[kind]; said && now.Sub(last) < quietFor {
		return false
	}
	if q.last == nil {
		q.last = map[string]time.Time{}
	}
	q.last[kind] = now
	return true
}
