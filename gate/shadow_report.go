package gate

import (
	"sync/atomic"

	"github.com/slotgate/slotgate/gate/decision"
)

// shadowDecisions are what enforce can answer, each with its place in a tally.
var shadowDecisions = func() map[decision.Decision]int {
	places := make(map[decision.Decision]int)
	for _, d := range append(decision.Own(), decision.DecisionAdmitted, decision.DecisionReplayed, decision.DecisionPassthrough) {
		places[d] = len(places)
	}
	return places
}()

// soldTwice are the decisions that keep a slot from being sold beyond its units, or
// twice to the same.
var soldTwice = []decision.Decision{
	decision.DecisionSoldOut, decision.DecisionDuplicate, decision.DecisionReplayed, decision.DecisionInFlight,
}

// tally counts what enforce would have done with the requests of a rule. It is safe for
// concurrent use.
type tally struct {
	would    []atomic.Int64 // requests
	booked   []atomic.Int64 // units of those that the backend booked
	rejected atomic.Int64
}

func newTally() *tally {
	return &tally{would: make([]atomic.Int64, len(shadowDecisions)), booked: make([]atomic.Int64, len(shadowDecisions))}
}

// add counts a request. units are those that the backend booked, answered whether it gave
// an answer.
func (t *tally) add(would decision.Decision, units int64, answered bool) {
	place, known := shadowDecisions[would]
	if !known {
		return
	}
	t.would[place].Add(1)
	t.booked[place].Add(units)
	if would.Status() != 0 && (answered || !ofBackend(would)) {
		t.rejected.Add(1)
	}
}

// ofBackend: the backend's failure, which the client sees without the gate as well.
func ofBackend(d decision.Decision) bool {
	return d == decision.DecisionUpstreamFailed || d == decision.DecisionUpstreamTimeout || d == decision.DecisionUpstreamOpen
}

// tally is that of the request's rule.
func (j *journey) tally() *tally {
	if j.route == nil {
		return j.gate.strays
	}
	return j.route.tally
}

// ShadowReport is what enforce would have done with the requests that a rule has seen in
// shadow since the gate was started.
type ShadowReport struct {
	// Would counts requests by what enforce would have answered, Booked the units of
	// those among them that the backend booked. Only decisions that came up are there.
	Would, Booked map[decision.Decision]int64
	// Rejected is how many requests enforce would have refused.
	Rejected int64
	// Oversold is how many units the backend booked although enforce would have said
	// that they are sold, or sold to the same before. Where a backend that sells no
	// more than it has is asked by many at once it is a few too many: the one that
	// enforce would refuse may get the unit of the one that it would admit.
	Oversold int64
}

func (t *tally) report() ShadowReport {
	r := ShadowReport{
		Would: make(map[decision.Decision]int64), Booked: make(map[decision.Decision]int64),
		Rejected: t.rejected.Load(),
	}
	for d, place := range shadowDecisions {
		if n := t.would[place].Load(); n > 0 {
			r.Would[d] = n
		}
		if n := t.booked[place].Load(); n > 0 {
			r.Booked[d] = n
		}
	}
	for _, d := range soldTwice {
		r.Oversold += r.Booked[d]
	}
	return r
}

// shadows are the reports of the rules that are in shadow or have been; of requests that
// may mean several rules, under "".
func (b *rulebook) shadows(strays *tally) map[string]ShadowReport {
	reports := make(map[string]ShadowReport)
	for _, r := range b.routes {
		if report := r.tally.report(); b.mode(r) == modeShadow || len(report.Would) > 0 {
			reports[r.rule.Name] = report
		}
	}
	if report := strays.report(); len(report.Would) > 0 {
		reports[""] = report
	}
	return reports
}
