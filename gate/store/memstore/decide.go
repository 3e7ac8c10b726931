package memstore

import (
	"context"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

// Decide is one atomic step before forwarding; see the package gate/store. What it
// is given is kept, not copied, and must not be changed afterwards, nor may the
// answer it returns.
func (s *Store) Decide(ctx context.Context, d *store.Decide) (got store.Decided, err error) {
	defer s.observed("decide")(&err)
	if err := s.ready(ctx, "decide"); err != nil {
		return store.Decided{}, err
	}
	q := question{visit: visit{Store: s, now: s.now(), of: terms{d.Capacity, d.Truth}}, d: d, got: store.Decided{Left: -1}}
	q.enterKey(keyOf(d))
	q.enterSlot(slotName{d.Pool, d.Slot})
	defer q.leave()
	return q.answer()
}

// question is one decide under way. Each of its checks returns true when it has
// put a verdict into got, or could not for want of memory.
type question struct {
	visit
	d    *store.Decide
	got  store.Decided
	full bool
}

// answer takes the steps of a decide in their order.
func (q *question) answer() (store.Decided, error) {
	if q.answered() {
		return q.got, nil
	}
	if q.slot != nil {
		q.isDirty() // a mark that has run out leaves counters that are not believed
	}
	if q.knownID() {
		return q.got, nil
	}
	if q.slot != nil {
		if q.d.Truth != store.NoTruth {
			q.slot.truth.hot = q.d.Hot
		}
		if q.d.Action == store.Book {
			q.got.Lapsed = q.lapse(q.d.KeepUnknown)
		}
	}
	switch {
	case q.ofKey() || q.ofLimits():
	case q.slot == nil:
		q.admit()
	case q.d.Action != store.Book:
		q.ofCancel()
	case !(q.ofSubject() || q.ofQuota() || q.ofOpening() || q.ofTruth() || q.ofUnits() || q.ofSlotLimit() || q.ofRoom()):
		q.admit()
	}
	if q.slot != nil {
		if _, known := q.slot.left(q.of); known && q.slot.truth.old(q.now, q.d.Refresh) {
			q.dueBy(q.now)
		}
		q.keepUntil(q.now + int64(max(q.d.Retain, q.d.HoldTTL, q.d.Lease)))
		q.got.ReleaseSeq, q.got.Left = q.slot.releases, q.slot.leftToTell(q.of)
	}
	if q.full {
		return store.Decided{}, q.Store.full("decide")
	}
	return q.got, nil
}

// say puts a verdict and when it may change by itself.
func (q *question) say(v decision.Verdict, wait time.Duration) bool {
	q.got.Verdict, q.got.RetryAfter = v, wait
	return true
}

// answered: step 1. A caller of another scope learns only that there is an answer.
func (q *question) answered() bool {
	if q.keys == nil || q.d.Await == "" {
		return false
	}
	a := q.keys.left(answerName{q.keyName, q.d.Await}, q.now)
	if a == nil {
		return false
	}
	if q.got.MayReplay = mayReplay(a.scope, q.d); q.got.MayReplay {
		q.got.Answer = a.body
	}
	return q.say(decision.Answered, 0)
}

// knownID: step 2.
func (q *question) knownID() bool {
	if q.slot == nil {
		return q.keys != nil && q.knownGuard()
	}
	if c := q.slot.cancels.byID[q.d.ID]; c != nil {
		return q.knownCancel(c)
	}
	h := q.slot.holds[q.d.ID]
	if h == nil {
		return false
	}
	a := h.attempt(q.d.ID)
	if a == nil || a.answered || !h.state.Open() {
		return q.say(decision.Gone, 0)
	}
	q.got.Hold, q.got.Adopted, q.got.Probe, q.got.ReleaseSeq = h.id, h.id != q.d.ID, a.probe, a.releases
	q.got.Left = q.slot.leftToTell(q.of)
	return q.say(decision.Admitted, 0)
}

// knownCancel is knownID of a cancel or confirm.
func (q *question) knownCancel(c *cancel) bool {
	if c.settled {
		return q.say(decision.Gone, 0)
	}
	q.got.Hold, q.got.ReleaseSeq, q.got.Left = c.hold, q.slot.releases, q.slot.leftToTell(q.of)
	return q.say(decision.Admitted, 0)
}

// knownGuard is knownID where there is no hold to tell.
func (q *question) knownGuard() bool {
	if q.keys.isFinished(q.d.ID, q.now) {
		return q.say(decision.Gone, 0)
	}
	if q.key == nil || q.key.owner != q.d.ID {
		return false
	}
	if q.key.state == keyDone {
		return q.say(decision.Gone, 0)
	}
	return q.say(decision.Admitted, 0)
}

// ofKey: step 4.
func (q *question) ofKey() bool {
	k := q.key
	switch {
	case k == nil:
		return false
	case k.fingerprint != q.d.Fingerprint:
		return q.say(decision.Mismatch, 0)
	case k.state == keyDone:
		return q.replay()
	case k.state == keyRunning && k.lease > q.now:
		q.got.Owner, q.got.MayReplay = k.owner, mayReplay(k.scope, q.d)
		if q.d.Wait > 0 {
			k.waiting = max(k.waiting, q.now+int64(q.d.Wait))
		}
		return q.say(decision.Twin, time.Duration(k.lease-q.now))
	case !q.d.RetryUnknown || k.scope != q.d.Scope:
		return q.say(decision.OutcomeUnknown, 0)
	case q.slot == nil, q.d.Action != store.Book:
		return false
	}
	h := q.slot.holds[k.hold]
	switch {
	case h == nil || h.gone():
		return false // a new hold is taken under this id (H22)
	case h.stands():
		k.complete(&q.memory, nil) // overtaken by an attempt that did not own it (H21)
		q.keys.prolong(k, q.d.KeyTTL, q.now)
		q.wakeKey = true
		return q.replay()
	case h.unpaid, h.doubtful:
		return q.say(decision.OutcomeUnknown, 0)
	}
	return q.behindCancel() || q.adopt(h)
}

func (q *question) replay() bool {
	if !mayReplay(q.key.scope, q.d) {
		return q.say(decision.KeyDone, 0)
	}
	q.got.MayReplay, q.got.Answer = true, q.key.answer
	return q.say(decision.Replay, 0)
}

// adopt lets the request go on under a hold whose attempts are unanswered (H3).
func (q *question) adopt(h *hold) bool {
	if h.adoptions >= store.MaxAdoptions {
		return q.say(decision.OutcomeUnknown, 0)
	}
	cost := attemptCost + int64(len(q.d.ID))
	if !q.reserve(cost) {
		return true
	}
	h.cost += cost
	q.slot.cost += cost
	h.adoptions++
	q.slot.start(h, q.d.ID, q.now+int64(q.d.Lease))
	q.move(h, decision.Held, q.now+int64(q.d.HoldTTL), "adopt")
	q.claim(h.id)
	q.got.Hold, q.got.Adopted = h.id, true
	return q.say(decision.Admitted, 0)
}

// ofLimits: step 5.
func (q *question) ofLimits() bool {
	d := q.d
	if d.Charged {
		return false
	}
	if !d.SubjectLimit.IsZero() && d.Subject != "" &&
		q.limited("subject", bucketName{rule: d.Rule, subject: d.Subject}, d.SubjectLimit, decision.LimitedSubject) {
		return true
	}
	return !d.ClientLimit.IsZero() && d.Client.IsValid() &&
		q.limited("client", bucketName{rule: d.Rule, client: d.Client}, d.ClientLimit, decision.LimitedClient)
}

func (q *question) limited(kind string, name bucketName, l store.Limit, v decision.Verdict) bool {
	state, wait, fits := q.chargeLimit(kind, name, l, q.now)
	if !fits {
		q.full = true
		return true
	}
	q.got.Limits = append(q.got.Limits, state)
	return wait > 0 && q.say(v, wait)
}

// ofSubject: step 6.
func (q *question) ofSubject() bool {
	if q.behindCancel() {
		return true
	}
	if !q.d.OnePerSubject || q.d.Subject == "" {
		return false
	}
	var unanswered *hold
	confirmed := false
	for _, h := range q.slot.subjects[q.d.Subject] {
		if a := h.running(q.now); a != nil {
			q.got.Owner = a.id
			return q.say(decision.SubjectBusy, time.Duration(a.at-q.now))
		}
		switch {
		case h.stands():
			confirmed = true
		case h.state.Open() && unanswered == nil:
			unanswered = h
		}
	}
	switch {
	case unanswered != nil && unanswered.adoptable(q.d):
		return q.adopt(unanswered)
	case unanswered != nil:
		return q.say(decision.OutcomeUnknown, 0)
	case confirmed:
		return q.say(decision.SubjectHolds, 0)
	}
	return false
}

// ofQuota: step 7. The count stays locked, so that the admit can rely on it.
func (q *question) ofQuota() bool {
	if q.d.MaxPerSubject == 0 || q.d.Subject == "" {
		return false
	}
	name := quotaName{q.d.Pool, q.d.Subject}
	q.quota = q.quotaShard(name)
	q.quota.mu.Lock()
	return q.quota.units[name]+q.d.Units > q.d.MaxPerSubject && q.say(decision.SubjectFull, 0)
}

// ofOpening: step 8.
func (q *question) ofOpening() bool {
	if q.slot.closed {
		return q.say(decision.Closed, 0)
	}
	opensAt := q.slot.opensAt
	if opensAt == 0 && !q.d.OpensAt.IsZero() {
		opensAt = q.d.OpensAt.UnixNano()
	}
	return opensAt > q.now && q.say(decision.NotOpen, time.Duration(opensAt-q.now))
}

// ofTruth: the rest of step 8. A look that failed speaks for a while.
func (q *question) ofTruth() bool {
	if q.d.Truth == store.NoTruth || q.d.Blind {
		return false
	}
	if _, known := q.slot.left(q.of); known || q.slot.truth.failed && !q.stale() {
		return false
	}
	return q.say(decision.Load, 0)
}

// stale reports that no SoldOut may rest on the slot's last look.
func (q *question) stale() bool {
	return q.d.Truth != store.NoTruth && !q.d.Blind && q.slot.truth.old(q.now, q.d.Hot)
}

// ofUnits: step 9.
func (q *question) ofUnits() bool {
	s := q.slot
	if capacity := s.inAll(q.of); capacity > 0 && q.d.Units > capacity {
		return q.say(decision.OverCapacity, 0)
	}
	if left, known := s.left(q.of); known && left < q.d.Units {
		if !s.doubted(q.of) || q.stale() {
			return q.soldOut(q.nextLapse(left))
		}
		s.mark.soldOut(q.d.Units, q.now, false) // a lone probe finds out
	}
	switch standing, wait := s.mark.stand(q.d.Units, q.now); {
	case standing == full, standing == probe && q.d.Line:
		return q.soldOut(wait)
	case standing == probe:
		q.got.Probe = true
	}
	return false
}

func (q *question) soldOut(wait time.Duration) bool {
	if q.stale() {
		return q.say(decision.Load, 0)
	}
	q.offerHolders()
	return q.say(decision.SoldOut, wait)
}

// nextLapse is when units may come free by a lapse; 0 when none of them can.
func (q *question) nextLapse(left int64) time.Duration {
	s := q.slot
	if q.d.KeepUnknown || len(s.lapsing) == 0 || left+s.held < q.d.Units {
		return 0
	}
	return time.Duration(max(1, s.lapsing[0].at-q.now))
}

// ofSlotLimit: step 10. The charge waits for the admit.
func (q *question) ofSlotLimit() bool {
	l := q.d.SlotLimit
	if l.IsZero() {
		return false
	}
	tat := q.slot.limits[q.d.Rule]
	q.got.Limits = append(q.got.Limits, limitState("slot", l, tat, q.now))
	_, wait := pass(l, tat, q.now)
	return wait > 0 && q.say(decision.LimitedSlot, wait)
}
