package gate

import (
	"errors"
	"slices"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

// Shadow is the journey of a request whose rule is in shadow. The request itself goes
// past it, to the backend and back, as one that no rule is for (promise P10); the shadow
// goes beside it, through the real counters, so that to switch to enforce is to find
// them warm:
//
//	Requested (extract, decide) → at the backend → Answered or Failed (classify,
//	settle) → End
//
// It refuses nothing and waits for nobody: not for a twin, for room or for a look at
// truth, only for each of its two store calls (and, as everybody, for the last moment of
// a store's return). Where enforce would wait, it is taken to wait with success.
//
// What enforce would have refused and the backend books all the same is a booking: it is
// counted as one whose hold the store never saw.
//
// One goroutine uses it. A fault in it does not become the client's.
type Shadow struct {
	j     *journey
	modes *modes
	// doubt: which rule it is, if any, only the body may tell; refusal is why it cannot.
	doubt   bool
	refusal *rules.Refusal

	would     decision.Decision // what enforce would answer; "" not known yet
	requested bool
	over      bool // answered, failed, or no rule's after all
	grant     *grant
	held      bool // the store gave the grant: it is told of the end, whatever it is
	passing   passing
	place     *place // among those that would wait for room
	leave     func() // those that pass without the store; nil: it is not among them
	status    int    // of the backend's answer; 0: none

	sent  time.Time
	took  time.Duration // by the shadow itself
	reply *Reply
}

// shadow begins the shadow of a request for which modes.find said modeShadow.
func (g *Gate) shadow(now *modes, req *Request, m rules.Match, refusal *rules.Refusal) *Shadow {
	beside := *req     // the body that is read here is not what is sent
	beside.Texts = nil // nor does it go by the connection's memory: it may outlast the request
	s := &Shadow{
		j:     &journey{gate: g, book: now.book, req: &beside, match: m, began: time.Now(), shadow: true},
		modes: now, doubt: m.NeedsBody, refusal: refusal,
	}
	s.j.loads = maxLoads // of truth, that a request waits for
	s.follow(m)
	return s
}

// follow goes on under the rule that was found.
func (s *Shadow) follow(m rules.Match) {
	s.j.match = m
	if m.Rule != nil {
		s.j.route = s.j.book.routes[m.Rule.Index]
	}
}

// MaxBody is how much of the request's body Requested can use, in bytes.
func (s *Shadow) MaxBody() int64 { return int64(s.j.book.Config.Server.MaxBody) }

// Requested is called once the request has come whole, before its last byte goes to the
// backend. body is all of it; fault is why it is not known: a *rules.Refusal or
// ErrOverloaded. Neither is kept.
func (s *Shadow) Requested(body []byte, fault error) {
	if s.requested || s.over {
		return
	}
	defer s.guard(time.Now())
	s.requested = true
	s.would = s.decide(body, fault)
	s.j.req.Body = nil
	s.sent = time.Now()
}

// guard ends a step that the request has waited for.
func (s *Shadow) guard(began time.Time) {
	if fault := recover(); fault != nil {
		s.over = true
		s.j.gate.log.Error("the shadow of a request panicked; please report this", "panic", fault, s.j.requestID())
	}
	s.took += time.Since(began)
}

// Wants is how many bytes of the answer's body Answered needs, and until when they are
// worth waiting for; 0: none.
func (s *Shadow) Wants() (limit int64, until time.Time) {
	if s.over || !s.requested || s.j.route == nil {
		return 0, time.Time{}
	}
	if s.j.route.readsAnswer {
		limit = s.MaxBody()
	}
	if s.grant != nil && s.grant.decide.Key != "" {
		limit = max(limit, s.j.route.maxAnswer)
	}
	if limit > 0 {
		limit++ // what is longer shows that it is
	}
	return limit, s.sent.Add(s.j.route.timeout)
}

// readsAnswer reports whether the answer's body is needed to tell what it means.
func readsAnswer(rule *rules.Rule) bool {
	return len(rule.Reference) > 0 && rule.Reference[0].Source == rules.FromJSON ||
		slices.ContainsFunc(rule.Outcomes, func(o rules.OutcomeConfig) bool {
			return o.When.Text != "" || len(o.When.JSON) > 0
		})
}

// AnswerBody is how much of an answer's body was seen.
type AnswerBody uint8

const (
	BodyWhole  AnswerBody = iota
	BodyPartly            // it is longer than was asked for, or was not asked for
	BodyLate              // not whole by the time until which it is worth waiting for
	BodyCut               // it broke off
)

// Answered is called when the backend's answer, or as much of it as was asked for, has
// come, before any of it goes to the client. The answer is not kept.
func (s *Shadow) Answered(answer *rules.Response, body AnswerBody) {
	if s.over {
		return
	}
	defer s.guard(time.Now())
	j := s.j
	j.atBackend = time.Since(s.sentOr(j.began))
	if body == BodyCut {
		s.fail(&BackendError{Failure: Broken, Err: errCut})
		return
	}
	s.status = answer.Status
	if body == BodyLate {
		s.fail(&BackendError{Failure: TimedOut, Err: errLate})
		return
	}
	if j.route == nil {
		s.conclude(rules.NoOutcome, nil)
		return
	}
	rule := j.match.Rule
	outcome := rule.Classify(answer)
	if body == BodyPartly && j.route.readsAnswer && s.requested {
		outcome = rules.Unknown // it is longer than anybody reads here
	}
	j.gate.meter.Outcome(rule.Name, outcome, j.atBackend)
	if j.atBackend > j.route.timeout && forwards(s.would) {
		s.would = decision.DecisionUpstreamTimeout
	}
	if s.grant != nil && (outcome == rules.Booked || outcome == rules.Duplicate) {
		s.grant.reference = rule.ExtractReference(answer)
	}
	s.conclude(outcome, &Reply{
		Answer:   decision.Answer{Status: answer.Status, Header: answer.Header, Body: answer.Body},
		Outcome:  outcome,
		Bodyless: body == BodyPartly,
	})
}

var (
	errCut  = errors.New("the answer was cut")
	errLate = errors.New("the answer did not come whole in time")
)

func (s *Shadow) sentOr(t time.Time) time.Time {
	if s.sent.IsZero() {
		return t
	}
	return s.sent
}

// Failed is called when there is no answer: err is a *BackendError.
func (s *Shadow) Failed(err error) {
	if s.over {
		return
	}
	defer s.guard(time.Now())
	s.j.atBackend = time.Since(s.sentOr(s.j.began))
	s.fail(err)
}

// fail is an end that leaves the outcome open, or without a request that was sent.
func (s *Shadow) fail(err error) {
	if s.j.route == nil {
		s.conclude(rules.NoOutcome, nil)
		return
	}
	g := s.grant
	if g == nil {
		g = new(grant)
	}
	reply, outcome := s.j.unanswered(g, err)
	s.j.gate.meter.Outcome(s.j.match.Rule.Name, outcome, s.j.atBackend)
	if forwards(s.would) {
		s.would = reply.Decision
	}
	s.conclude(outcome, reply)
}

// forwards reports that enforce would have sent the request.
func forwards(d decision.Decision) bool {
	return d == decision.DecisionAdmitted || d == decision.DecisionPassthrough
}

// conclude settles, counts, and leaves what the client is told.
func (s *Shadow) conclude(outcome rules.Outcome, reply *Reply) {
	s.over = true
	j := s.j
	if s.would == "" {
		s.would = decision.DecisionUnidentified // answered before it had come whole
	}
	booked := outcome == rules.Booked || outcome == rules.Done
	switch {
	case s.grant == nil: // no slot, or none that is known
	case !s.held && !booked && s.passing.noted == nil: // nor need the store know
	case j.outage != nil:
		j.endPassing(s.grant, s.passing, outcome, reply)
	default:
		j.settle(s.grant, outcome, reply) // what it oversells, the backend would have: ShadowReport has it
	}
	told := j.newReply(decision.DecisionShadow)
	told.Mode, told.Bound, told.Shadow = ModeShadow, "", s.would
	if outcome != rules.NeverSent {
		told.Outcome = outcome
	}
	if told.Status = s.status; s.status == 0 && reply != nil {
		told.Status = reply.Status
	}
	if s.held {
		told.Hold = j.holdOf(s.grant)
	}
	s.reply = told
	units := int64(0)
	if outcome == rules.Booked {
		units = max(1, j.facts.Units)
	}
	j.tally().add(s.would, units, s.status != 0)
}

// Match is the rule that the request falls under; a nil Rule while that is not known.
func (s *Shadow) Match() rules.Match { return s.j.match }

// Reply is what the client's answer has to tell, in the Gate-* fields alone; nil before
// Answered or Failed, and where no rule in shadow was meant.
func (s *Shadow) Reply() *Reply {
	if s == nil {
		return nil
	}
	return s.reply
}

// End gives back what the shadow holds. The request has been served, however that ended.
func (s *Shadow) End() {
	if s == nil {
		return
	}
	defer s.j.book.end()
	defer s.guard(time.Now())
	if s.place != nil {
		defer s.place.leave()
	}
	if s.leave != nil {
		defer s.leave()
	}
	defer s.j.takeBack()
	switch {
	case s.over:
	case s.requested:
		s.conclude(rules.Unknown, nil)
	case s.j.route != nil: // the client broke off
		s.conclude(rules.NoOutcome, nil)
	}
	if s.reply != nil {
		s.j.atBackend = time.Since(s.j.began) - s.took // all but what the shadow cost
		s.j.count(s.reply)
	}
}
