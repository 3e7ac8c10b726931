package degrade

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slotgate/slotgate/gate/store"
)

const (
	// touchLease, and touchShare for each touched slot, is how long a mark stands without
	// being renewed, for a gate that dies on its way back. It is renewed after a third.
	touchLease = 10 * time.Second
	touchShare = 50 * time.Millisecond
	// touchers is how many slots are marked at once.
	touchers = 32
	// maxTouched bounds the slots that one outage may touch.
	maxTouched = 65536

	// lastSteps bounds how long requests are kept waiting for the end of a return.
	lastSteps = 500 * time.Millisecond
	// fewLeft settlements may still wait when the last steps begin.
	fewLeft = 16

	lookAgain  = 50 * time.Millisecond // whether the store answers
	lookCloser = 2 * time.Millisecond  // whether the last settlement is through
)

// Recovery knows whether the gate goes by its store or on without it, what was
// passed through meanwhile, and brings both together when the store answers again
// (design section 4, H18): mark the touched slots and register what still runs,
// then the settlements, those of one slot in order, then the counters resume. It is safe for
// concurrent use.
type Recovery struct {
	guard   *Guard
	backlog *Backlog
	log     *slog.Logger
	gate    string      // this process's name in marks
	watch   store.Watch // of the store's run
	phase   atomic.Int32
	runs    atomic.Int64 // runs that the store has changed to
	tail    tail

	mu       sync.Mutex
	changed  chan struct{} // closed when the phase changes
	outage   int64
	began    time.Time
	touched  map[slotName]*touchedSlot
	running  map[*Passing]struct{} // at the backend
	flushing bool                  // what waits may be settled although slots are touched
	wake     chan struct{}

	stop    context.CancelFunc
	stopped chan struct{}
}

const (
	normal    int32 = iota // go by the store
	away                   // go on without it
	returning              // the last steps of coming back: requests wait a moment
)

// touchedSlot is a slot of whose requests the store may not know.
type touchedSlot struct {
	query   store.SlotQuery
	pending map[string]*Passing // unanswered, and not yet registered in the store
	marked  time.Time           // zero: not yet
	// underWay: it is being marked.
	underWay bool
}

// NewRecovery starts watching over guard. What it has to settle goes through
// backlog, which must be made with Recovery.Settle and set by Start.
func NewRecovery(guard *Guard, log *slog.Logger) *Recovery {
	return &Recovery{
		guard: guard, log: log, gate: rand.Text(), watch: guard.WatchRun(),
		changed: make(chan struct{}), touched: make(map[slotName]*touchedSlot), running: make(map[*Passing]struct{}),
		wake: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
}

// Start begins the background work.
func (r *Recovery) Start(backlog *Backlog) {
	ctx, stop := context.WithCancel(context.Background())
	r.backlog, r.stop = backlog, stop
	go r.run(ctx)
}

// Close ends the background work. It may be called twice.
func (r *Recovery) Close() {
	r.stop()
	<-r.stopped
	r.watch.Close()
}

// Away reports that the gate goes on without its store.
func (r *Recovery) Away() bool { return r.phase.Load() != normal }

// Ready says whether to go by the store. In the last steps of a return it waits a
// moment for the answer to be yes.
func (r *Recovery) Ready() bool {
	switch r.phase.Load() {
	case normal:
		return true
	case away:
		return false
	}
	r.mu.Lock()
	changed := r.changed
	r.mu.Unlock()
	if r.phase.Load() == returning {
		timer := time.NewTimer(lastSteps)
		defer timer.Stop()
		select {
		case <-changed:
		case <-timer.C:
		}
	}
	return r.phase.Load() == normal
}

// Failed is told of every failed store call, and how it failed. Once the breaker has
// opened, the gate goes on without the store until Recovery has brought it back.
func (r *Recovery) Failed(err error) {
	if r.guard.State() != 2 || r.phase.Load() != normal {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.phase.Load() != normal {
		return
	}
	r.outage++
	r.began = time.Now()
	r.flushing = false
	r.tail.freeze()
	r.enter(away)
	r.log.Warn("the store does not answer: going on without it", "outage", r.outage, "err", err)
	r.nudge()
}

// Outage numbers the outages of this process; requests of one share their units, and
// so do those whose calls failed before it was taken for one.
func (r *Recovery) Outage() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.phase.Load() == normal {
		return r.outage + 1
	}
	return r.outage
}

// enter switches the phase; r.mu is held.
func (r *Recovery) enter(phase int32) {
	r.phase.Store(phase)
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *Recovery) nudge() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Settle is the backlog's way to the store. Nothing is settled before the touched
// slots are marked, or another gate would admit on counters that lack bookings.
func (r *Recovery) Settle(ctx context.Context, s *store.Settle) (store.Settled, error) {
	r.mu.Lock()
	held := !r.flushing && (r.phase.Load() != normal || len(r.touched) > 0)
	r.mu.Unlock()
	if held {
		return store.Settled{}, &store.Error{Op: "settle", Kind: KindOpen, Err: errHeld}
	}
	return r.guard.Settle(ctx, s)
}

// run comes back whenever there is something to come back from, and makes up for a
// change of run when the gate goes by its store again: by then nothing waits for it,
// for no slot is verified under the new run.
func (r *Recovery) run(ctx context.Context) {
	defer close(r.stopped)
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-r.watch.C():
			r.runChanged()
		}
		for r.Away() || r.hasTouched() {
			if r.guard.Answers(ctx) && r.comeBack(ctx) {
				break
			}
			if !pause(ctx, lookAgain) {
				return
			}
		}
		select {
		case <-r.watch.C():
			r.runChanged()
		default:
			r.settled()
		}
	}
}

