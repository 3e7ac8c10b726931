package truth

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

const (
	// examinePage is how many slots are read from the store at once.
	examinePage = 256
	// shownHolds is how many holds of a slot the stores show.
	shownHolds = 100
	// examineWorkers is how many slots are compared at once.
	examineWorkers = 4
	// examineSuspects is how many slots wait at once to be looked at again.
	examineSuspects = 256
	// examineTries is how often a slot is observed that does not come to rest.
	examineTries = 3
	// wholeLedger is more entries than any slot keeps.
	wholeLedger = 1 << 20
	// examineWait is the least time between two of them; lag, if that is longer.
	examineWait = 200 * time.Millisecond
)

// ExamineOptions are what Reconcile and Audit have in common.
type ExamineOptions struct {
	// Slot is the only slot to look at, "" all that the store knows.
	Slot string
	// Rate bounds the reads of the source by this call. Zero: the pool's max_rate,
	// shared with everything else that looks.
	Rate rules.Rate
}

// Summary is what the reports have in common. Times are of this process's clock.
type Summary struct {
	Pool    string    `json:"pool"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	// Slots were compared. Failed could not be: the source did not tell, or failed;
	// Error is the first of the failures. Partial have more holds than the store
	// shows: of their holds only the newest 100 were compared.
	Slots   int    `json:"slots"`
	Failed  int    `json:"failed"`
	Partial int    `json:"partial"`
	Error   string `json:"error,omitempty"`
}

// examiner goes through the slots of a pool.
type examiner struct {
	pool  *Pool
	holds int  // of each slot that are needed
	dated bool // observations tell since when the slot is known
	rate  *rate.Limiter
	room  chan struct{} // reads of the source at once

	mu      sync.Mutex
	summary Summary
}

func newExaminer(p *Pool, o *ExamineOptions) *examiner {
	x := &examiner{pool: p, room: make(chan struct{}, examineWorkers)}
	x.summary = Summary{Pool: p.name, Started: time.Now()}
	if p.lister != nil || p.config.OnePerSubject {
		x.holds = shownHolds
	}
	if o.Rate.Count > 0 {
		every := o.Rate.Per / time.Duration(o.Rate.Count)
		x.rate = rate.NewLimiter(rate.Every(every), max(1, o.Rate.Count/10))
	}
	return x
}

// take waits for room and for the rate; give makes room.
func (x *examiner) take(ctx context.Context) error {
	select {
	case x.room <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := x.pace(ctx)
	if err != nil {
		x.give()
	}
	return err
}

func (x *examiner) pace(ctx context.Context) error {
	if x.rate != nil {
		return x.rate.Wait(ctx)
	}
	return x.pool.pace.take(ctx, inBackground)
}

func (x *examiner) give() { <-x.room }

// note is one thing that is wrong with a slot.
type note interface{ id() string }

// examine judges each slot and gives what is wrong to found, from one goroutine at a
// time. It returns the context's error, the store's, or found's; a slot whose source
// fails is counted and passed over.
func examine[N note](ctx context.Context, x *examiner, only string, judge func(*observation) []N, found func(context.Context, *observation, []N) error) error {
	run := &run[N]{examiner: x, judge: judge, found: found, suspects: make(chan struct{}, examineSuspects)}
	run.ctx, run.stop = context.WithCancelCause(ctx)
	defer run.stop(nil)
	if only != "" {
		run.again(only)
	} else {
		run.pages()
	}
	run.wait.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.summary.Ended = time.Now()
	return context.Cause(run.ctx)
}

// run is one examine under way.
type run[N note] struct {
	*examiner
	judge    func(*observation) []N
	found    func(context.Context, *observation, []N) error
	ctx      context.Context
	stop     context.CancelCauseFunc
	wait     sync.WaitGroup
	suspects chan struct{}
	finding  sync.Mutex
}

// pages reads page after page, and glances at each slot of one before the next.
func (r *run[N]) pages() {
	q := r.pool.query("")
	q.Holds = r.holds
	for cursor := ""; r.ctx.Err() == nil; {
		page, next, err := r.pool.store.Slots(r.ctx, q, cursor, examinePage)
		if err != nil {
			r.stop(err)
			return
		}
		queue := make(chan *store.Slot, len(page))
		for i := range page {
			queue <- &page[i]
		}
		close(queue)
		var workers sync.WaitGroup
		for range min(examineWorkers, len(page)) {
			workers.Go(func() {
				for s := range queue {
					if r.ctx.Err() == nil {
						r.first(s)
					}
				}
			})
		}
		workers.Wait()
		if cursor = next; cursor == "" {
			return
		}
	}
}

// first glances at a slot. Most are right, and that is all for them.
func (r *run[N]) first(s *store.Slot) {
	o, err := r.glance(r.ctx, *s)
	if err != nil {
		r.fail(err)
		return
	}
	if s.Held == 0 && s.Inflight == 0 && len(r.judge(o)) == 0 {
		r.count(o)
		return
	}
	select {
	case r.suspects <- struct{}{}:
	case <-r.ctx.Done():
		return
	}
	r.wait.Go(func() {
		defer func() { <-r.suspects }()
		r.again(s.Slot)
	})
}

// again observes a slot until it was at rest, at most examineTries times; then what
// was wrong each time is wrong.
func (r *run[N]) again(slot string) {
	var standing []N
	for try := 1; ; try++ {
		o, err := r.observe(r.ctx, slot)
		if err != nil {
			if !gone(err) {
				r.fail(err)
			}
			return
		}
		notes := r.judge(o)
		if try > 1 && !o.atRest() {
			notes = inBoth(standing, notes)
		}
		if o.atRest() || len(notes) == 0 && try > 1 || try == examineTries {
			r.count(o)
			r.report(o, notes)
			return
		}
		standing = notes
		if sleep(r.ctx, max(examineWait, r.pool.truth.Lag)) != nil {
			return
		}
	}
}

func (r *run[N]) report(o *observation, notes []N) {
	if len(notes) == 0 {
		return
	}
	r.finding.Lock()
	defer r.finding.Unlock()
	if err := r.found(r.ctx, o, notes); err != nil {
		r.stop(err)
	}
}

// inBoth are the later notes that were there earlier too.
func inBoth[N note](earlier, later []N) (both []N) {
	there := map[string]bool{}
	for _, n := range earlier {
		there[n.id()] = true
	}
	for _, n := range later {
		if there[n.id()] {
			both = append(both, n)
		}
	}
	return both
}

func (x *examiner) count(o *observation) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.summary.Slots++
	if o.value.None {
		x.failed(errNoValue)
	}
	if x.holds > 0 && !o.whole() {
		x.summary.Partial++
	}
}

// fail counts a slot that could not be compared. A failure of the store ends the run:
// it would fail for the others too.
func (r *run[N]) fail(err error) {
	var away *store.Error
	if errors.As(err, &away) {
		r.stop(err)
		return
	}
	if r.ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed(err)
}

func (x *examiner) failed(err error) {
	x.summary.Failed++
	if x.summary.Error == "" {
		x.summary.Error = err.Error()
	}
}
