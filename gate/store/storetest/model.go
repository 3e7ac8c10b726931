package storetest

import (
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

// model is the reference that stores are compared with: one pool, its keys and its
// slots, written as plainly as the design's rules (H1 to H22). It keeps every hold
// for ever in one list and counts by adding up; nothing in it is fast.
type model struct {
	now   time.Duration
	holds []*modelHold // in the order in which they were taken
	keys  map[string]*modelKey
	slots map[string]*modelSlot
	left  map[[2]string]modelAnswer // by key and owner
	truth store.TruthKind           // of the pool
	looks map[string]modelLookLease // by slot
	seq   int                       // orders looks and touches
	tats  map[string]time.Duration  // of limits, by their name and what it limits
}

type modelHold struct {
	id, slot, subject string
	units             int64
	state             decision.HoldState
	expires           time.Duration
	goneAt            time.Duration // when it lapsed or was released
	bookedAt          time.Duration
	doubted           time.Duration // until when an unanswered attempt of it may be booked, too
	unpaid            bool          // was pending, and is unknown for good
	standsIn          bool          // for a booking of the subject that nobody has told of
	doubtful          bool          // an earlier cancel of it got no answer, or left it unknown
	reference         string
	scope             string
	fingerprint       [32]byte
	adoptions         int
	attempts          []*modelAttempt
}

type modelAttempt struct {
	id       string
	lease    time.Duration // until when it is awaited
	answered bool
	unknown  bool
	endedAt  time.Duration // when it was answered
}

type modelKey struct {
	state       string // running, unknown, done
	owner, hold string
	lease, wait time.Duration
	scope       string
	fingerprint [32]byte
	answer      []byte
}

type modelSlot struct {
	own      *int64
	closed   bool
	releases int64
	full     int64 // the mark's units
	pause    time.Duration
	probeAt  time.Duration
	probe    string
	lease    time.Duration            // the probe's
	dirty    map[string]time.Duration // until when a gate's mark stands
	cancels  []*modelCancel
	counters modelCounters
}

type modelAnswer struct {
	scope string
	body  []byte
	until time.Duration
}

func newModel() *model {
	return &model{
		keys: map[string]*modelKey{}, slots: map[string]*modelSlot{},
		left: map[[2]string]modelAnswer{}, tats: map[string]time.Duration{}, looks: map[string]modelLookLease{},
	}
}

func (m *model) slot(name string) *modelSlot {
	if m.slots[name] == nil {
		return &modelSlot{}
	}
	return m.slots[name]
}

// see returns the slot for writing.
func (m *model) see(name string) *modelSlot {
	if m.slots[name] == nil {
		m.slots[name] = &modelSlot{}
	}
	return m.slots[name]
}

func (m *model) hold(id string) *modelHold {
	for _, h := range m.holds {
		if h.id == id {
			return h
		}
	}
	return nil
}

// units adds up what holds of a state count in one slot, or for one subject; ""
// is all.
func (m *model) units(slot, subject string, counts func(decision.HoldState) bool) (units int64) {
	for _, h := range m.holds {
		if (slot == "" || h.slot == slot) && (subject == "" || h.subject == subject) && counts(h.state) {
			units += h.units
		}
	}
	return units
}

func isOpen(s decision.HoldState) bool      { return s.Open() }
func isConfirmed(s decision.HoldState) bool { return s == decision.Confirmed }
func isTaken(s decision.HoldState) bool     { return s.Open() || s == decision.Confirmed }

// awaited lists the attempts of a slot that run within their lease.
func (m *model) awaited(slot string) (n int) {
	for _, h := range m.holds {
		for _, a := range h.attempts {
			if h.slot == slot && m.runs(a) {
				n++
			}
		}
	}
	return n
}

func (m *model) runs(a *modelAttempt) bool { return !a.answered && !a.unknown && a.lease > m.now }

func (h *modelHold) gone() bool {
	return h.state == decision.Released || h.state == decision.Lapsed
}

// booked: its booking stands, final or pending.
func (h *modelHold) booked() bool {
	return h.state == decision.Confirmed || h.state == decision.Pending
}

func (m *model) move(h *modelHold, to decision.HoldState) {
	h.unpaid = false
	if h.state = to; h.gone() {
		h.goneAt = m.now
	}
	h.standsIn = h.standsIn && h.booked()
}

// lapse: H5, keep_unknown, and pending holds, which are never given back blindly.
func (m *model) lapse(slot string, keepUnknown bool) (lapsed int) {
	for _, h := range m.holds {
		if h.slot != slot || !h.state.Open() || h.expires > m.now || h.unpaid {
			continue
		}
		if h.state == decision.Pending {
			if m.truth == store.TruthRemaining {
				m.move(h, decision.Lapsed)
				lapsed++
			} else {
				m.move(h, decision.HoldUnknown)
				h.unpaid = true
			}
		} else if keepUnknown {
			m.move(h, decision.HoldUnknown)
		} else {
			m.move(h, decision.Lapsed)
			lapsed++
		}
	}
	return lapsed
}

func (m *model) capacity(slot string, configured int64) int64 {
	if m.truth == store.TruthRemaining {
		return store.Learned
	}
	if own := m.slot(slot).own; own != nil {
		return *own
	}
	return configured
}

// unitsLeft is what a decide with this verdict tells.
func (m *model) unitsLeft(d *store.Decide, v decision.Verdict) int64 {
	left, known := m.remaining(d.Slot, d.Capacity)
	if v == decision.Answered || v == decision.Gone || !known {
		return -1
	}
	return max(0, left)
}

// pass charges a limit, or tells that it is exhausted.
func (m *model) pass(name string, l store.Limit, charge bool) bool {
	tat := max(m.tats[name], m.now) + l.Per
	if tat-time.Duration(l.Burst)*l.Per > m.now {
		return false
	}
	if charge {
		m.tats[name] = tat
	}
	return true
}

func mayReplay(scope string, d *store.Decide) bool {
	if scope == "" && d.Scope == "" {
		return d.BareReplay
	}
	return scope == d.Scope
}
