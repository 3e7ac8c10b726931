package gate

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// maxStale bounds how often a grant may come too late to be used before the
// request is told that the gate is busy.
const maxStale = 3

// grant is the leave to forward a request once.
type grant struct {
	decide  store.Decide
	decided store.Decided
	// usableUntil is when the first byte must be on its way (A2).
	usableUntil time.Time
}

// admit asks the store until it admits, or the request has its answer, or there
// is nothing more to wait for. When the store fails it sets j.degraded.
func (j *journey) admit() (*grant, *Reply) {
	d := j.question()
	wait := newPatience(j)
	defer wait.close()
	stale := 0
	for {
		asked := time.Now()
		decided, err := j.gate.store.Decide(context.Background(), &d)
		if err != nil {
			return j.storeFailed(&d, err)
		}
		if len(decided.Limits) > 0 {
			j.noteLimits(decided.Limits)
			d.Charged = true
		}
		switch decided.Verdict {
		case decision.Admitted:
			g := &grant{decide: d, decided: decided, usableUntil: asked.Add(d.Lease - j.route.timeout - j.route.settleTime)}
			if time.Now().Before(g.usableUntil) {
				return g, nil
			}
			j.settle(g, rules.NeverSent, nil)
			if stale++; stale >= maxStale {
				return nil, j.refuse(decision.DecisionBusy, "The decision took too long to be used.", time.Second)
			}
			d.ID = rand.Text()

		case decision.Answered, decision.Replay:
			return nil, j.replay(&decided, wait.mayReplay)

		case decision.Twin:
			if !wait.forOwner(&d, &decided) {
				return nil, j.refuseVerdict(&decided)
			}
		case decision.SubjectBusy:
			if !wait.forSubject(&decided) {
				return nil, j.refuseVerdict(&decided)
			}
		case decision.NoRoom:
			if !wait.forRoom(&d) {
				return nil, j.refuseVerdict(&decided)
			}
		default:
			return nil, j.refuseVerdict(&decided)
		}
	}
}

// question fills in what is particular to this request.
func (j *journey) question() store.Decide {
	d := j.route.decide
	d.ID = rand.Text()
	d.Slot, d.Subject, d.Units = j.facts.Slot, j.facts.Subject, j.facts.Units
	d.Group, d.Partition, d.Key = j.facts.Group, j.facts.Partition, j.facts.Key
	d.Scope, d.Fingerprint = j.facts.Scope, j.facts.Fingerprint
	d.BareReplay = len(j.facts.Key) >= bareReplayKey
	d.Client = j.facts.Client
	if j.route.waits {
		d.Wait = j.route.twinWait
	}
	if q, ok := j.gate.queues[d.Pool]; ok {
		d.Line = q.lined(d.Slot)
	}
	return d
}

// storeFailed turns to what the rule says about a store that is away. A decide
// whose reply was lost may have taken a hold: what becomes of the request is
// then settled like any other, as soon as the store answers again.
func (j *journey) storeFailed(d *store.Decide, err error) (*grant, *Reply) {
	var failure *store.Error
	maybe := false
	if errors.As(err, &failure) {
		j.gate.meter.StoreError(string(failure.Kind))
		maybe = failure.Maybe
	}
	g := &grant{decide: *d, decided: store.Decided{Hold: d.ID}, usableUntil: time.Now().Add(d.Lease - j.route.timeout)}
	if d.Pool == "" {
		g.decided.Hold = ""
	}
	j.degraded, j.settleLate = true, maybe
	if j.match.Rule.OnStoreFailure == "reject" {
		if maybe {
			j.settleLater(g, rules.NeverSent, nil)
		}
		return nil, j.refuse(decision.DecisionStoreDown, "The store that keeps the bookings does not answer.", time.Second)
	}
	return g, nil
}
