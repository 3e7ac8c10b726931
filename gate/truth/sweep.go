package truth

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// sweepBatch is how many due slots are taken from the store at once.
	sweepBatch = 32
	// sweepers is how many of them are looked at at once.
	sweepers = 4
	// storeAway is how long a sweep waits after the store failed.
	storeAway = time.Second
)

var (
	errNotLeading = errors.New("this gate does not lead the pool any more")
	errNoValue    = errors.New("the source's value is null or not there")
)

// sweep looks at slots as they fall due, until the term of the lead ends.
func (p *Pool) sweep(ctx context.Context, fence int64) {
	defer p.tally.reset(p.name, p.meter) // the next leader's figures count from now on
	for ctx.Err() == nil {
		slots, next, err := p.store.Due(ctx, p.name, sweepBatch, p.sweepLease())
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			p.noteStore("due", err)
			next = storeAway
		case len(slots) > 0:
			p.sweepAll(ctx, fence, slots)
			next = 0
		}
		p.tally.show(p.name, p.meter, time.Now())
		if next < 0 || next > p.idle() {
			next = p.idle() // another gate may make a slot due at any time
		}
		if next > 0 && sleep(ctx, next) != nil {
			return
		}
	}
}

// idle is how long a leader sleeps at most between two looks at what is due.
func (p *Pool) idle() time.Duration {
	return min(max(p.truth.Hot/10, 10*time.Millisecond), 500*time.Millisecond)
}

// sweepLease is how long slots that were taken are not due again: until all of them
// have been looked at, at the pool's pace.
func (p *Pool) sweepLease() time.Duration {
	rate := p.truth.MaxRate
	lease := 2 * (p.truth.Timeout + leaseMargin)
	if rate.Count > 0 {
		lease += 2 * sweepBatch * rate.Per / time.Duration(rate.Count)
	}
	return lease
}

func (p *Pool) sweepAll(ctx context.Context, fence int64, slots []string) {
	queue := make(chan string, len(slots))
	for _, slot := range slots {
		queue <- slot
	}
	close(queue)
	var wait sync.WaitGroup
	for range min(sweepers, len(slots)) {
		wait.Go(func() {
			for slot := range queue {
				if ctx.Err() == nil {
					p.sweepOne(ctx, fence, slot)
				}
			}
		})
	}
	wait.Wait()
}

// sweepOne looks at one due slot. What is not applied comes back: the slot is due
// again when its sweep lease ends.
func (p *Pool) sweepOne(ctx context.Context, fence int64, slot string) {
	l := &look{pool: p, slot: slot, fence: fence}
	if p.take(ctx, inBackground) != nil {
		return
	}
	asked, looked, err := l.begin(ctx)
	if err != nil {
		p.noteStore("look", err)
		return
	}
	if looked.Busy > 0 {
		return
	}
	if _, err := l.finish(ctx, asked, looked); err != nil && !errors.Is(err, errNotLeading) {
		p.noteStore("apply", err)
	}
}

// jitter shortens an interval by up to a tenth, so that slots which were made due
// together do not stay together.
func (p *Pool) jitter(d time.Duration) time.Duration {
	return d - rand.N(d/10+1)
}
