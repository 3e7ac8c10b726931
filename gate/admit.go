package gate

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/degrade"
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
	// running is what a store that loses the grant is told; nil where none can.
	running *degrade.Passing
	// reference is the booking's id in the backend's answer, "" none.
	reference string
	// usableUntil is when the first byte must be on its way (A2).
	usableUntil time.Time
}

// admit asks the store until it admits, or the request has its answer, or there
// is nothing more to wait for. While the store is away it asks this process's own
// (outage.go).
func (j *journey) admit() (*grant, *Reply) {
	d := j.question()
	wait := newPatience(j)
	defer wait.close()
	if !j.gate.back.Ready() {
		if reply := j.goOn(d, wait, errAway); reply != nil {
			return nil, reply
		}
	} else if err := j.findHold(d); err != nil {
		if reply := j.goOn(d, wait, err); reply != nil {
			return nil, reply
		}
	} else if d.Pool == "" && !j.dedupedOrLimited() {
		return nil, j.forwardUnheld()
	}
	listening := j.listen(d)
	if listening != nil {
		defer listening.end()
	}
	decided := &j.decided
	stale := 0
	for {
		if j.outage != nil && j.overLimits() > 0 {
			d.Line = true // told if it is a replay or a twin; takes nothing
		}
		asked, run := time.Now(), j.gate.back.Run()
		if err := j.ask(d); err != nil {
			if reply := j.goOn(d, wait, err); reply != nil {
				return nil, reply
			}
			continue
		}
		switch decided.Verdict {
		case decision.Admitted:
			g := j.granted(d, asked, run)
			if time.Now().Before(g.usableUntil) {
				return g, nil
			}
			j.settle(g, rules.NeverSent, nil)
			if stale++; stale >= maxStale {
				return nil, j.refuse(decision.DecisionBusy, "The decision took too long to be used.", time.Second)
			}
			d.ID = rand.Text()

		case decision.Answered, decision.Replay:
			if decided.Verdict == decision.Answered && wait.mayReplay && len(decided.Answer) == 0 {
				d.Await = "" // the owner's answer found no room: what is known without it?
				continue
			}
			if decided.Verdict == decision.Answered && !wait.mayReplay && rules.KeySourceOf(j.facts.Key) == rules.KeyDerived {
				d.Await = "" // the gate's own guess: somebody else's refusal is not this caller's
				continue
			}
			return nil, j.replay(decided, wait.mayReplay)

		case decision.Twin:
			if !wait.forOwner(d, decided) {
				return nil, j.refuseVerdict(decided)
			}
		case decision.SubjectBusy:
			if !wait.forSubject(d, decided) {
				return nil, j.refuseVerdict(decided)
			}
		case decision.Load:
			if err := j.load(d); err != nil {
				if reply := j.goOn(d, wait, err); reply != nil {
					return nil, reply
				}
			} else if d.Pool == "" && !j.dedupedOrLimited() {
				return nil, j.forwardUnheld()
			}
		case decision.NoRoom:
			if d.Action != store.Book {
				return nil, j.refuseVerdict(decided)
			}
			if over := j.overLimits(); d.Line && over > 0 {
				g := j.grantOf(d)
				g.decided.Hold = d.ID
				return nil, j.notPassed(g, over)
			}
			if !wait.forRoom(d) {
				return nil, j.refuseVerdict(decided)
			}
		default:
			if listening != nil && decided.Holders != nil && j.outage == nil {
				listening.keep(d, decided, asked, j.book, run)
			}
			return nil, j.refuseVerdict(decided)
		}
	}
}

// grantOf begins the grant of a decide, in the journey: it is too large for the stack of
// each connection.
func (j *journey) grantOf(d *store.Decide) *grant {
	g := &j.grant
	*g = grant{}
	g.decide = *d
	return g
}

// granted makes the grant of what was decided.
func (j *journey) granted(d *store.Decide, asked time.Time, run int64) *grant {
	g := j.grantOf(d)
	g.decided = j.decided
	g.usableUntil = asked.Add(d.Lease - j.route.timeout - j.route.settleTime)
	if j.outage == nil && d.Pool != "" && d.Action == store.Book {
		query, _ := j.book.query(d.Pool, d.Slot)
		g.running = j.gate.back.Admitted(run, query, j.forced(g))
	}
	return g
}

// ask makes one decide, and notes what the answer tells beside its verdict.
func (j *journey) ask(d *store.Decide) (err error) {
	step := j.step("decide")
	decided := &j.decided
	*decided, err = j.store().Decide(context.Background(), d)
	j.endTurn()
	step.End(err != nil)
	if err != nil {
		return err
	}
	if j.outage == nil {
		j.gate.local.Learn(d.Pool, d.Slot, decided.Left)
	}
	if len(decided.Limits) > 0 {
		j.noteLimits(decided.Limits)
		d.Charged = true
	}
	return nil
}

// question is what the store is asked about this request.
func (j *journey) question() *store.Decide {
	d := j.about()
	d.ID = rand.Text()
	d.Fingerprint = j.facts.Fingerprint
	d.Charged = len(j.limits) > 0 // decided before, and too late to be used
	if j.route.waits {
		d.Wait = j.route.twinWait
	}
	if q, ok := j.book.queues[d.Pool]; ok && d.Action == store.Book {
		d.Line = q.lined(d.Slot)
	}
	return d
}

// about is the part of question that says who wants what.
func (j *journey) about() *store.Decide {
	d := &j.asked
	*d = j.route.decide
	d.Slot, d.Subject, d.Units = j.facts.Slot, j.facts.Subject, j.facts.Units
	d.Group, d.Partition, d.Key = j.facts.Group, j.facts.Partition, j.facts.Key
	d.Scope = j.facts.Scope
	d.Client = j.facts.Client
	j.keyed(d)
	return d
}
