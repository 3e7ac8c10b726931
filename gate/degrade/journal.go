package degrade

import (
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/slotgate/slotgate/gate/store/seal"
)

const (
	// syncLimit is how long a request waits for the disk before its settlement is
	// left to memory.
	syncLimit = time.Second
	// journalSlack is what a file may have beyond twice the settlements that wait.
	journalSlack = 1 << 20

	firstRewrite = time.Second
	lastRewrite  = 30 * time.Second
)

var (
	errSlowDisk      = errors.New("the disk has not taken the last ones for a second")
	errJournalClosed = errors.New("the journal is closed")
)

// journal keeps the backlog's settlements in a file, so that they outlive the
// process. One goroutine writes: it takes all that came while the last batch was
// on its way to the disk, writes it, syncs once, and tells everyone who waits for
// it (group commit). That a settlement was taken is written without a sync, for to
// settle twice has the effect of once.
//
// After a failed write or sync nobody knows how the file ends, and a later sync
// that succeeds proves nothing. So a file is never mended: the next attempt writes
// all that waits to a new file, which takes the old one's place. The same is done
// when most of a file is about settlements that no longer wait.
type journal struct {
	path   string
	keys   *seal.Keys // that seal its records
	log    *slog.Logger
	lock   io.Closer
	create func(path string) (file, error)
	file   *journalFile // of the goroutine that writes

	mu      sync.Mutex
	last    uint64            // seq of the newest entry
	waiting map[uint64]*entry // by seq
	bytes   int64             // of what waits
	next    *batch            // gathers what comes
	began   time.Time         // when the batch under way went to the disk; zero: none
	broken  *batch            // failed, and no rewrite has succeeded since
	failed  int64
	closing bool

	wake    chan struct{}
	quit    chan struct{}
	stopped chan struct{}
}

// batch is what goes to the disk with one sync.
type batch struct {
	rewrite bool // to a new file
	added   []*entry
	taken   []uint64
	ended   chan struct{}
	err     error // once ended
}

func newBatch() *batch { return &batch{ended: make(chan struct{})} }

// endedBatch is one that will not be written.
func endedBatch(err error) *batch {
	b := newBatch()
	b.end(err)
	return b
}

func (b *batch) end(err error) {
	b.err = err
	close(b.ended)
}

// start writes what waits to a new file and begins to take more.
func (j *journal) start(h history) error {
	j.last, j.waiting, j.next = h.last, make(map[uint64]*entry, len(h.waiting)), newBatch()
	for _, e := range h.waiting {
		j.waiting[e.seq] = e
		j.bytes += e.size
	}
	if err := j.rewrite(h.waiting); err != nil {
		return err
	}
	j.wake, j.quit, j.stopped = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	go j.run()
	return nil
}

// add gives an entry its place and queues it. It does not block; await does.
func (j *journal) add(e *entry) *batch {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closing {
		return endedBatch(errJournalClosed)
	}
	j.last++
	e.seq = j.last
	j.waiting[e.seq] = e
	j.bytes += e.size
	if j.broken != nil {
		return j.broken // the rewrite that ends it takes all that waits
	}
	j.next.added = append(j.next.added, e)
	signal(j.wake)
	if !j.began.IsZero() && time.Since(j.began) > syncLimit {
		return endedBatch(errSlowDisk) // others wait already
	}
	return j.next
}

// await returns when the batch is on disk, or is left to memory for now.
func (j *journal) await(b *batch) {
	limit := time.NewTimer(syncLimit)
	defer limit.Stop()
	err := errSlowDisk
	select {
	case <-b.ended:
		err = b.err
	case <-limit.C:
	}
	if err == nil {
		return
	}
	j.mu.Lock()
	j.failed++
	failed := j.failed
	j.mu.Unlock()
	if powerOfTwo(failed) {
		j.log.Warn("a settlement waits in memory only", "journal", j.path, "err", err, "so_far", failed)
	}
}

// done notes that an entry no longer waits.
func (j *journal) done(e *entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.waiting[e.seq] != e {
		return
	}
	delete(j.waiting, e.seq)
	j.bytes -= e.size
	if j.broken == nil && !j.closing {
		j.next.taken = append(j.next.taken, e.seq)
		signal(j.wake)
	}
}

// unwritten is how many entries were not on disk when their request went on.
func (j *journal) unwritten() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.failed
}

// close writes what is left and gives the file free. It may be called twice.
func (j *journal) close() {
	j.mu.Lock()
	if !j.closing {
		j.closing = true
		close(j.quit)
	}
	j.mu.Unlock()
	select {
	case <-j.stopped:
	case <-time.After(syncLimit):
		j.log.Warn("stopped before the disk took all of the journal", "journal", j.path)
	}
}

func (j *journal) run() {
	defer close(j.stopped)
	defer j.lock.Close()
	wake, delay := j.wake, firstRewrite
	var retry <-chan time.Time // instead of wake while the journal is broken
	for closing := false; !closing; {
		select {
		case <-wake:
		case <-retry:
		case <-j.quit:
			closing = true
		}
		err := j.write(j.take())
		switch {
		case err != nil:
			if retry == nil {
				j.log.Warn("cannot write the journal: settlements wait in memory only", "journal", j.path, "err", err)
			}
			wake, retry = nil, time.After(delay)
			delay = min(2*delay, lastRewrite)
		case retry != nil:
			j.log.Info("the journal is written again", "journal", j.path)
			wake, retry, delay = j.wake, nil, firstRewrite
		}
	}
	if err := j.file.close(); err != nil {
		j.log.Warn("closing the journal", "journal", j.path, "err", err)
	}
}

// take ends the gathering of a batch. One that makes a new file gets all that
// waits.
func (j *journal) take() *batch {
	j.mu.Lock()
	defer j.mu.Unlock()
	b := j.next
	j.next, j.began = newBatch(), time.Now()
	if j.broken != nil || j.file.size > 2*j.bytes+journalSlack {
		j.broken = nil
		b.rewrite, b.added = true, slices.SortedFunc(maps.Values(j.waiting), bySeq)
	} else {
		b.added = slices.DeleteFunc(b.added, func(e *entry) bool { return j.waiting[e.seq] != e })
	}
	return b
}

// write brings a batch to the disk and tells those who wait for it.
func (j *journal) write(b *batch) (err error) {
	if b.rewrite {
		err = j.rewrite(b.added)
	} else {
		err = j.file.append(b.added, b.taken)
		if err == nil && len(b.added) > 0 {
			err = j.file.sync()
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.began = time.Time{}
	b.end(err)
	b.added, b.taken = nil, nil
	if err != nil {
		j.broken = b
		j.next.end(err) // the rewrite will take them too
		j.next = newBatch()
	}
	return err
}
