package gate

import (
	"math/rand/v2"
	"time"

	"github.com/slotgate/slotgate/gate/store"
)

// Watches are hints that may be lost, so waiters also ask again by themselves,
// first soon, then less often.
const (
	firstPoll = 10 * time.Millisecond
	lastPoll  = 250 * time.Millisecond
)

// patience is how long one request still waits, and for what. Each kind of wait
// has its own time, counted from when it was first needed.
type patience struct {
	j    *journey
	poll time.Duration

	owner      string // the twin being waited for
	ownerWatch store.Watch
	twinUntil  time.Time
	mayReplay  bool

	slotWatch store.Watch
	place     *place
	roomUntil time.Time
}

func newPatience(j *journey) *patience { return &patience{j: j, poll: firstPoll} }

func (p *patience) close() {
	if p.ownerWatch != nil {
		p.ownerWatch.Close()
	}
	p.leaveSlot()
}

// leaveSlot gives up the place in the line and stops listening to the slot.
func (p *patience) leaveSlot() {
	if p.slotWatch != nil {
		p.slotWatch.Close()
		p.slotWatch = nil
	}
	if p.place != nil {
		p.place.leave()
		p.place = nil
	}
}

// forOwner waits until the request that runs with the same key may have
// answered; false when the wait is over. A twin leaves the slot's line: its
// owner stands there for it.
func (p *patience) forOwner(d *store.Decide, decided *store.Decided) bool {
	p.leaveSlot()
	p.mayReplay = decided.MayReplay
	if d.Await != decided.Owner {
		d.Await, p.poll = decided.Owner, firstPoll
	}
	if p.ownerWatch == nil {
		p.ownerWatch = p.j.store().WatchKey(d)
	}
	return p.waitTwin(p.ownerWatch)
}

// forSubject waits until the subject's running request on the slot may have
// ended.
func (p *patience) forSubject(d *store.Decide, decided *store.Decided) bool {
	if p.owner != decided.Owner {
		p.owner, p.poll = decided.Owner, firstPoll
	}
	p.watchSlot(d.Pool)
	return p.waitTwin(p.slotWatch)
}

func (p *patience) waitTwin(watch store.Watch) bool {
	if !p.j.route.waits {
		return false
	}
	if p.twinUntil.IsZero() {
		p.twinUntil = time.Now().Add(p.j.route.twinWait)
	}
	return p.sleep(watch.C(), p.twinUntil)
}

// forRoom waits for room at the backend, first come first served in this
// process; false when the line is full or the wait is over. Only the first of a
// line asks the store again, so d.Line is cleared for it.
func (p *patience) forRoom(d *store.Decide) bool {
	wait := p.j.match.Rule.Pool.Queue.Wait
	if p.place == nil {
		if p.place = p.j.book.queues[p.j.route.decide.Pool].join(d.Slot); p.place == nil {
			return false
		}
		if p.roomUntil.IsZero() {
			p.roomUntil = time.Now().Add(wait)
		}
		p.poll = firstPoll
	}
	d.Wait = wait
	if d.Line {
		d.Line = false
		return p.untilFirst()
	}
	p.watchSlot(d.Pool)
	return p.sleep(p.slotWatch.C(), p.roomUntil)
}

// untilFirst waits until the request is the first of its line.
func (p *patience) untilFirst() bool {
	for !p.place.isFirst() {
		p.poll = lastPoll // only to notice that the client has gone
		if !p.sleep(p.place.first, p.roomUntil) {
			return false
		}
	}
	return true
}

// waited reports whether another request was being waited for.
func (p *patience) waited() bool { return !p.twinUntil.IsZero() }

// startAnew forgets what only the store that was asked so far can answer.
func (p *patience) startAnew() {
	p.close()
	p.ownerWatch, p.owner, p.poll = nil, "", firstPoll
}

func (p *patience) watchSlot(pool string) {
	if p.slotWatch == nil {
		p.slotWatch = p.j.store().WatchSlot(pool, p.j.facts.Slot)
	}
}

// sleep waits for the hint, the next poll or the end; false at the end, or when
// the client has gone.
func (p *patience) sleep(hint <-chan struct{}, until time.Time) bool {
	left := time.Until(until)
	if left <= 0 || p.j.req.Gone() {
		return false
	}
	pause := min(left, p.poll/2+rand.N(p.poll))
	p.poll = min(2*p.poll, lastPoll)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-hint:
	case <-timer.C:
	}
	return true
}
