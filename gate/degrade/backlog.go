package degrade

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/slotgate/slotgate/gate/store"
)

const (
	// maxBacklog settlements wait at most; with answers of a few KiB each that
	// is some tens of megabytes.
	maxBacklog = 10000

	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
	// maxMisread is how often a settlement may get an answer that makes no sense
	// before the ones behind it go first.
	maxMisread = 3
)

// Backlog holds the settlements that the store did not take, in order, and
// retries them one by one until it does. It is bounded: when full, the oldest
// stay and a new one is refused and counted.
type Backlog struct {
	settle  func(context.Context, *store.Settle) (store.Settled, error)
	settled func(*store.Settle, store.Settled)
	log     *slog.Logger

	mu      sync.Mutex
	waiting []*store.Settle
	lost    int64
	wake    chan struct{}

	stop    context.CancelFunc
	stopped chan struct{}
}

// NewBacklog starts retrying through settle; settled is told of each one taken.
func NewBacklog(
	settle func(context.Context, *store.Settle) (store.Settled, error),
	settled func(*store.Settle, store.Settled),
	log *slog.Logger,
) *Backlog {
	ctx, stop := context.WithCancel(context.Background())
	b := &Backlog{
		settle: settle, settled: settled, log: log,
		wake: make(chan struct{}, 1), stop: stop, stopped: make(chan struct{}),
	}
	go b.run(ctx)
	return b
}

// Add takes a settlement over; false when there is no room for it.
func (b *Backlog) Add(s *store.Settle) bool {
	b.mu.Lock()
	if len(b.waiting) >= maxBacklog {
		b.lost++
		lost := b.lost
		b.mu.Unlock()
		if lost&(lost-1) == 0 { // 1, 2, 4, 8, …: an outage must not flood the log
			b.log.Warn("settlement lost: too many wait for the store", "lost", lost, "waiting", maxBacklog)
		}
		return false
	}
	b.waiting = append(b.waiting, s)
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return true
}

// Len is how many settlements wait.
func (b *Backlog) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}

// Lost is how many settlements found no room.
func (b *Backlog) Lost() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lost
}

// Close retries what waits until ctx ends and returns how many are left. It may
// be called twice.
func (b *Backlog) Close(ctx context.Context) int {
	defer func() {
		b.stop()
		<-b.stopped
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for b.Len() > 0 {
		select {
		case <-ctx.Done():
			return b.Len()
		case <-tick.C:
		}
	}
	return 0
}

func (b *Backlog) run(ctx context.Context) {
	defer close(b.stopped)
	delay, misread := firstRetry, 0
	for {
		next := b.head()
		if next == nil {
			select {
			case <-ctx.Done():
				return
			case <-b.wake:
			}
			continue
		}
		result, err := b.settle(ctx, next)
		if err == nil {
			b.pop()
			b.settled(next, result)
			delay, misread = firstRetry, 0
			continue
		}
		var failure *store.Error
		if errors.As(err, &failure) && failure.Kind == store.KindReply {
			if misread++; misread >= maxMisread {
				b.requeue()
				misread = 0
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay/2 + rand.N(delay/2)):
		}
		delay = min(2*delay, lastRetry)
	}
}

func (b *Backlog) head() *store.Settle {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		return nil
	}
	return b.waiting[0]
}

func (b *Backlog) pop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting[0] = nil
	b.waiting = b.waiting[1:]
	if len(b.waiting) == 0 {
		b.waiting = nil
	}
}

// requeue moves the head to the end.
func (b *Backlog) requeue() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting[1:], b.waiting[0])
}
