package degrade

import (
	"context"
	"log/slog"
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
)

// Backlog holds the settlements that the store did not take, and retries them until
// it does: those of one slot, or of one key without a slot, in their order. It is
// bounded: when full, the oldest stay and a new one is refused and counted. With a
// journal it outlives the process.
type Backlog struct {
	settle  func(context.Context, *store.Settle) (store.Settled, error)
	settled func(*store.Settle, store.Settled)
	log     *slog.Logger
	journal *journal // nil: memory only

	mu      sync.Mutex
	lanes   [lanes]lane
	waiting int // in all lanes
	owed    int // of these, unseen ones that were never set aside
	bytes   int64
	answers int64 // bytes of answers
	lost    int64
	bare    int64

	stop    context.CancelFunc
	stopped chan struct{}
}

// entry is a settlement that waits.
type entry struct {
	settle *store.Settle
	size   int64  // about what it takes in memory; its record is smaller
	seq    uint64 // its place in the journal
	unseen bool   // of a request that the store does not know
	odd    bool   // was set aside once
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
	b.stopped = make(chan struct{})
	var running sync.WaitGroup
	for i := range b.lanes {
		l := &b.lanes[i]
		l.wake, l.hurry = make(chan struct{}, 1), make(chan struct{}, 1)
		running.Go(func() { b.run(ctx, l) })
	}
	go func() {
		defer close(b.stopped)
		running.Wait()
	}()
	return b
}

// Add takes a settlement over; false when there is no room for it. With a journal
// it returns when the settlement is on disk, or after a second at most: a disk
// that fails or hangs holds nobody up, and the settlement waits in memory.
func (b *Backlog) Add(s *store.Settle) bool { return b.add(s, false) }

// AddUnseen is Add for a request that the store does not know: until it is settled the
// store's counters lack it (Owed).
func (b *Backlog) AddUnseen(s *store.Settle) bool { return b.add(s, true) }

func (b *Backlog) add(s *store.Settle, unseen bool) bool {
	written, ok := b.take(s, unseen)
	if !ok {
		return false
	}
	if b.journal != nil {
		b.journal.await(written)
	}
	return true
}

// AddAll takes settlements over, as far as there is room for them. It does not wait
// for the disk.
func (b *Backlog) AddAll(list []*store.Settle, unseen bool) {
	for _, s := range list {
		b.take(s, unseen)
	}
}

// take puts a settlement at the end of its lane, in the journal too.
func (b *Backlog) take(s *store.Settle, unseen bool) (written *batch, ok bool) {
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
	e.unseen = unseen
	if b.waiting >= maxBacklog || b.bytes+e.size > maxWaiting {
		if b.lost++; powerOfTwo(b.lost) {
			b.log.Warn("settlement lost: too many wait for the store", "lost", b.lost, "waiting", b.waiting)
		}
		return nil, false
	}
	l := b.push(e)
	if b.journal != nil {
		written = b.journal.add(e)
	}
	signal(l.wake)
	return written, true
}

func (b *Backlog) push(e *entry) *lane {
	l := &b.lanes[laneOf(e.settle)]
	l.waiting = append(l.waiting, e)
	b.waiting++
	if e.unseen {
		b.owed++
	}
	b.bytes += e.size
	b.answers += int64(len(e.settle.Answer))
	return l
}

// powerOfTwo is true of 1, 2, 4, 8, …: an outage must not flood the log.
func powerOfTwo(n int64) bool { return n&(n-1) == 0 }

// Retry tries the oldest again now, not when their pauses end.
func (b *Backlog) Retry() {
	for i := range b.lanes {
		signal(b.lanes[i].hurry)
	}
}

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
	return b.waiting
}

// Owed is how many of them are of requests that the store does not know, except those
// that it has answered as no store of ours does.
func (b *Backlog) Owed() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.owed
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
func (b *Backlog) Close(ctx context.Context) (left int) {
	defer func() {
		b.stop()
		<-b.stopped
		left = b.Len() // the last ones under way may have been taken
		if b.journal != nil {
			b.journal.close()
		}
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for b.Len() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-b.stopped: // a second call
			return
		case <-tick.C:
		}
	}
	return
}
