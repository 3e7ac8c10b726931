package gate

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// forward sends the request to the backend and tells what its answer meant. A
// backend that says it did not execute it is asked again as often as the rule
// allows and the lease leaves time for.
func (j *journey) forward(g *grant) (*Reply, rules.Outcome) {
	rule := j.match.Rule
	for attempt := 1; ; attempt++ {
		began := time.Now()
		step := j.step("upstream")
		answer, err := j.book.Backend.Forward(&Forward{
			Request: j.outgoing(step),
			SendBy:  g.usableUntil,
			Timeout: j.route.timeout,
			Limit:   int64(j.book.Config.Server.MaxBuffered),
		})
		step.End(err != nil)
		took := time.Since(began)
		j.atBackend += took
		if err != nil {
			reply, outcome := j.unanswered(g, err)
			j.gate.meter.Outcome(rule.Name, outcome, took)
			return reply, outcome
		}
		outcome := rule.Classify(&answer.Response)
		j.gate.meter.Outcome(rule.Name, outcome, took)
		j.noteStranger(outcome)
		if attempt < rule.Attempts() && slices.Contains(rule.Retry.On, outcome) && j.backOff(g, attempt) {
			release(answer.Release)
			continue
		}
		if outcome == rules.Booked || outcome == rules.Duplicate {
			g.reference = strings.Clone(rule.ExtractReference(&answer.Response)) // which may be part of the answer
		}
		return j.answered(g, answer, outcome), outcome
	}
}

// backOff pauses before another attempt, with full jitter; false when the lease
// would not leave time for it.
func (j *journey) backOff(g *grant, attempt int) bool {
	retry := &j.match.Rule.Retry
	pause := min(retry.Backoff<<min(attempt-1, 16), retry.MaxBackoff)
	if pause > 0 {
		pause = rand.N(pause)
	}
	if time.Now().Add(pause).After(g.usableUntil) {
		return false
	}
	time.Sleep(pause)
	return true
}

// answered passes the backend's answer on.
func (j *journey) answered(g *grant, answer *BackendAnswer, outcome rules.Outcome) *Reply {
	reply := j.newReply(decision.DecisionAdmitted)
	if j.outage != nil {
		reply.Decision = decision.DecisionPassthrough
	}
	reply.Answer = decision.Answer{Status: answer.Status, Header: answer.Header, Body: answer.Body}
	reply.Header = append(reply.Header, j.rateLimitFields()...)
	reply.Outcome = outcome
	reply.Hold = j.holdOf(g)
	reply.Release = answer.Release
	return reply
}

// unanswered is the gate's own answer where there is none of the backend's. What
// was never sent is a definite failure; everything else is unknown, because the
// backend may have booked.
func (j *journey) unanswered(g *grant, err error) (*Reply, rules.Outcome) {
	var failure *BackendError
	if !errors.As(err, &failure) {
		failure = &BackendError{Failure: Broken, Err: err}
	}
	var reply *Reply
	outcome := rules.Unknown
	switch failure.Failure {
	case NotConnected:
		outcome = rules.NeverSent
		reply = j.refuse(decision.DecisionUpstreamFailed, "No connection to the booking service; nothing was sent.", 0)
	case BreakerOpen:
		outcome = rules.NeverSent
		reply = j.refuse(decision.DecisionUpstreamOpen, "The booking service failed too often; nothing was sent.", max(failure.RetryAfter, time.Second))
	case NoRoom:
		outcome = rules.NeverSent
		reply = j.refuse(decision.DecisionBusy, "Too many requests are at the booking service; nothing was sent.", time.Second)
	case TimedOut:
		reply = j.refuse(decision.DecisionUpstreamTimeout, "The booking service did not answer in time; whether it booked is not known.", 0)
	default:
		reply = j.refuse(decision.DecisionUpstreamFailed, "The booking service broke off its answer; whether it booked is not known.", 0)
	}
	if outcome == rules.Unknown {
		reply.Outcome = rules.Unknown
		reply.Hold = j.holdOf(g)
	}
	j.gate.log.Debug("backend gave no answer", "rule", j.match.Rule.Name, j.requestID(), "decision", reply.Decision, "error", err)
	return reply, outcome
}

// holdOf is the hold a client is told of: none where the store did not grant one.
func (j *journey) holdOf(g *grant) string {
	if j.outage != nil || g.decide.Action != store.Book {
		return ""
	}
	return g.decided.Hold
}

// forwardUnheld is for a request that takes nothing and is deduped by nothing.
func (j *journey) forwardUnheld() *Reply {
	j.endTurn() // it decides nothing
	if reply := j.readBody(); reply != nil {
		return reply
	}
	g := &j.grant
	*g = grant{} // one that came too late to be used may stand there
	g.usableUntil = time.Now().Add(j.route.decide.Lease - j.route.timeout)
	reply, _ := j.forward(g)
	return reply
}

func release(f func()) {
	if f != nil {
		f()
	}
}
