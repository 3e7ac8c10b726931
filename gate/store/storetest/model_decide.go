package storetest

import (
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

// decide follows the steps of the contract.
func (m *model) decide(d *store.Decide) (want store.Decided) {
	say := func(v decision.Verdict) store.Decided {
		want.Verdict = v
		return want
	}
	if a, ok := m.left[[2]string{d.Key, d.Await}]; ok && d.Key != "" && a.until > m.now { // 1
		if mayReplay(a.scope, d) {
			want.MayReplay, want.Answer = true, a.body
		}
		return say(decision.Answered)
	}
	m.dirty(d.Slot)
	if c := m.cancel(d.Slot, d.ID); c != nil { // 2
		if c.settled {
			return say(decision.Gone)
		}
		want.Hold = c.hold
		return say(decision.Admitted)
	}
	for _, h := range m.holds {
		for _, a := range h.attempts {
			if a.id != d.ID {
				continue
			}
			if a.answered || !h.state.Open() {
				return say(decision.Gone)
			}
			want.Hold, want.Adopted = h.id, h.id != d.ID
			return say(decision.Admitted)
		}
	}
	m.running(d.Slot)
	if d.Action == store.Book {
		want.Lapsed = m.lapse(d.Slot, d.KeepUnknown) // 3
	}
	k := m.keys[d.Key]
	if d.Key != "" && k != nil { // 4
		switch {
		case k.fingerprint != d.Fingerprint: // H19
			return say(decision.Mismatch)
		case k.state == "done":
			return m.replay(k, d, want)
		case k.state == "running" && k.lease > m.now:
			want.Owner, want.MayReplay = k.owner, mayReplay(k.scope, d)
			if d.Wait > 0 {
				k.wait = max(k.wait, m.now+d.Wait)
			}
			return say(decision.Twin)
		case !d.RetryUnknown || k.scope != d.Scope: // H7
			return say(decision.OutcomeUnknown)
		}
		switch h := m.hold(k.hold); {
		case d.Action != store.Book: // decided afresh
		case h.booked(): // H21
			k.state = "done"
			return m.replay(k, d, want)
		case h.unpaid, h.doubtful && h.state.Open(): // H8
			return say(decision.OutcomeUnknown)
		case h.state.Open():
			if owner := m.cancels(d.Slot, d.Subject); owner != "" { // H9
				want.Owner = owner
				return say(decision.SubjectBusy)
			}
			return m.adopt(h, d, want)
		} // else H22: a new hold
	}
	if !d.Charged { // 5
		if d.Subject != "" && !d.SubjectLimit.IsZero() && !m.pass("subject "+d.Subject, d.SubjectLimit, true) {
			return say(decision.LimitedSubject)
		}
	}
	if d.Action != store.Book {
		return m.decideCancel(d, want)
	}
	if owner := m.cancels(d.Slot, d.Subject); owner != "" { // 6, H9
		want.Owner = owner
		return say(decision.SubjectBusy)
	}
	if d.OnePerSubject && d.Subject != "" {
		var unanswered *modelHold
		holds := false
		for _, h := range m.holds {
			if h.slot != d.Slot || h.subject != d.Subject {
				continue
			}
			for _, a := range h.attempts {
				if m.runs(a) {
					want.Owner = a.id
					return say(decision.SubjectBusy)
				}
			}
			if h.state.Open() && !h.booked() && unanswered == nil {
				unanswered = h
			}
			holds = holds || h.booked()
		}
		if u := unanswered; u != nil {
			if d.RetryUnknown && !u.unpaid && !u.doubtful && u.scope == d.Scope && u.fingerprint == d.Fingerprint && u.units == d.Units {
				return m.adopt(u, d, want)
			}
			return say(decision.OutcomeUnknown)
		}
		if holds {
			return say(decision.SubjectHolds)
		}
	}
	if d.MaxPerSubject > 0 && d.Subject != "" && m.units("", d.Subject, isTaken)+d.Units > d.MaxPerSubject { // 7
		return say(decision.SubjectFull)
	}
	s := m.slot(d.Slot)
	if s.closed { // 8
		return say(decision.Closed)
	}
	left, known := m.remaining(d.Slot, d.Capacity)
	if m.loads(d, known) {
		return say(decision.Load)
	}
	if capacity := m.capacity(d.Slot, d.Capacity); capacity > 0 && d.Units > capacity { // 9
		return say(decision.OverCapacity)
	}
	if known && left < d.Units {
		if !s.counters.failed || m.stale(d) {
			return say(m.soldOut(d))
		}
		s = m.see(d.Slot) // a lone probe finds out
		if s.full == 0 {
			s.pause, s.probe, s.probeAt = time.Second, "", m.now+time.Second
			s.full = d.Units
		}
		s.full = min(s.full, d.Units)
	}
	if s.full > 0 && d.Units >= s.full {
		if s.probe != "" && s.lease > m.now || s.probeAt > m.now || d.Line {
			return say(m.soldOut(d))
		}
		want.Probe = true
	}
	if !d.SlotLimit.IsZero() && !m.pass("slot "+d.Slot, d.SlotLimit, false) { // 10
		return say(decision.LimitedSlot)
	}
	room, most, alone := d.MaxInflight, store.LearnedInflight, false // 11
	if m.truth == store.TruthRemaining && (m.dirty(d.Slot) || d.KeepUnknown && (!known || s.counters.failed)) {
		most = 1
		alone = d.KeepUnknown && (m.dirty(d.Slot) || !known) && m.units(d.Slot, "", func(s decision.HoldState) bool {
			return s == decision.Held || s == decision.HoldUnknown
		}) > 0
	}
	if (!known || s.counters.failed || m.dirty(d.Slot)) && (room == 0 || room > most) {
		room = most
	}
	if alone || room > 0 && m.awaited(d.Slot) >= room || d.Line {
		return say(decision.NoRoom)
	}
	s = m.see(d.Slot) // 12
	h := &modelHold{
		id: d.ID, slot: d.Slot, subject: d.Subject, units: d.Units, state: decision.Held,
		scope: d.Scope, fingerprint: d.Fingerprint,
	}
	for _, o := range m.holds {
		if o.slot == h.slot && o.subject == h.subject {
			o.standsIn = false
		}
	}
	m.take(h)
	if want.Probe {
		s.probe, s.lease = d.ID, m.now+d.Lease
	}
	if !d.SlotLimit.IsZero() {
		m.pass("slot "+d.Slot, d.SlotLimit, true)
	}
	m.forward(h, d)
	want.Hold = h.id
	return say(decision.Admitted)
}

func (m *model) replay(k *modelKey, d *store.Decide, want store.Decided) store.Decided {
	want.Verdict = decision.KeyDone
	if mayReplay(k.scope, d) {
		want.Verdict, want.MayReplay, want.Answer = decision.Replay, true, k.answer
	}
	return want
}

// adopt: H3.
func (m *model) adopt(h *modelHold, d *store.Decide, want store.Decided) store.Decided {
	if h.adoptions == store.MaxAdoptions {
		want.Verdict = decision.OutcomeUnknown
		return want
	}
	h.adoptions++
	h.state = decision.Held
	m.forward(h, d)
	want.Verdict, want.Hold, want.Adopted = decision.Admitted, h.id, true
	return want
}

// forward starts an attempt under a hold and makes it the key's owner.
func (m *model) forward(h *modelHold, d *store.Decide) {
	h.expires = m.now + d.HoldTTL
	h.attempts = append(h.attempts, &modelAttempt{id: d.ID, lease: m.now + d.Lease})
	m.claim(d, h.id)
}

// claim makes the request its key's owner.
func (m *model) claim(d *store.Decide, hold string) {
	if d.Key == "" {
		return
	}
	k := m.keys[d.Key]
	if k == nil {
		k = &modelKey{}
		m.keys[d.Key] = k
	}
	k.state, k.owner, k.hold, k.lease = "running", d.ID, hold, m.now+d.Lease
	k.scope, k.fingerprint = d.Scope, d.Fingerprint
}
