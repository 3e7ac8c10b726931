package degrade

import (
	"context"
	"errors"
	"hash/maphash"
	"math/rand/v2"
	"time"

	"github.com/slotgate/slotgate/gate/store"
)

const (
	// lanes is how many settlements are on their way at once: a store that answers
	// slowly, but to many, must be told faster than requests pass it by.
	lanes = 32

	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
	// maxMisread is how often a settlement may get an answer that makes no sense
	// before it is set aside for a while and the ones behind it go on.
	maxMisread = 3
	oddRetry   = time.Minute
)

// lane is a part of the backlog that is told to the store in order. Backlog.mu guards
// the lists.
type lane struct {
	waiting []*entry
	odd     []*entry // set aside
	wake    chan struct{}
	hurry   chan struct{}
}

var laneSeed = maphash.MakeSeed()

// laneOf keeps what concerns one slot in one lane, and what concerns one key and no slot.
// Between slots order does not matter: a key changes only for who owns it.
func laneOf(s *store.Settle) uint64 {
	if s.Pool != "" {
		return maphash.Comparable(laneSeed, slotName{s.Pool, s.Slot}) % lanes
	}
	return maphash.Comparable(laneSeed, [3]string{s.Group, s.Partition, s.Key}) % lanes
}

// run tells the store what waits in a lane until ctx ends.
func (b *Backlog) run(ctx context.Context, l *lane) {
	delay, misread := firstRetry, 0
	for {
		next := b.head(l)
		if next == nil {
			if !b.rest(ctx, l) {
				return
			}
			continue
		}
		result, err := b.settle(ctx, next.settle)
		if err == nil {
			b.pop(l)
			b.settled(next.settle, result)
			delay, misread = firstRetry, 0
			continue
		}
		if isOdd(err) {
			if misread++; misread >= maxMisread || next.odd {
				b.setAside(l)
				delay, misread = firstRetry, 0
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-l.hurry:
			delay = firstRetry
		case <-time.After(delay/2 + rand.N(delay/2)):
			delay = min(2*delay, lastRetry)
		}
	}
}

// isOdd reports whether a failure is about the settlement rather than about the store.
func isOdd(err error) bool {
	var failure *store.Error
	return !errors.As(err, &failure) || failure.Kind == store.KindReply
}

// rest waits until something waits in a lane; false when ctx ended.
func (b *Backlog) rest(ctx context.Context, l *lane) bool {
	again := time.NewTimer(oddRetry)
	defer again.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-l.wake:
	case <-again.C:
		b.mu.Lock()
		defer b.mu.Unlock()
		l.waiting, l.odd = append(l.waiting, l.odd...), nil
	}
	return true
}

// head is the oldest that waits, nil for none.
func (b *Backlog) head(l *lane) *entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(l.waiting) == 0 {
		return nil
	}
	return l.waiting[0]
}

// shift takes the head out of its lane; b.mu is held.
func (b *Backlog) shift(l *lane) *entry {
	e := l.waiting[0]
	l.waiting[0] = nil
	if l.waiting = l.waiting[1:]; len(l.waiting) == 0 {
		l.waiting = nil
	}
	if e.unseen && !e.odd {
		b.owed--
	}
	return e
}

// pop forgets the head, which the store has taken.
func (b *Backlog) pop(l *lane) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.shift(l)
	b.waiting--
	b.bytes -= e.size
	b.answers -= int64(len(e.settle.Answer))
	if b.journal != nil {
		b.journal.done(e)
	}
}

// setAside lets the ones behind the head go on.
func (b *Backlog) setAside(l *lane) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.shift(l)
	e.odd = true
	if l.odd = append(l.odd, e); len(l.odd) == 1 {
		b.log.Warn("the store gives no sensible answer to a settlement: it is tried again every minute, others go on",
			"pool", e.settle.Pool, "hold", e.settle.Hold)
	}
}
