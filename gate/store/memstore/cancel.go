package memstore

import (
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// cancel is an attempt to cancel or to confirm. Its deadline is its lease while it
// runs, then when it is forgotten.
type cancel struct {
	deadline
	id      string
	action  store.Action
	subject string
	hold    string // that it means, "" none
	doubt   bool   // its hold had attempts unanswered when it was decided
	lease   int64
	awaited bool // in the queue of those that run
	settled bool
	cost    int64
}

// cancels are those of one slot.
type cancels struct {
	byID    map[string]*cancel
	running queue[*cancel] // by their lease
	over    queue[*cancel] // until forgotten
}

func (c *cancels) start(x *cancel) {
	if c.byID == nil {
		c.byID = map[string]*cancel{}
	}
	c.byID[x.id] = x
	x.awaited = true
	c.running.put(x, x.lease)
}

// end keeps one that does not run any more until no copy of its calls can arrive.
func (c *cancels) end(x *cancel, now int64) {
	if x.awaited {
		c.running.remove(x)
		x.awaited = false
	}
	c.over.put(x, now+int64(store.CopyWindow))
}

// forget drops at most n whose time is over and returns what they cost.
func (c *cancels) forget(now int64, n int) (freed int64) {
	for range n {
		x, ok := c.over.due(now)
		if !ok {
			break
		}
		c.over.remove(x)
		delete(c.byID, x.id)
		freed += x.cost
	}
	return freed
}

// inflight is how many are within their lease.
func (c *cancels) inflight(now int64) (n int) {
	for _, x := range c.running {
		if x.lease > now {
			n++
		}
	}
	return n
}

// cancelling returns the cancels and confirms that run within their lease, in no
// order.
func (s *slot) cancelling(now int64) []*cancel {
	for {
		c, ok := s.cancels.running.due(now)
		if !ok {
			return s.cancels.running
		}
		s.unanswered(c)
		s.cancels.end(c, c.lease)
	}
}

// unanswered notes that nobody knows whether a cancel was done.
func (s *slot) unanswered(c *cancel) {
	if h := s.hold(c.hold); h != nil && c.action == store.Cancel {
		h.doubtful = true
	}
}

// beingFreed is the units of holds whose cancel may be at the backend now (H13).
func (s *slot) beingFreed(now int64) (units int64) {
	counted := map[*hold]bool{}
	for _, c := range s.cancelling(now) {
		if h := s.hold(c.hold); c.action == store.Cancel && h != nil && h.stands() && !counted[h] {
			counted[h] = true
			units += h.units
		}
	}
	return units
}

// meant is the hold that a cancel or confirm is about, "" none.
func (s *slot) meant(d *store.Decide) string {
	fits := func(h *hold) bool {
		return h.state == decision.Pending || d.Action == store.Cancel && h.state == decision.Confirmed
	}
	if d.Target != "" {
		if h := s.hold(d.Target); h != nil && fits(h) {
			return h.id
		}
		return ""
	}
	only := ""
	for _, h := range s.subjects[d.Subject] {
		if !fits(h) || d.Unreferenced && h.reference != "" {
			continue
		}
		if only != "" {
			return "" // several
		}
		only = h.id
	}
	return only
}

// behindCancel lets a booking wait while a cancel of its subject runs (H9).
func (q *question) behindCancel() bool {
	if q.d.Subject == "" {
		return false
	}
	for _, c := range q.slot.cancelling(q.now) {
		if c.action == store.Cancel && c.subject == q.d.Subject {
			q.got.Owner = c.id
			return q.say(decision.SubjectBusy, time.Duration(c.lease-q.now))
		}
	}
	return false
}

// ofCancel decides a cancel or confirm after step 5: it waits while a booking of
// its subject runs (H9), and names the hold it means (H10).
func (q *question) ofCancel() {
	d := q.d
	subject := d.Subject
	if h := q.slot.hold(d.Target); h != nil && subject == "" {
		subject = h.subject
	}
	if subject != "" {
		for _, h := range q.slot.subjects[subject] {
			if a := h.running(q.now); a != nil {
				q.got.Owner = a.id
				q.say(decision.SubjectBusy, time.Duration(a.at-q.now))
				return
			}
		}
	}
	if running := q.slot.cancelling(q.now); len(running) >= store.MaxCancels {
		q.say(decision.NoRoom, time.Duration(running[0].at-q.now))
		return
	}
	c := &cancel{
		id: d.ID, action: d.Action, subject: subject, hold: q.slot.meant(d), lease: q.now + int64(d.Lease),
		cost: cancelCost + int64(len(d.ID)+len(subject)),
	}
	if !q.reserve(q.slotSize() + c.cost + q.keySize()) {
		return
	}
	if h := q.slot.hold(c.hold); h != nil {
		c.doubt = h.unanswered()
	}
	q.see()
	q.slot.cost += c.cost
	q.slot.cancels.start(c)
	q.claim("")
	q.got.Hold = c.hold
	q.say(decision.Admitted, 0)
}

// ofCancel settles a cancel or confirm. Whatever its outcome, it runs no longer.
func (r *report) ofCancel() {
	h, c := r.slot.hold(r.s.Hold), r.slot.cancels.byID[r.s.ID]
	if r.got.Applied = c == nil || !c.settled; r.got.Applied {
		if c == nil {
			c = &cancel{action: r.s.Action, hold: r.s.Hold} // its decide is not remembered
		} else {
			c.settled = true
			r.slot.cancels.end(c, r.now)
		}
		switch {
		case r.s.Outcome == rules.Unknown:
			r.slot.unanswered(c)
			r.got.Look = true
		case r.s.Outcome == rules.Done && h == nil:
			r.got.Look = true
		case r.s.Outcome != rules.Done:
		case r.s.Action == store.Cancel && h.stands():
			r.cancel(h, c.doubt, c.lease <= r.now)
		case r.s.Action == store.Confirm && (h.state == decision.Pending || h.state == decision.Lapsed || h.unpaid):
			r.confirm(h, decision.Confirmed)
		}
		if r.got.Look {
			r.slot.truth.asked = r.slot.truth.tick(r.now)
			r.dueBy(r.now)
		}
		r.touched()
	}
	if h != nil {
		r.got.Hold = h.state
	}
}

// cancel frees a booked hold, or leaves it in doubt where an attempt of it may be
// booked, or has been since the cancel was decided (H8).
func (r *report) cancel(h *hold, doubt, late bool) {
	if doubt || h.unanswered() {
		h.doubtful = true
		r.move(h, decision.HoldUnknown, r.now+int64(r.s.HoldTTL), r.cause())
		return
	}
	if late || h.doubtful {
		r.got.Look = r.s.Truth == store.TruthRemaining // a look may have found them already
	} else {
		r.slot.truth.free += h.units
	}
	r.move(h, decision.Released, 0, r.cause())
	r.slot.release()
}
