package gate

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// newReply is a reply with what every one carries.
func (j *journey) newReply(d decision.Decision) *Reply { return j.begin(new(Reply), d) }

// begin fills in what every reply carries.
func (j *journey) begin(r *Reply, d decision.Decision) *Reply {
	r.Decision, r.Mode = d, ModeNormal
	if j.match.Rule != nil {
		r.Rule = j.match.Rule.Name
	}
	if j.outage != nil {
		r.Mode, r.Bound = ModeDegraded, j.outage.bound
	}
	return r
}

// ownReply is an answer of the gate's own, in one piece of memory.
type ownReply struct {
	Reply
	room decision.Room
}

// ownReplies have been released: nobody looks at them any more. Those that are not
// released are left to the garbage collector.
var ownReplies = sync.Pool{New: func() any { return new(ownReply) }}

func newOwnReply() *ownReply {
	r := ownReplies.Get().(*ownReply)
	if r.Release == nil {
		r.Release = r.release // bound once: it takes memory of its own
	}
	return r
}

func (r *ownReply) release() {
	*r = ownReply{Reply: Reply{Release: r.Release}}
	ownReplies.Put(r)
}

// refuse is an answer of the gate's own. retryAfter 0 gives no Retry-After where
// the decision does not call for one.
func (j *journey) refuse(d decision.Decision, detail string, retryAfter time.Duration) *Reply {
	own := newOwnReply()
	r := j.begin(&own.Reply, d)
	problem := decision.NewProblem(d, detail, j.req.ID)
	if retryAfter > 0 {
		problem.Retryable = true
	}
	r.Answer = problem.AnswerIn(&own.room)
	if custom, ok := j.customAnswer(d); ok {
		r.Answer = custom
	}
	if retryAfter > 0 || retryAfterAlways[d] {
		r.Header = append(r.Header, rules.Field{Name: "Retry-After", Value: retryAfterValue(retryAfter)})
	}
	r.Header = append(r.Header, j.rateLimitFields()...)
	return r
}

// customAnswer is what the rule's `answers` put in place of the gate's own.
func (j *journey) customAnswer(d decision.Decision) (decision.Answer, bool) {
	if j.match.Rule == nil || len(j.match.Rule.Answers) == 0 {
		return decision.Answer{}, false
	}
	cfg, ok := j.match.Rule.Answers[strings.ReplaceAll(string(d), "-", "_")]
	if !ok {
		return decision.Answer{}, false
	}
	a := decision.Answer{Status: cfg.Status, Body: []byte(cfg.Body)}
	if a.Status == 0 {
		a.Status = d.Status()
	}
	if cfg.ContentType != "" {
		a.Header = append(a.Header, rules.Field{Name: "Content-Type", Value: cfg.ContentType})
	}
	a.Header = append(a.Header, rules.Field{Name: "Cache-Control", Value: "no-store"})
	for name, value := range cfg.Headers {
		a.Header = append(a.Header, rules.Field{Name: name, Value: value})
	}
	return a, true
}

var retryAfterAlways = map[decision.Decision]bool{
	decision.DecisionInFlight:       true,
	decision.DecisionOutcomeUnknown: true,
	decision.DecisionRateLimited:    true,
	decision.DecisionBusy:           true,
	decision.DecisionStoreDown:      true,
	decision.DecisionUpstreamOpen:   true,
}

// retryAfterValue is whole seconds, at least one, spread by up to a quarter (or
// one second) so that those who were refused together do not return together.
func retryAfterValue(d time.Duration) string {
	seconds := max(1, int64((d+time.Second-1)/time.Second))
	return strconv.FormatInt(seconds+rand.Int64N(max(1, seconds/4)+1), 10)
}

var verdictDetails = [decision.Admitted + 1]string{
	decision.Gone:           "This request was decided before.",
	decision.KeyDone:        "A request with this idempotency key is done; its answer may not be shown to this caller.",
	decision.Mismatch:       "This idempotency key was used for a request with another content.",
	decision.Twin:           "A request with this idempotency key is still running.",
	decision.OutcomeUnknown: "The first attempt got no answer; whether it booked is not known yet.",
	decision.LimitedSubject: "Too many requests for this subject.",
	decision.LimitedClient:  "Too many requests from this client.",
	decision.LimitedSlot:    "Too many bookings of this slot at once.",
	decision.SubjectBusy:    "Another request for this subject is running on this slot.",
	decision.SubjectHolds:   "The subject has this slot already.",
	decision.SubjectFull:    "The subject has as many units as are allowed.",
	decision.Closed:         "This slot is closed.",
	decision.NotOpen:        "Booking has not opened yet.",
	decision.OverCapacity:   "More units are asked for than the slot has.",
	decision.SoldOut:        "Not enough units are left.",
	decision.NoRoom:         "Too many requests for this slot are waiting.",
}

// refuseVerdict is the answer to a verdict that nothing more can be waited for.
func (j *journey) refuseVerdict(decided *store.Decided) *Reply {
	after := decided.RetryAfter
	switch decided.Verdict {
	case decision.SoldOut, decision.OverCapacity:
		if j.outage != nil && j.outage.bound != boundBackend {
			return j.refuse(decision.DecisionStoreDown, "The store that keeps the bookings does not answer, and this gate has admitted its share without it.", time.Second)
		}
	case decision.Twin, decision.SubjectBusy, decision.NoRoom:
		after = time.Second // the lease is its worst case, not what to expect
	case decision.SubjectFull:
		j.limits = append(j.limits, store.LimitState{
			Name:  "max-per-subject",
			Limit: store.Limit{Burst: int(j.route.decide.MaxPerSubject)},
			Reset: j.route.decide.HoldTTL,
		})
		after = max(after, j.route.decide.HoldTTL)
	}
	return j.refuse(decision.FromVerdict(decided.Verdict), j.detail(decided.Verdict), after)
}