// settled lets the tail grow old again, unless the store is away anew.
func (r *Recovery) settled() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.phase.Load() == normal {
		r.tail.thaw()
	}
}

// comeBack does the steps of a return; false when the store failed again or the
// last steps took too long.
func (r *Recovery) comeBack(ctx context.Context) bool {
	for {
		if !r.touchAll(ctx) {
			return r.backOff()
		}
		r.setFlushing(true)
		if r.backlog.Owed() <= fewLeft {
			break
		}
		if r.guard.State() != 0 || !pause(ctx, lookAgain) {
			return r.backOff()
		}
	}
	r.mu.Lock()
	wasAway := r.phase.Load() == away
	if wasAway {
		r.enter(returning)
	}
	r.mu.Unlock()
	for deadline := time.Now().Add(lastSteps); time.Now().Before(deadline); {
		if !r.touchAll(ctx) {
			break
		}
		if slots, done := r.finish(); done {
			r.resume(ctx, slots)
			return true
		}
		if !pause(ctx, lookCloser) {
			break
		}
	}
	return r.backOff()
}

// backOff lets requests go on without the store for another while.
func (r *Recovery) backOff() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.phase.Load() == returning {
		r.enter(away)
	}
	if r.guard.State() != 0 {
		r.flushing = false
	}
	return false
}

func (r *Recovery) setFlushing(on bool) {
	r.mu.Lock()
	r.flushing = on
	r.mu.Unlock()
	r.backlog.Retry()
}

// finish goes back to the store if everything is settled and registered.
func (r *Recovery) finish() (slots []store.SlotQuery, done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.backlog.Owed() > 0 {
		return nil, false
	}
	for _, slot := range r.touched {
		if slot.marked.IsZero() || len(slot.pending) > 0 {
			return nil, false
		}
		slots = append(slots, slot.query)
	}
	r.touched = make(map[slotName]*touchedSlot)
	r.flushing = false
	if r.phase.Load() != normal {
		r.enter(normal)
		r.log.Info("the store is back", "away", time.Since(r.began).Round(time.Millisecond).String(), "touched_slots", len(slots))
	}
	return slots, true
}

// resume ends the marks. One that cannot be ended ends by its lease.
func (r *Recovery) resume(ctx context.Context, slots []store.SlotQuery) {
	var next atomic.Int64
	failure := together(len(slots), func() error {
		i := int(next.Add(1)) - 1
		if i >= len(slots) {
			return errDone
		}
		return r.guard.Store.Resume(ctx, slots[i], r.gate)
	})
	if failure != nil {
		r.log.Warn("touched slots stay marked for a few seconds", "error", failure)
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
