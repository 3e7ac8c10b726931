package truth

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

const (
	// maxProbes bounds the unanswered bookings that are looked for at once; over that
	// the oldest is left to lapse.
	maxProbes = 4096
	// probers is how many of them are looked for at the same moment.
	probers = 4

	firstProbe = 250 * time.Millisecond
	lastWait   = 5 * time.Second // between two probes of one booking, at most
)

// Prober looks for unanswered bookings in truth, and settles each as booked when it
// is there, as refused when it is not and cannot come any more. It is safe for
// concurrent use.
//
// How long the backend may still commit is A1's to say: hold_ttl, less the time for
// which an attempt is awaited, counted from when the gate gave up. Shortly before
// that, absent means refused. Under keep_unknown, where the hold does not lapse, the
// last probe is lag after it, and nothing is left to chance.
type Prober struct {
	pool   *Pool
	looker Looker
	window time.Duration // in which the backend may still commit

	mu      sync.Mutex
	due     probeQueue
	changed chan struct{} // of capacity 1: due has a new first
	running sync.Once
}

// probe is one unanswered booking.
type probe struct {
	settle *store.Settle
	at     time.Time // of the next look
	last   time.Time // when absent means refused
	wait   time.Duration
	order  uint64 // of arrival
	place  int    // in the queue
}

func newProber(p *Pool, l Looker, awaited time.Duration) *Prober {
	window := p.config.HoldTTL - awaited - p.truth.Timeout - leaseMargin
	if p.config.KeepUnknown {
		window = p.config.HoldTTL + p.truth.Lag
	}
	return &Prober{pool: p, looker: l, window: max(window, 0), changed: make(chan struct{}, 1)}
}

// Watch looks for the booking that an unanswered attempt may have made, until it is
// settled or the pool is closed. s is what the attempt was settled with as unknown; it
// is not changed. The booking of a request without a subject cannot be looked for.
func (p *Prober) Watch(s *store.Settle) {
	if s.Subject == "" {
		return
	}
	own := *s
	now := time.Now()
	wait := min(firstProbe, p.window)
	p.add(&probe{settle: &own, at: now.Add(wait), last: now.Add(p.window), wait: wait})
	p.running.Do(func() {
		for range probers {
			p.pool.tasks.Go(p.run)
		}
	})
}

// run takes one probe after another as they fall due.
func (p *Prober) run() {
	ctx := p.pool.ctx
	for {
		next, wait := p.take(time.Now())
		if next != nil {
			p.look(ctx, next)
			if ctx.Err() != nil {
				return
			}
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-p.changed:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// look settles what can be settled, and puts the probe back where nothing can.
func (p *Prober) look(ctx context.Context, of *probe) {
	asked := time.Now()
	there, err := p.booked(ctx, of.settle)
	switch {
	case ctx.Err() != nil:
		return
	case err == nil && there:
		err = p.settle(ctx, of.settle, rules.Booked)
	case err == nil && !asked.Before(of.last):
		err = p.settle(ctx, of.settle, rules.Refused)
	default:
		if err != nil && p.pool.quiet.may("probe") {
			p.pool.log.Warn("could not look for an unanswered booking in truth; its hold lapses if that stays so", "error", err)
		}
		p.again(of, time.Now())
		return
	}
	if err != nil {
		p.pool.noteStore("settle", err)
		p.again(of, time.Now())
	}
}

func (p *Prober) booked(ctx context.Context, s *store.Settle) (there bool, err error) {
	if err := p.pool.pace.take(ctx, inBackground); err != nil {
		return false, err
	}
	err = p.pool.guard.call(ctx, p.pool.truth.Timeout, func(ctx context.Context) (err error) {
		there, err = p.looker.Booked(ctx, s.Slot, s.Subject)
		return err
	})
	return there, err
}

// settle ends an attempt. A booked one's key is completed without a body: what the
// backend answered nobody knows.
func (p *Prober) settle(ctx context.Context, s *store.Settle, outcome rules.Outcome) error {
	own := *s
	own.Outcome, own.Answer, own.Keep = outcome, nil, outcome == rules.Booked
	settled, err := p.pool.store.Settle(ctx, &own)
	if err == nil && settled.Oversold > 0 {
		p.pool.meter.Oversold(p.pool.name, settled.Oversold)
	}
	return err
}

// again plans the next look, later each time but not after the last one. A hold that
// has lapsed, or is about to, is left alone once the last look has failed for a while.
func (p *Prober) again(of *probe, now time.Time) {
	if now.After(of.last.Add(p.pool.config.HoldTTL)) {
		return
	}
	of.wait = min(2*of.wait+time.Millisecond, lastWait)
	of.at = now.Add(of.wait - rand.N(of.wait/4+1))
	if now.Before(of.last) && of.at.After(of.last) {
		of.at = of.last
	}
	p.add(of)
}

func (p *Prober) add(of *probe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.due.items) >= maxProbes {
		p.due.dropOldest()
	}
	if of.order == 0 {
		p.due.arrived++
		of.order = p.due.arrived
	}
	heap.Push(&p.due, of)
	if of.place == 0 {
		p.wake()
	}
}

func (p *Prober) wake() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// take returns the first probe if it is due, else how long until one is.
func (p *Prober) take(now time.Time) (*probe, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.due.items) == 0 {
		return nil, time.Hour
	}
	first := p.due.items[0]
	if wait := first.at.Sub(now); wait > 0 {
		return nil, wait
	}
	heap.Pop(&p.due)
	if len(p.due.items) > 0 {
		p.wake() // for the next of the runners
	}
	return first, 0
}

// probeQueue is a heap by the time of the next look.
type probeQueue struct {
	items   []*probe
	arrived uint64
}

func (q *probeQueue) Len() int           { return len(q.items) }
func (q *probeQueue) Less(i, j int) bool { return q.items[i].at.Before(q.items[j].at) }
func (q *probeQueue) Swap(i, j int) {
	q.items[i], q.items[j] = q.items[j], q.items[i]
	q.items[i].place, q.items[j].place = i, j
}
func (q *probeQueue) Push(x any) {
	item := x.(*probe)
	item.place = len(q.items)
	q.items = append(q.items, item)
}
func (q *probeQueue) Pop() any {
	last := q.items[len(q.items)-1]
	q.items[len(q.items)-1] = nil
	q.items = q.items[:len(q.items)-1]
	return last
}

func (q *probeQueue) dropOldest() {
	oldest := q.items[0]
	for _, item := range q.items {
		if item.order < oldest.order {
			oldest = item
		}
	}
	heap.Remove(q, oldest.place)
}
