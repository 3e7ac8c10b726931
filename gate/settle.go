package gate

import (
	"context"
	"errors"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// settle tells the store how the request ended, before the client hears of it.
// What the store does not take waits in the backlog: the client's answer does
// not depend on it.
func (j *journey) settle(g *grant, outcome rules.Outcome, reply *Reply) {
	s := &j.settled
	j.settlement(s, g, outcome, reply)
	step := j.step("settle")
	settled, err := j.store().Settle(context.Background(), s)
	step.End(err != nil)
	j.gate.rejects.drop(slotName{s.Pool, s.Slot}) // whoever hears of it finds what it freed (P4)
	switch {
	case j.outage != nil: // the process's own
	case err != nil:
		j.gate.noteFailure(err)
		kept := *s
		j.gate.backlog.Add(&kept)
	default:
		if j.shadow {
			settled.Oversold = 0 // by the backend, whatever the gate thinks of it
		}
		j.gate.noteSettled(s, settled)
	}
	j.gate.back.Ended(g.running, s)
	g.running = nil
	if j.outage == nil && outcome == rules.Unknown && j.probes() {
		j.book.Truth.Probe(s)
	}
}

// probes reports whether an unanswered booking of this rule is looked for in truth.
func (j *journey) probes() bool {
	idem := j.match.Rule.Idempotency
	return j.book.Truth != nil && j.route.decide.Action == store.Book && idem != nil && idem.Unknown == "probe"
}

// settlement makes s what the store is told. It shares no memory with the request: what is in
// it may outlive that.
func (j *journey) settlement(s *store.Settle, g *grant, outcome rules.Outcome, reply *Reply) {
	d := &g.decide
	*s = store.Settle{
		ID: d.ID, Hold: g.decided.Hold, Action: d.Action, Truth: d.Truth, PendingTTL: j.route.pendingTTL,
		Pool: d.Pool, Slot: d.Slot, Subject: d.Subject, Units: d.Units,
		Capacity: d.Capacity, HoldTTL: d.HoldTTL, Retain: d.Retain,
		MaxPerSubject: d.MaxPerSubject, KeepUnknown: d.KeepUnknown,
		ReleaseSeq: g.decided.ReleaseSeq, Probe: g.decided.Probe,
		Outcome: outcome,
		Group:   d.Group, Partition: d.Partition, Key: d.Key, KeyTTL: j.keyTTL(d, outcome),
		Keep:  j.match.Rule.Keeps(outcome),
		Scope: d.Scope, Fingerprint: d.Fingerprint,
		Reference: g.reference,
	}
	if d.Key != "" && reply != nil {
		s.Answer = decision.EncodeStored(&decision.Stored{
			Answer:      reply.Answer,
			Outcome:     reply.Outcome,
			Fingerprint: d.Fingerprint,
			Bodyless:    reply.Bodyless,
		}, j.route.maxAnswer)
	}
}

// noteFailure counts a failed store call; when the breaker has opened, the gate
// goes on without the store. maybe tells that the call may have taken effect.
func (g *Gate) noteFailure(err error) (maybe bool) {
	var failure *store.Error
	if errors.As(err, &failure) {
		g.meter.StoreError(string(failure.Kind))
		maybe = failure.Maybe
	}
	g.back.Failed(err)
	return maybe
}

// noteSettled counts what must never be hidden: units that were booked after
// their hold was gone, beyond what the slot has.
func (g *Gate) noteSettled(s *store.Settle, settled store.Settled) {
	g.back.Took(s)
	g.local.Remember(s)
	if settled.Oversold > 0 {
		g.meter.Oversold(s.Pool, settled.Oversold)
		g.log.Warn("a late booking put a slot over its capacity",
			"pool", s.Pool, "hold", s.Hold, "units_over", settled.Oversold)
	}
}
