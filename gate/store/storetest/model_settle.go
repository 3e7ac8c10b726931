package storetest

import (
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// settle follows the outcomes of the contract.
func (m *model) settle(s *store.Settle) (want store.Settled) {
	m.dirty(s.Slot)
	m.running(s.Slot)
	if s.Action != store.Book {
		return m.settleCancel(s)
	}
	h := m.hold(s.Hold)
	if h == nil {
		return m.settleUnseen(s)
	}
	want.Hold = h.state
	var a *modelAttempt
	for _, x := range h.attempts {
		if x.id == s.ID && !x.answered && !(x.unknown && s.Outcome == rules.Unknown) {
			a = x
		}
	}
	if a == nil {
		return want
	}
	want.Applied = true
	if s.Outcome == rules.Unknown {
		a.unknown = true
		if h.state == decision.Held {
			m.move(h, decision.HoldUnknown)
		}
	} else {
		a.answered, a.endedAt = true, m.now
	}
	before := h.state
	switch {
	case s.Outcome == rules.Unknown:
	case h.booked(), h.unpaid:
	case s.Outcome == rules.Booked, s.Outcome == rules.Duplicate && !m.another(h): // H1
		want.Late = h.gone()
		m.book(h, s)
		m.standIn(h, s, want.Late)
	case !h.state.Open():
	case !h.unanswered() && !h.doubtful: // H1, H2
		m.refund(h)
		m.move(h, decision.Released)
	default: // H2, H8
		m.move(h, decision.HoldUnknown)
	}
	if want.Late {
		want.Oversold = m.oversold(h, s)
	}
	if h.booked() && (s.Outcome == rules.Booked || s.Outcome == rules.Duplicate) && s.Reference != "" {
		h.reference = s.Reference
	}
	m.mark(s, h, before.Open() && h.state == decision.Released)
	m.settleKey(s, h.state, false)
	want.Hold = h.state
	return want
}

func (m *model) settleUnseen(s *store.Settle) (want store.Settled) {
	want.Applied = true
	h := &modelHold{
		id: s.Hold, slot: s.Slot, subject: s.Subject, units: s.Units, reference: s.Reference,
		scope: s.Scope, fingerprint: s.Fingerprint,
		attempts: []*modelAttempt{{id: s.ID, answered: true, endedAt: m.now}},
	}
	if s.Outcome == rules.Booked {
		m.see(s.Slot)
		m.take(h)
		m.book(h, s)
		m.standIn(h, s, false)
		want.Hold, want.Oversold = h.state, m.oversold(h, s)
	}
	m.settleKey(s, want.Hold, true)
	return want
}

// unanswered: nobody is awaited who might complete the key.
func (m *model) unanswered(k *modelKey) bool {
	return k.state == "unknown" || k.state == "running" && k.lease <= m.now
}

// another reports whether the subject has a confirmed hold beside h on the slot.
func (m *model) another(h *modelHold) bool {
	for _, o := range m.holds {
		if o != h && o.slot == h.slot && h.subject != "" && o.subject == h.subject && o.booked() {
			return true
		}
	}
	return false
}

// standIn: H1 in whichever order the duplicate and its booking are told.
func (m *model) standIn(h *modelHold, s *store.Settle, late bool) {
	if s.Outcome == rules.Duplicate {
		h.standsIn = h.subject != "" && h.adoptions == 0 && !h.unanswered()
		return
	}
	for _, o := range m.holds {
		if o.slot == h.slot && o.subject == h.subject && o.standsIn {
			if !late {
				m.refund(o)
			}
			m.move(o, decision.Released)
		}
	}
}

func (h *modelHold) unanswered() bool {
	for _, a := range h.attempts {
		if !a.answered {
			return true
		}
	}
	return false
}

func (m *model) oversold(h *modelHold, s *store.Settle) int64 {
	left, known := m.remaining(s.Slot, s.Capacity)
	if !known {
		return 0
	}
	return min(h.units, max(0, -left))
}

// mark: H12 and the lone probe.
func (m *model) mark(s *store.Settle, h *modelHold, released bool) {
	slot := m.see(s.Slot)
	_, known := m.remaining(s.Slot, s.Capacity)
	isProbe := s.Probe && slot.probe == s.ID
	next := func(pause time.Duration) { slot.probe, slot.probeAt = "", m.now+pause }
	switch {
	case s.Outcome == rules.SoldOut && s.ReleaseSeq != slot.releases:
	case s.Outcome == rules.SoldOut && slot.full == 0:
		slot.full, slot.pause = h.units, time.Second
		next(slot.pause)
	case s.Outcome == rules.SoldOut:
		slot.full = min(slot.full, h.units)
		if isProbe {
			slot.pause = min(2*slot.pause, 30*time.Second)
			next(slot.pause)
		}
	case isProbe && s.Outcome == rules.Unknown:
		next(slot.pause)
	case isProbe && s.Outcome == rules.NeverSent:
		next(time.Second)
	case isProbe && h.booked() && known && !slot.counters.failed && !m.dirty(s.Slot):
		slot.full = 0
	case isProbe:
		next(0)
	case released && s.Outcome != rules.Busy && s.Outcome != rules.NeverSent:
		m.release(s.Slot)
	}
	if slot.full == 0 {
		slot.probe = ""
	}
}

// release: whatever may have freed units at the backend ends the mark (H12).
func (m *model) release(name string) {
	s := m.see(name)
	s.releases++
	s.full, s.probe = 0, ""
}

// settleKey: its owner completes or releases it; whoever made what it stands for
// completes it, and who finds it unanswered after an outage (design section 4).
func (m *model) settleKey(s *store.Settle, hold decision.HoldState, unseen bool) {
	k := m.keys[s.Key]
	unknown := s.Outcome == rules.Unknown || s.Action == store.Book && hold == decision.HoldUnknown
	if s.Key == "" || k != nil && k.state == "done" {
		return
	}
	named := s.Hold
	if s.Action != store.Book {
		named = ""
	}
	if k == nil {
		if s.Keep && !unknown {
			m.keys[s.Key] = &modelKey{state: "done", owner: s.ID, hold: named, scope: s.Scope, fingerprint: s.Fingerprint, answer: s.Answer}
		}
		return
	}
	if k.owner != s.ID {
		made := k.hold == named && k.scope == s.Scope && (s.Outcome == rules.Booked || s.Outcome == rules.Duplicate || s.Outcome == rules.Done)
		if s.Keep && !unknown && k.fingerprint == s.Fingerprint && (made || unseen && m.unanswered(k)) {
			k.state, k.scope, k.answer = "done", s.Scope, s.Answer
		}
		return
	}
	if k.wait > m.now {
		m.left[[2]string{s.Key, s.ID}] = modelAnswer{k.scope, s.Answer, k.wait}
	}
	switch {
	case unknown:
		k.state = "unknown"
	case s.Keep:
		k.state, k.answer = "done", s.Answer
	default:
		delete(m.keys, s.Key)
	}
}
