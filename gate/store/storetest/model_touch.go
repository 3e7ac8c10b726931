package storetest

import (
	"context"
	"time"

	"pgregory.net/rapid"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

// dirty: some gate's mark stands. One that has run out is a resume.
func (m *model) dirty(slot string) bool {
	s := m.slot(slot)
	for gate, until := range s.dirty {
		if until <= m.now {
			m.unmark(s, gate)
		}
	}
	return len(s.dirty) > 0
}

// unmark: what the gate passed by is in truth by now, and not in the counters.
func (m *model) unmark(s *modelSlot, gate string) {
	if _, marked := s.dirty[gate]; marked {
		delete(s.dirty, gate)
		s.counters.verified = false
	}
}

// touch: H18.
func (m *model) touch(t *store.Touch) {
	s := m.see(t.Query.Slot)
	if s.dirty == nil {
		s.dirty = map[string]time.Duration{}
	}
	m.dirty(t.Query.Slot)
	s.dirty[t.Gate] = m.now + t.Lease
	m.seq++
	s.counters.touched = m.seq
	for i := range t.Forced {
		m.force(t.Query.Slot, &t.Forced[i])
	}
}

func (m *model) force(slot string, f *store.Forced) {
	for _, h := range m.holds {
		for _, a := range h.attempts {
			if a.id == f.ID {
				return
			}
		}
	}
	h := m.hold(f.Hold)
	if h != nil && (h.booked() || h.unpaid) {
		return
	}
	if h == nil {
		h = &modelHold{
			id: f.Hold, slot: slot, subject: f.Subject, units: f.Units,
			scope: f.Scope, fingerprint: f.Fingerprint,
		}
		m.take(h)
	} else if h.gone() {
		m.see(slot).counters.take(h.units)
	}
	m.move(h, decision.Held)
	h.expires = m.now + f.HoldTTL
	h.attempts = append(h.attempts, &modelAttempt{id: f.ID, lease: m.now + f.Lease})

	k := m.keys[f.Key]
	if f.Key == "" || k != nil && !(m.unanswered(k) && k.fingerprint == f.Fingerprint) {
		return
	}
	if k == nil {
		k = &modelKey{}
		m.keys[f.Key] = k
	}
	k.state, k.owner, k.hold, k.lease = "running", f.ID, h.id, m.now+f.Lease
	k.scope, k.fingerprint = f.Scope, f.Fingerprint
}

// touch draws a gate that comes back to a slot with what it has at the backend: a
// new request, or the retry of one whose hold is open, or nothing.
func (r *history) touch() {
	d := r.request()
	t := &store.Touch{
		Gate:  rapid.SampledFrom([]string{"gate-a", "gate-b"}).Draw(r.T, "gate"),
		Query: r.query(d.Slot), Lease: modelLease,
	}
	switch rapid.SampledFrom([]string{"new", "retry", "none"}).Draw(r.T, "forced") {
	case "new":
		t.Forced = []store.Forced{force(d)}
	case "retry":
		c := r.recent(func(c *modelDecide) bool {
			return c.got.Verdict == decision.Admitted && r.model.hold(c.got.Hold).state.Open()
		})
		if c == nil {
			return
		}
		d = again(c.d)
		t.Query = r.query(d.Slot)
		t.Forced = []store.Forced{forceUnder(c.got.Hold, d)}
	}
	r.sendTouch(t)
	for _, f := range t.Forced {
		r.decides = append(r.decides, &modelDecide{d: d, got: store.Decided{Verdict: decision.Admitted, Hold: f.Hold}, at: r.model.now})
	}
	r.touches = append(r.touches, modelTouch{t, r.model.now})
}

// touchAgain delivers a touch once more.
func (r *history) touchAgain() {
	var fit []modelTouch
	for _, t := range r.touches {
		if r.model.now-t.at <= modelCopies {
			fit = append(fit, t)
		}
	}
	if len(fit) > 0 {
		r.sendTouch(latest(r.T, fit, "touch").t)
	}
}

func (r *history) sendTouch(t *store.Touch) {
	r.Logf("touch %s by %s: %+v", t.Query.Slot, t.Gate, t.Forced)
	r.model.touch(t)
	if err := r.gate().Touch(context.Background(), t); err != nil {
		r.Fatalf("touch: %v", err)
	}
}

func (r *history) resume() {
	slot := rapid.SampledFrom([]string{"x", "y"}).Draw(r.T, "slot")
	gate := rapid.SampledFrom([]string{"gate-a", "gate-b"}).Draw(r.T, "gate")
	r.Logf("resume %s by %s", slot, gate)
	r.compareSlots()
	r.model.unmark(r.model.slot(slot), gate)
	if err := r.gate().Resume(context.Background(), r.query(slot), gate); err != nil {
		r.Fatalf("resume: %v", err)
	}
}
