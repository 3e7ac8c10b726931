package storetest

import (
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// modelCancel is an attempt to cancel or confirm.
type modelCancel struct {
	id      string
	action  store.Action
	subject string
	hold    string // that it means
	lease   time.Duration
	doubt   bool // the hold had attempts unanswered when it was decided
	settled bool
}

func (m *model) cancel(slot, id string) *modelCancel {
	for _, c := range m.slot(slot).cancels {
		if c.id == id {
			return c
		}
	}
	return nil
}

// running lists the cancels and confirms within their lease. One that outlived it
// may have been done.
func (m *model) running(slot string) (running []*modelCancel) {
	for _, c := range m.slot(slot).cancels {
		switch {
		case c.settled:
		case c.lease > m.now:
			running = append(running, c)
		default:
			m.unknown(c)
		}
	}
	return running
}

// cancelling is how many cancels and confirms are at the backend.
func (m *model) cancelling(slot string) (n int) {
	for _, c := range m.slot(slot).cancels {
		if !c.settled && c.lease > m.now {
			n++
		}
	}
	return n
}

// unknown: nobody knows whether a cancel was done.
func (m *model) unknown(c *modelCancel) {
	if h := m.hold(c.hold); h != nil && c.action == store.Cancel {
		h.doubtful = true
	}
}

// cancels names a cancel of the subject that runs, "" none (H9).
func (m *model) cancels(slot, subject string) string {
	for _, c := range m.running(slot) {
		if c.action == store.Cancel && subject != "" && c.subject == subject {
			return c.id
		}
	}
	return ""
}

// holdsUp reports whether it is an attempt, or a cancel, that d has to wait for.
func (m *model) holdsUp(d *store.Decide, owner string) bool {
	for _, c := range m.running(d.Slot) {
		if d.Action == store.Book && c.action == store.Cancel && c.subject == d.Subject && c.id == owner {
			return true
		}
	}
	for _, h := range m.holds {
		for _, a := range h.attempts {
			if h.slot == d.Slot && a.id == owner && m.runs(a) {
				return true
			}
		}
	}
	return false
}

// beingFreed: H13.
func (m *model) beingFreed(slot string) (units int64) {
	counted := map[string]bool{}
	for _, c := range m.running(slot) {
		if h := m.hold(c.hold); c.action == store.Cancel && h != nil && h.booked() && !counted[h.id] {
			counted[h.id] = true
			units += h.units
		}
	}
	return units
}

// decideCancel: H9, H10.
func (m *model) decideCancel(d *store.Decide, want store.Decided) store.Decided {
	subject := d.Subject
	if h := m.hold(d.Target); h != nil && h.slot == d.Slot && subject == "" {
		subject = h.subject
	}
	for _, h := range m.holds {
		for _, a := range h.attempts {
			if h.slot == d.Slot && h.subject == subject && subject != "" && m.runs(a) {
				want.Verdict, want.Owner = decision.SubjectBusy, a.id
				return want
			}
		}
	}
	c := &modelCancel{id: d.ID, action: d.Action, subject: subject, hold: m.meant(d), lease: m.now + d.Lease}
	if h := m.hold(c.hold); h != nil {
		c.doubt = h.unanswered()
	}
	s := m.see(d.Slot)
	s.cancels = append(s.cancels, c)
	m.claim(d, "")
	want.Verdict, want.Hold = decision.Admitted, c.hold
	return want
}

// meant is the hold that a cancel or confirm is about.
func (m *model) meant(d *store.Decide) string {
	var fit []string
	for _, h := range m.holds {
		fits := h.state == decision.Pending || d.Action == store.Cancel && h.state == decision.Confirmed
		if !fits || h.slot != d.Slot {
			continue
		}
		switch {
		case d.Target != "":
			fits = h.id == d.Target
		case d.Unreferenced:
			fits = h.subject == d.Subject && h.reference == ""
		default:
			fits = h.subject == d.Subject
		}
		if fits {
			fit = append(fit, h.id)
		}
	}
	if len(fit) != 1 || d.Target == "" && d.Subject == "" {
		return ""
	}
	return fit[0]
}

// settleCancel: H8, H10, H11.
func (m *model) settleCancel(s *store.Settle) (want store.Settled) {
	c, h := m.cancel(s.Slot, s.ID), m.hold(s.Hold)
	if !c.settled {
		want.Applied, c.settled = true, true
		done := s.Outcome == rules.Done
		want.Look = s.Outcome == rules.Unknown || done && h == nil
		if s.Outcome == rules.Unknown {
			m.unknown(c)
		}
		switch {
		case !done || h == nil:
		case s.Action == store.Cancel && h.booked() && (c.doubt || h.unanswered()):
			m.move(h, decision.HoldUnknown)
			h.doubtful, h.expires = true, m.now+s.HoldTTL
		case s.Action == store.Cancel && h.booked():
			if c.lease <= m.now || h.doubtful {
				want.Look = m.truth == store.TruthRemaining
			} else {
				m.see(s.Slot).counters.free += h.units
			}
			m.move(h, decision.Released)
			m.release(s.Slot)
		case s.Action == store.Confirm && (h.state == decision.Pending || h.state == decision.Lapsed || h.unpaid):
			want.Late = h.gone()
			m.book(h, s)
			if want.Late {
				want.Oversold = m.oversold(h, s)
			}
		}
		m.settleKey(s, decision.NoHold, false)
	}
	if h != nil {
		want.Hold = h.state
	}
	return want
}
