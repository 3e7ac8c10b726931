package degrade

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/seal"
)

const (
	// maxBacklog settlements, of maxWaiting bytes in all, wait at most.
	maxBacklog = 10000
	maxWaiting = 64 << 20
	// maxAnswers bytes of answers wait at most. Later settlements do without:
	// that units are taken matters more than a replay's body.
	maxAnswers = maxWaiting / 2

	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
	// maxMisread is how often a settlement may get an answer that makes no sense
	// before the ones behind it go first.
	maxMisread = 3
)

// Backlog holds the settlements that the store did not take, in order, and
// retries them one by one until it does. It is bounded: when full, the oldest
// stay and a new one is refused and counted. With a journal it outlives the
// process.
type Backlog struct {
	settle  func(context.Context, *store.Settle) (store.Settled, error)
	settled func(*store.Settle, store.Settled)
	log     *slog.Logger
	journal *journal // nil: memory only

	mu      sync.Mutex
	waiting []*entry
	bytes   int64
	answers int64 // bytes of answers
	lost    int64
	bare    int64
	wake    chan struct{}
	hurry   chan struct{}

	stop    context.CancelFunc
	stopped chan struct{}
}

// entry is a settlement that waits.
type entry struct {
	settle *store.Settle
	size   int64  // about what it takes in memory; its record is smaller
	seq    uint64 // its place in the journal
}

func newEntry(s *store.Settle, seq uint64) *entry {
	return &entry{settle: s, seq: seq, size: sizeOf(s)}
}

// NewBacklog starts retrying through settle; settled is told of each one taken.
func NewBacklog(
	settle func(context.Context, *store.Settle) (store.Settled, error),
	settled func(*store.Settle, store.Settled),
	log *slog.Logger,
) *Backlog {
	return startBacklog(&Backlog{settle: settle, settled: settled, log: log})
}

// OpenBacklog is NewBacklog with a journal file, made where there is none ("":
// memory only). What waited when the last process ended goes first. The file
// holds keys, credentials and answers, as they are where keys do not seal them,
// and has mode 0600; an error says that others may read it, that another gate has
// it open, that it is no journal, that these keys do not open it, or that it cannot
// be written.
func OpenBacklog(
	path string,
	keys *seal.Keys,
	settle func(context.Context, *store.Settle) (store.Settled, error),
	settled func(*store.Settle, store.Settled),
	log *slog.Logger,
) (*Backlog, error) {
	b := &Backlog{settle: settle, settled: settled, log: log}
	if path != "" {
		j, waiting, err := openJournal(path, keys, log)
		if err != nil {
			return nil, err
		}
		b.journal = j
		for _, e := range waiting {
			b.push(e)
		}
	}
	return startBacklog(b), nil
}

func startBacklog(b *Backlog) *Backlog {
	var ctx context.Context
	ctx, b.stop = context.WithCancel(context.Background())
	b.wake, b.hurry, b.stopped = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{})
	go b.run(ctx)
	return b
}

// Add takes a settlement over; false when there is no room for it. With a journal
// it returns when the settlement is on disk, or after a second at most: a disk
// that fails or hangs holds nobody up, and the settlement waits in memory.
func (b *Backlog) Add(s *store.Settle) bool {
	written, ok := b.take(s)
	if !ok {
		return false
	}
	signal(b.wake)
	if b.journal != nil {
		b.journal.await(written)
	}
	return true
}

// AddAll takes settlements over, as far as there is room for them. It does not wait
// for the disk.
func (b *Backlog) AddAll(list []*store.Settle) {
	for _, s := range list {
		b.take(s)
	}
	signal(b.wake)
}

// take puts a settlement at the end, in the journal too.
func (b *Backlog) take(s *store.Settle) (written *batch, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.answers+int64(len(s.Answer)) > maxAnswers {
		s = withoutAnswer(s)
		if b.bare++; powerOfTwo(b.bare) {
			b.log.Warn("too many answers wait for the store: a settlement goes without, and cannot be replayed",
				"so_far", b.bare, "bytes", b.answers)
		}
	}
	e := newEntry(s, 0)
	if len(b.waiting) >= maxBacklog || b.bytes+e.size > maxWaiting {
		if b.lost++; powerOfTwo(b.lost) {
			b.log.Warn("settlement lost: too many wait for the store", "lost", b.lost, "waiting", len(b.waiting))
		}
		return nil, false
	}
	b.push(e)
	if b.journal != nil {
		written = b.journal.add(e)
	}
	return written, true
}

func (b *Backlog) push(e *entry) {
	b.waiting = append(b.waiting, e)
	b.bytes += e.size
	b.answers += int64(len(e.settle.Answer))
}

// powerOfTwo is true of 1, 2, 4, 8, …: an outage must not flood the log.
func powerOfTwo(n int64) bool { return n&(n-1) == 0 }

// Retry tries the oldest again now, not when its pause ends.
func (b *Backlog) Retry() { signal(b.hurry) }

// signal leaves a token in a channel that has room for one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
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

// Unwritten is how many settlements were not in the journal when their request
// went on; the next write that succeeds takes them.
func (b *Backlog) Unwritten() int64 {
	if b.journal == nil {
		return 0
	}
	return b.journal.unwritten()
}

// Close retries what waits until ctx ends and returns how many are left; with a
// journal the next process goes on with them. It may be called twice.
func (b *Backlog) Close(ctx context.Context) int {
	defer func() {
		b.stop()
		<-b.stopped
		if b.journal != nil {
			b.journal.close()
		}
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
		result, err := b.settle(ctx, next.settle)
		if err == nil {
			b.pop()
			b.settled(next.settle, result)
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
		case <-b.hurry:
			delay = firstRetry
		case <-time.After(delay/2 + rand.N(delay/2)):
			delay = min(2*delay, lastRetry)
		}
	}
}

func (b *Backlog) head() *entry {
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
	e := b.waiting[0]
	b.waiting[0] = nil
	b.waiting = b.waiting[1:]
	if len(b.waiting) == 0 {
		b.waiting = nil
	}
	b.bytes -= e.size
	b.answers -= int64(len(e.settle.Answer))
	if b.journal != nil {
		b.journal.done(e)
	}
}

// requeue moves the head to the end.
func (b *Backlog) requeue() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting[1:], b.waiting[0])
}
