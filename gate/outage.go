package gate

import (
	"errors"
	"strconv"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/degrade"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// boundBackend: only the backend's own constraints bound what is sold.
const boundBackend = "backend"

// boundNothing: nothing is let through.
const boundNothing = "0"

// errAway: the store was not asked, because it has not answered for a while.
var errAway = errors.New("the store is away")

// outage is how one request goes on without the store.
type outage struct {
	query store.SlotQuery // what the store will be told of the slot
	bound string          // of Gate-Bound
	// asked is the grant that the store may have given in a reply that was lost; nil:
	// none, or it goes by the name of what was sent.
	asked *grant
}

// store is who decides about this request.
func (j *journey) store() store.Store {
	if j.outage != nil {
		return j.gate.local
	}
	return j.gate.store
}

// goOn turns to what the rule says about a store that is away: nil when the
// question is now one to this process. A store that was not asked for want of a turn is not
// away, and past it the backend would get the crowd that the gate is to keep from it.
func (j *journey) goOn(d *store.Decide, wait *patience, err error) *Reply {
	if j.outage != nil { // the process's own memory is full
		return j.refuse(decision.DecisionStoreDown, "Too much has happened since the store that keeps the bookings went away.", time.Second)
	}
	maybe := !errors.Is(err, errAway) && j.gate.noteFailure(err)
	if isUnsent(err) && !j.gate.back.Away() {
		return j.refuse(decision.DecisionBusy, "Too many requests came at the same moment.", time.Second)
	}
	j.outage = &outage{bound: boundBackend}
	if maybe {
		asked := &grant{decide: *d, decided: store.Decided{Hold: d.ID}}
		if d.Pool == "" || d.Action != store.Book {
			asked.decided.Hold = ""
		}
		j.outage.asked = asked
	}
	j.outage.query, _ = j.book.query(d.Pool, d.Slot)

	rule := j.match.Rule
	switch {
	case rule.OnStoreFailure == "reject":
		j.outage.bound = boundNothing
		return j.refuse(decision.DecisionStoreDown, "The store that keeps the bookings does not answer.", time.Second)
	case wait.waited():
		// The request it waited for may be at the backend of another gate.
		return j.refuse(decision.DecisionInFlight, "A request for the same is running, and the store that would tell its end does not answer.", time.Second)
	}
	wait.startAnew()
	share := -1.0
	if rule.OnStoreFailure == "local" {
		share = rule.Passthrough.Share
	}
	if bound := j.gate.local.Question(d, j.gate.back.Outage(), share); bound >= 0 {
		j.outage.bound = strconv.FormatInt(bound, 10)
	}
	return nil
}

// isUnsent reports a call to the store that found no turn.
func isUnsent(err error) bool {
	failure, ok := errors.AsType[*store.Error](err)
	return ok && failure.Kind == store.KindUnsent
}

// passThrough forwards what this process admitted, within the rule's limits for a
// store that is away. How it ends is told to the process's own store for its twins,
// and to the real one as soon as that answers again.
func (j *journey) passThrough(g *grant) *Reply {
	leave, wait, ok := j.route.passthrough.Enter(j.facts.Slot)
	if !ok {
		return j.notPassed(g, wait)
	}
	defer leave()
	p, ok := j.beginPassing(g)
	if !ok {
		return j.notPassed(g, time.Second)
	}
	reply, outcome := j.forward(g)
	j.endPassing(g, p, outcome, reply)
	return reply
}

// passing is a request that is sent without the store's leave.
type passing struct {
	noted *degrade.Passing // nil: it takes no units
	maybe bool             // the store may have given leave, in a reply that was lost
}

// beginPassing notes a request before it is sent; false when too many slots are touched.
func (j *journey) beginPassing(g *grant) (p passing, ok bool) {
	if g.decide.Pool != "" && g.decide.Action == store.Book {
		if p.noted = j.gate.back.Begin(j.outage.query, j.forced(g)); p.noted == nil {
			return p, false
		}
	}
	if p.maybe = j.outage.asked != nil && j.outage.asked.decide.ID == g.decide.ID; p.maybe {
		j.outage.asked = nil // how this one ends says it
	}
	return p, true
}

// endPassing tells how it ended.
func (j *journey) endPassing(g *grant, p passing, outcome rules.Outcome, reply *Reply) {
	j.settle(g, outcome, reply)

	var s store.Settle
	j.settlement(&s, g, outcome, reply)
	s.Pool, s.Capacity, s.Truth = j.outage.query.Pool, j.outage.query.Capacity, j.outage.query.Truth
	s.Retain, s.KeepUnknown, s.ReleaseSeq, s.Probe = j.outage.query.Retain, j.outage.query.KeepUnknown, 0, false
	if p.noted != nil {
		j.gate.back.End(p.noted, &s, p.maybe)
	} else {
		j.gate.backlog.AddUnseen(&s)
	}
}

// overLimits is how long the limits of an outage keep the request from passing.
func (j *journey) overLimits() time.Duration {
	if j.outage == nil {
		return 0
	}
	return j.route.passthrough.Over(j.facts.Slot)
}

// notPassed is the answer to a request over the limits of an outage.
func (j *journey) notPassed(g *grant, wait time.Duration) *Reply {
	j.unused(g)
	return j.refuse(decision.DecisionStoreDown, "The store that keeps the bookings does not answer, and too many requests pass without it.", wait)
}

// unused gives a grant back of which nothing was sent.
func (j *journey) unused(g *grant) { j.settle(g, rules.NeverSent, nil) }

// takeBack tells the store, as soon as it answers again, that nothing was sent under a
// grant whose reply was lost. However the request ended without it: were it not told,
// the units would be held for a request that nobody makes any more.
func (j *journey) takeBack() {
	if j.outage != nil && j.outage.asked != nil {
		var s store.Settle
		j.settlement(&s, j.outage.asked, rules.NeverSent, nil)
		j.gate.backlog.Add(&s)
	}
}

// forced is the request as the store will know it while it runs.
func (j *journey) forced(g *grant) store.Forced {
	d := &g.decide
	return store.Forced{
		ID: d.ID, Hold: g.decided.Hold, Subject: d.Subject, Units: d.Units,
		HoldTTL: d.HoldTTL, Lease: d.Lease, MaxPerSubject: d.MaxPerSubject,
		Scope: d.Scope, Fingerprint: d.Fingerprint,
		Group: d.Group, Partition: d.Partition, Key: d.Key, KeyTTL: d.KeyTTL,
	}
}

// bounds is how many units this gate may admit of each pool in the outage under way.
func (g *Gate) bounds() map[string]string {
	book := g.book.Load()
	shares := make(map[string]float64, len(book.Set.Pools)) // below 0: the backend bounds
	for _, r := range book.routes {
		pool := r.decide.Pool
		switch {
		case pool == "" || r.decide.Action != store.Book || shares[pool] < 0:
		case book.mode(r) != modeEnforce || r.rule.OnStoreFailure == "pass":
			shares[pool] = -1
		case r.rule.OnStoreFailure == "local":
			shares[pool] = max(shares[pool], r.rule.Passthrough.Share)
		}
	}
	outage := g.back.Outage()
	bounds := make(map[string]string, len(book.Set.Pools))
	for pool := range book.Set.Pools {
		switch share := shares[pool]; {
		case share < 0:
			bounds[pool] = boundBackend
		case share == 0:
			bounds[pool] = boundNothing
		default:
			bounds[pool] = strconv.FormatInt(g.local.Bound(pool, outage, share), 10)
		}
	}
	return bounds
}
