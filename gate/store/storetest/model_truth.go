package storetest

import (
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

// modelCounters is where a slot stands to truth (design section 5).
type modelCounters struct {
	free, admitted, refunded int64
	verified, failed         bool
	applied, touched         int // the look that was applied last, the last touch
	appliedAt                time.Duration
	fence                    int64
}

// modelLook is a look under way: where the counters stood, and when it began.
type modelLook struct {
	reading *store.Reading
	slot    *modelSlot // nil: not seen yet
	seq     int
	at      time.Duration
}

type modelLookLease struct {
	id    string
	until time.Duration
}

func (c *modelCounters) take(units int64) {
	c.free -= units
	c.admitted += units
}

// take enters a new hold.
func (m *model) take(h *modelHold) {
	m.holds = append(m.holds, h)
	m.see(h.slot).counters.take(h.units)
}

// refund gives back what a definite failure took.
func (m *model) refund(h *modelHold) {
	c := &m.see(h.slot).counters
	c.free += h.units
	c.refunded += h.units
}

// book makes a hold's booking stand.
func (m *model) book(h *modelHold, s *store.Settle) {
	if !h.booked() {
		h.bookedAt, h.doubted = m.now, 0
		if h.state.Open() {
			h.doubted = h.expires
		}
	}
	m.move(h, decision.Confirmed)
	if s.PendingTTL > 0 {
		m.move(h, decision.Pending)
		h.expires = m.now + s.PendingTTL
	}
}

// remaining is what is left of a slot, negative where more is taken than there is.
func (m *model) remaining(slot string, configured int64) (units int64, known bool) {
	if m.truth == store.TruthRemaining {
		c := &m.slot(slot).counters
		return c.free, c.verified
	}
	capacity := m.capacity(slot, configured)
	return capacity - m.units(slot, "", isTaken), capacity != store.Learned
}

func (m *model) verified(slot string) bool {
	return m.truth == store.NoTruth || m.slot(slot).counters.verified
}

func (m *model) debt(slot string) int64 {
	if left, known := m.remaining(slot, 0); known && m.truth != store.NoTruth {
		return max(0, -left)
	}
	return 0
}

// shownCapacity is available + confirmed + held where truth tells what is left.
func (m *model) shownCapacity(slot string, configured int64) int64 {
	if left, known := m.remaining(slot, configured); known && m.truth != store.NoTruth {
		return max(0, left+m.units(slot, "", isTaken))
	}
	return m.capacity(slot, configured)
}

// stale: no sold out may rest on the slot's last look.
func (m *model) stale(d *store.Decide) bool {
	return m.truth != store.NoTruth && !d.Blind && m.now-m.slot(d.Slot).counters.appliedAt > d.Hot
}

func (m *model) loads(d *store.Decide, known bool) bool {
	return m.truth != store.NoTruth && !d.Blind && !known && !(m.slot(d.Slot).counters.failed && !m.stale(d))
}

func (m *model) soldOut(d *store.Decide) decision.Verdict {
	if m.stale(d) {
		return decision.Load
	}
	return decision.SoldOut
}

// look notes where a slot's counters stand. What stands in the want's Busy is all
// there is to it then.
func (m *model) look(l *store.Look) (want store.Looked, begun *modelLook) {
	slot := l.Query.Slot
	m.dirty(slot)
	m.lapse(slot, l.Query.KeepUnknown)
	if held := m.looks[slot]; held.until > m.now && held.id != l.ID && !l.Force {
		want.Busy = held.until - m.now
		return want, nil
	}
	m.looks[slot] = modelLookLease{l.ID, m.now + l.Lease}
	m.seq++
	begun = &modelLook{seq: m.seq, at: m.now, slot: m.slots[slot]}
	if begun.slot == nil {
		return want, begun
	}
	c := &begun.slot.counters
	want = store.Looked{Known: true, Admitted: c.admitted, Refunded: c.refunded, Marked: begun.slot.full > 0}
	for _, h := range m.holds {
		if h.slot == slot && m.unsettled(h, l.Lag) {
			want.Open += h.units
		}
	}
	return want, begun
}

// unsettled: truth may not show the hold's units yet, or not for good.
func (m *model) unsettled(h *modelHold, lag time.Duration) bool {
	if h.booked() {
		return m.now-h.bookedAt < lag || h.doubted > m.now && h.unanswered()
	}
	return h.state.Open()
}

// apply follows H13 to H15.
func (m *model) apply(l *modelLook) (want store.Applied) {
	r := l.reading
	slot := r.Look.Query.Slot
	m.dirty(slot)
	m.lapse(slot, r.Look.Query.KeepUnknown)
	if m.looks[slot].id == r.Look.ID {
		delete(m.looks, slot)
	}
	c := &m.slot(slot).counters
	if m.slots[slot] != l.slot || l.seq <= c.applied || l.seq < c.touched || r.Fence > 0 && r.Fence < c.fence {
		return store.Applied{}
	}
	want.Applied = true
	if r.Missing && l.slot == nil {
		return want
	}
	s := m.see(slot)
	c = &s.counters
	if c.verified && !r.Missing {
		want.Known, want.Before, want.After = true, c.free, c.free
	}
	c.applied, c.appliedAt, c.fence = l.seq, l.at, max(c.fence, r.Fence)
	c.failed = !r.Found && !r.Missing
	c.verified = c.verified && !r.Missing
	if !r.Found {
		return want
	}
	admitted, refunded := c.admitted-r.Looked.Admitted, c.refunded-r.Looked.Refunded
	c.free, c.verified = r.Value-(r.Looked.Open+admitted-refunded)-m.beingFreed(slot), true
	want.After, want.Again = c.free, r.Looked.Open > 0 || admitted > 0
	if r.Looked.Marked && c.free >= s.full {
		m.release(slot)
	}
	return want
}
