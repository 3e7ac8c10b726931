package storetest

import (
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
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
	tats  map[string]time.Duration  // of limits, by their name and what it limits
}

type modelHold struct {
	id, slot, subject string
	units             int64
	state             decision.HoldState
	expires           time.Duration
	goneAt            time.Duration // when it lapsed or was released
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
	lease    time.Duration // the probe's
}

type modelAnswer struct {
	scope string
	body  []byte
	until time.Duration
}

func newModel() *model {
	return &model{
		keys: map[string]*modelKey{}, slots: map[string]*modelSlot{},
		left: map[[2]string]modelAnswer{}, tats: map[string]time.Duration{},
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

func (m *model) move(h *modelHold, to decision.HoldState) {
	if h.state = to; h.gone() {
		h.goneAt = m.now
	}
}

// lapse: H5 without truth, and keep_unknown.
func (m *model) lapse(slot string, keepUnknown bool) (lapsed int) {
	for _, h := range m.holds {
		if h.slot != slot || !h.state.Open() || h.expires > m.now {
			continue
		}
		if keepUnknown {
			m.move(h, decision.HoldUnknown)
		} else {
			m.move(h, decision.Lapsed)
			lapsed++
		}
	}
	return lapsed
}

func (m *model) capacity(slot string, configured int64) int64 {
	if own := m.slot(slot).own; own != nil {
		return *own
	}
	return configured
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
	for _, h := range m.holds { // 2
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
	want.Lapsed = m.lapse(d.Slot, d.KeepUnknown) // 3
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
		if h := m.hold(k.hold); h.state == decision.Confirmed { // H21
			k.state = "done"
			return m.replay(k, d, want)
		} else if h.state.Open() {
			return m.adopt(h, d, want)
		} // else H22: a new hold
	}
	if !d.Charged { // 5
		if d.Subject != "" && !d.SubjectLimit.IsZero() && !m.pass("subject "+d.Subject, d.SubjectLimit, true) {
			return say(decision.LimitedSubject)
		}
	}
	if d.OnePerSubject && d.Subject != "" { // 6
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
			if h.state.Open() && unanswered == nil {
				unanswered = h
			}
			holds = holds || h.state == decision.Confirmed
		}
		if u := unanswered; u != nil {
			if d.RetryUnknown && u.scope == d.Scope && u.fingerprint == d.Fingerprint && u.units == d.Units {
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
	capacity := m.capacity(d.Slot, d.Capacity) // 9
	if capacity != store.Learned {
		if d.Units > capacity {
			return say(decision.OverCapacity)
		}
		if m.units(d.Slot, "", isTaken)+d.Units > capacity {
			return say(decision.SoldOut)
		}
	}
	if s.full > 0 && d.Units >= s.full {
		if s.probe != "" && s.lease > m.now || s.probeAt > m.now || d.Line {
			return say(decision.SoldOut)
		}
		want.Probe = true
	}
	if !d.SlotLimit.IsZero() && !m.pass("slot "+d.Slot, d.SlotLimit, false) { // 10
		return say(decision.LimitedSlot)
	}
	room := d.MaxInflight // 11
	if capacity == store.Learned && (room == 0 || room > store.LearnedInflight) {
		room = store.LearnedInflight
	}
	if room > 0 && m.awaited(d.Slot) >= room || d.Line {
		return say(decision.NoRoom)
	}
	s = m.see(d.Slot) // 12
	h := &modelHold{
		id: d.ID, slot: d.Slot, subject: d.Subject, units: d.Units, state: decision.Held,
		scope: d.Scope, fingerprint: d.Fingerprint,
	}
	m.holds = append(m.holds, h)
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
	if d.Key == "" {
		return
	}
	k := m.keys[d.Key]
	if k == nil {
		k = &modelKey{}
		m.keys[d.Key] = k
	}
	k.state, k.owner, k.hold, k.lease = "running", d.ID, h.id, m.now+d.Lease
	k.scope, k.fingerprint = d.Scope, d.Fingerprint
}

// settle follows the outcomes of the contract.
func (m *model) settle(s *store.Settle) (want store.Settled) {
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
	case s.Outcome == rules.Booked, s.Outcome == rules.Duplicate && !m.another(h): // H1
		want.Late = h.gone()
		m.move(h, decision.Confirmed)
	case !h.state.Open():
	case s.Outcome == rules.Duplicate || !h.unanswered(): // H1, H2
		m.move(h, decision.Released)
	default: // H2
		m.move(h, decision.HoldUnknown)
	}
	if want.Late {
		want.Oversold = m.oversold(h, s)
	}
	m.mark(s, h, before.Open() && h.state == decision.Released)
	m.settleKey(s, h.state)
	want.Hold = h.state
	return want
}

func (m *model) settleUnseen(s *store.Settle) (want store.Settled) {
	want.Applied = true
	h := &modelHold{
		id: s.Hold, slot: s.Slot, subject: s.Subject, units: s.Units, state: decision.Confirmed,
		scope: s.Scope, fingerprint: s.Fingerprint,
		attempts: []*modelAttempt{{id: s.ID, answered: true, endedAt: m.now}},
	}
	if s.Outcome == rules.Booked || s.Outcome == rules.Duplicate && !m.another(h) {
		m.see(s.Slot)
		m.holds = append(m.holds, h)
		want.Hold, want.Oversold = decision.Confirmed, m.oversold(h, s)
	}
	m.settleKey(s, want.Hold)
	return want
}

// another reports whether the subject has a confirmed hold beside h on the slot.
func (m *model) another(h *modelHold) bool {
	for _, o := range m.holds {
		if o != h && o.slot == h.slot && h.subject != "" && o.subject == h.subject && o.state == decision.Confirmed {
			return true
		}
	}
	return false
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
	capacity := m.capacity(s.Slot, s.Capacity)
	if capacity == store.Learned {
		return 0
	}
	return min(h.units, max(0, m.units(s.Slot, "", isTaken)-capacity))
}

// mark: H12 and the lone probe.
func (m *model) mark(s *store.Settle, h *modelHold, released bool) {
	slot := m.see(s.Slot)
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
	case isProbe && h.state == decision.Confirmed && m.capacity(s.Slot, s.Capacity) != store.Learned:
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

// settleKey: only the owner completes or releases it.
func (m *model) settleKey(s *store.Settle, hold decision.HoldState) {
	k := m.keys[s.Key]
	unknown := s.Outcome == rules.Unknown || hold == decision.HoldUnknown
	if s.Key == "" || k != nil && (k.owner != s.ID || k.state == "done") {
		return
	}
	if k == nil {
		if s.Keep && !unknown {
			m.keys[s.Key] = &modelKey{state: "done", owner: s.ID, hold: s.Hold, scope: s.Scope, fingerprint: s.Fingerprint, answer: s.Answer}
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
