package memstore

import (
	"context"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// Settle is one atomic step after forwarding; see the package gate/store. The
// answer is copied.
func (s *Store) Settle(ctx context.Context, st *store.Settle) (got store.Settled, err error) {
	defer s.observed("settle")(&err)
	if err := s.ready(ctx, "settle"); err != nil {
		return store.Settled{}, err
	}
	r := report{visit: visit{Store: s, now: s.now(), of: terms{st.Capacity, st.Truth}}, s: st}
	r.enterKey(keyName{st.Group, st.Partition, st.Key})
	r.enterSlot(slotName{st.Pool, st.Slot})
	defer r.leave()
	return r.settle()
}

// report is one settle under way.
type report struct {
	visit
	s      *store.Settle
	got    store.Settled
	unseen bool // this store never saw the hold
}

// settle does the slot first, then the key (H20).
func (r *report) settle() (store.Settled, error) {
	if r.slot == nil {
		r.got.Applied = r.appliesToGuard()
	} else {
		r.isDirty()              // a mark that has run out leaves counters that are not believed
		r.slot.cancelling(r.now) // one that has outlived its lease leaves its hold in doubt
		if r.s.Action != store.Book {
			r.ofCancel()
		} else if !r.ofSlot() {
			return store.Settled{}, r.full("settle")
		}
		r.keepUntil(r.now + int64(max(r.s.Retain, r.s.HoldTTL)))
	}
	if r.keys != nil && r.got.Applied {
		r.ofKey()
	}
	return r.got, nil
}

// ofSlot settles the attempt, if it is unanswered. It returns false when a hold
// has to be made and there is no memory for it.
func (r *report) ofSlot() bool {
	h := r.slot.hold(r.s.Hold)
	if h == nil {
		return r.ofUnseen()
	}
	r.got.Hold = h.state
	a := h.attempt(r.s.ID)
	if a == nil || a.answered || a.unknown && r.s.Outcome == rules.Unknown {
		return true
	}
	r.got.Applied = true
	r.slot.running.remove(a)
	released := false
	if r.s.Outcome == rules.Unknown {
		a.unknown = true
		if h.state == decision.Held {
			r.move(h, decision.HoldUnknown, h.at, r.s.Outcome.String())
		}
	} else {
		a.answered = true
		released = r.ofAnswered(h)
	}
	r.ofMark(h, released)
	r.touched()
	r.got.Hold = h.state
	return true
}

// ofAnswered moves the hold whose attempt has just been struck out, and tells
// whether that released it.
func (r *report) ofAnswered(h *hold) (released bool) {
	switch to := r.next(h); {
	case to == decision.Confirmed, to == decision.Pending:
		if to != h.state {
			r.confirm(h, to)
		}
		if !r.s.Outcome.Definite() {
			r.refer(h, r.s.Reference)
		}
	case to == decision.Released && !h.gone():
		r.slot.truth.refund(h.units)
		r.move(h, to, 0, r.s.Outcome.String())
		return true
	case to != h.state:
		r.move(h, to, h.at, r.s.Outcome.String())
	case h.gone():
		r.slot.gone.put(h, max(h.at, h.forgetAt(r.now))) // copies of this call may follow
	}
	return false
}

// confirm books a hold, finally or pending. One that was gone is counted again; a
// look has seen its booking, or will (H5).
func (r *report) confirm(h *hold, to decision.HoldState) {
	wasGone := h.gone()
	if !h.stands() {
		h.booked, h.doubted = r.now, 0
		if !wasGone {
			h.doubted = h.at
		}
	}
	stood := h.stands()
	r.move(h, to, r.now+int64(r.s.PendingTTL), r.cause())
	if !stood {
		r.standIn(h, wasGone)
	}
	if wasGone {
		r.got.Late = true
		r.got.Oversold = min(h.units, r.slot.over(r.of))
	}
}

// standIn is H1 in whichever order the two are told: a hold that was booked as a duplicate,
// by its only attempt, stands in for a booking of the subject that nobody had told of. The
// next that is told is that one, and the hold goes. It moves no units where those of the
// booking stay where a look found them.
func (r *report) standIn(h *hold, late bool) {
	if r.s.Action != store.Book {
		return
	}
	if r.s.Outcome == rules.Duplicate {
		h.standsIn = h.subject != "" && h.adoptions == 0 && !h.unanswered()
		return
	}
	for _, other := range r.slot.subjects[h.subject] {
		if !other.standsIn {
			continue
		}
		if !late {
			r.slot.truth.refund(other.units)
		}
		r.move(other, decision.Released, 0, rules.Duplicate.String())
	}
}

// cause is the settlement's word in the ledger.
func (r *report) cause() string {
	switch r.s.Action {
	case store.Cancel:
		return "cancel"
	case store.Confirm:
		return "confirm"
	}
	return r.s.Outcome.String()
}

// booked is the state of a hold whose booking has just been made.
func (r *report) booked() decision.HoldState {
	if r.s.PendingTTL > 0 {
		return decision.Pending
	}
	return decision.Confirmed
}

// next is the state that a definite outcome of one attempt brings its hold to.
func (r *report) next(h *hold) decision.HoldState {
	confirms := r.s.Outcome == rules.Booked || r.s.Outcome == rules.Done
	if r.s.Outcome == rules.Duplicate {
		confirms = !r.slot.bookedBy(h.subject) // H1
	}
	switch {
	case h.stands(), h.unpaid:
		return h.state
	case confirms:
		return r.booked()
	case !h.state.Open():
		return h.state
	case h.unanswered(), h.doubtful:
		return decision.HoldUnknown // H2, H8
	}
	return decision.Released
}

// ofMark tells the slot's full mark how the attempt ended.
func (r *report) ofMark(h *hold, released bool) {
	s, outcome := r.slot, r.s.Outcome
	byProbe := r.s.Probe && s.mark.probe == r.s.ID
	_, known := s.left(r.of)
	switch {
	case outcome == rules.SoldOut:
		if s.releases == r.s.ReleaseSeq { // H12
			s.mark.soldOut(h.units, r.now, byProbe)
		}
	case byProbe:
		s.mark.probed(outcome, r.now, h.stands(), known && !s.doubted(r.of) && !r.isDirty())
	case released && outcome != rules.Busy && outcome != rules.NeverSent:
		s.release()
	}
}

// ofUnseen settles an attempt whose hold this store never saw, or has forgotten:
// only a booking leaves a trace. A duplicate is none: who made the booking settles
// it, perhaps later, from another gate's journal.
func (r *report) ofUnseen() bool {
	st := r.s
	r.got.Applied, r.unseen = true, true
	h := &hold{
		id: st.Hold, subject: st.Subject, units: st.Units, taken: r.now,
		scope: st.Scope, fingerprint: st.Fingerprint,
		quota: st.MaxPerSubject > 0 && st.Subject != "",
		cost:  holdSize(st.Hold, st.Subject, st.Scope),
	}
	if st.Outcome != rules.Booked && st.Outcome != rules.Done {
		return true
	}
	if !r.memory.reserve(r.slotSize() + h.cost) {
		return false
	}
	r.see()
	r.slot.cost += h.cost
	r.slot.take(h)
	h.start(st.ID).answered = true
	r.slot.index(st.ID, h)
	h.booked = r.now
	r.move(h, r.booked(), r.now+int64(st.PendingTTL), st.Outcome.String())
	r.standIn(h, false)
	r.refer(h, st.Reference)
	r.got.Hold = h.state
	r.got.Oversold = min(h.units, r.slot.over(r.of))
	return true
}

// appliesToGuard tells whether the attempt is still unanswered where there is no
// hold that knows. Without a key nothing does.
func (r *report) appliesToGuard() bool {
	k := r.key
	switch {
	case r.keys == nil:
		return true
	case k != nil && k.state == keyUnknown && r.s.Outcome == rules.Unknown:
		return false
	case k != nil && k.owner == r.s.ID:
		return k.state != keyDone
	}
	return !r.keys.isFinished(r.s.ID, r.now)
}

// ofKey completes or releases the key if this attempt owns it, and leaves the answer
// for twins; one that does not own it completes it where it knows the key's outcome. It
// does not fail for want of memory.
func (r *report) ofKey() {
	st, k := r.s, r.key
	unknown := st.Outcome == rules.Unknown || st.Action == store.Book && r.got.Hold == decision.HoldUnknown
	keep := st.Keep && !unknown
	switch {
	case k == nil:
		if keep {
			r.remake()
		}
	case k.state == keyDone:
	case k.owner == st.ID:
		r.keys.leave(&r.memory, k, st.Answer, r.now)
		switch {
		case unknown:
			k.state = keyUnknown
			r.keys.prolong(k, st.KeyTTL, r.now)
		case keep:
			r.complete(k)
		default:
			r.keys.drop(&r.memory, k)
		}
		r.wakeKey = true
	case keep && k.fingerprint == st.Fingerprint && (r.books(k) || r.unseen && k.unanswered(r.now)):
		k.scope = st.Scope
		r.complete(k)
		r.wakeKey = true
	}
	if r.slot == nil && !unknown {
		r.keys.finish(&r.memory, st.ID, r.now)
	}
}

// books tells whether the attempt made what the key stands for: a retry has the key by
// now, under the same hold.
func (r *report) books(k *key) bool {
	return !r.s.Outcome.Definite() && k.hold == r.keyHold() && k.scope == r.s.Scope
}

// keyHold is the hold that a key names: that of a booking.
func (r *report) keyHold() string {
	if r.s.Action == store.Book {
		return r.s.Hold
	}
	return ""
}

// complete makes the key done with this settlement's answer.
func (r *report) complete(k *key) {
	k.complete(&r.memory, r.s.Answer)
	r.keys.prolong(k, r.s.KeyTTL, r.now)
}

// remake writes the record of a key that was lost or never seen.
func (r *report) remake() {
	st := r.s
	k := &key{
		name: r.keyName, owner: st.ID, hold: r.keyHold(), scope: st.Scope, fingerprint: st.Fingerprint,
		cost: keySize(r.keyName, st.Scope),
	}
	r.memory.charge(k.cost)
	k.complete(&r.memory, st.Answer)
	r.keys.enter(&r.memory, k, st.KeyTTL, r.now)
	r.wakeKey = true
}
