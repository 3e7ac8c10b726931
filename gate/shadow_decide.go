package gate

import (
	"crypto/rand"
	"errors"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// decide goes the way of Gate.Serve, up to where that forwards.
func (s *Shadow) decide(body []byte, fault error) decision.Decision {
	j := s.j
	if j.req.Body = body; body == nil {
		j.req.Body = []byte{} // read, and empty
	}
	if s.doubt && fault == nil {
		if !s.findRule() {
			return ""
		}
	}
	var refusal *rules.Refusal
	switch {
	case errors.As(fault, &refusal):
		return decision.Decision(refusal.Kind)
	case fault != nil:
		return decision.DecisionBusy
	case s.refusal != nil:
		return decision.Decision(s.refusal.Kind)
	}
	j.beginTrace()
	if reply := j.extract(); reply != nil {
		s.withoutKey()
		return reply.Decision
	}
	j.completeFacts()
	if reply := j.ruleLimit(); reply != nil {
		d := j.question()
		s.grant = unseen(d)
		return reply.Decision
	}
	if j.route.decide.Pool == "" && !j.dedupedOrLimited() {
		return decision.DecisionAdmitted
	}
	would := s.ask()
	if j.outage != nil && s.grant != nil {
		s.passing, _ = j.beginPassing(s.grant)
	}
	return would
}

// findRule decides by the body which rule it is; false: it is not in shadow.
func (s *Shadow) findRule() bool {
	m, mode, refusal := s.modes.find(&s.j.req.Request)
	if mode != modeShadow {
		s.over = true
		return false
	}
	s.refusal = refusal
	s.follow(m)
	return true
}

// withoutKey finds the slot of a request that is refused for its key, which has nothing
// to say of the slot: a booking of it counts.
func (s *Shadow) withoutKey() {
	keyless := *s.j.match.Rule
	keyless.Idempotency = nil
	facts, refusal := keyless.Extract(&s.j.req.Request, &s.j.match, s.MaxBody())
	if refusal != nil {
		return
	}
	s.j.facts = facts
	d := s.j.question()
	s.grant = unseen(d)
}

// ask is journey.admit for a request that does not wait.
func (s *Shadow) ask() decision.Decision {
	j := s.j
	d := j.question()
	d.Wait, d.Line = 0, false
	wait := newPatience(j) // waits for nothing, so there is nothing to close
	if !j.gate.back.Ready() {
		if reply := j.goOn(d, wait, errAway); reply != nil {
			return s.refused(d, decision.NoVerdict, reply)
		}
	} else if err := j.findHold(d); err != nil {
		if reply := j.goOn(d, wait, err); reply != nil {
			return s.refused(d, decision.NoVerdict, reply)
		}
	}
	if d.Blind || d.Pool == "" && !j.dedupedOrLimited() {
		return decision.DecisionAdmitted // a slot that nobody knows, or none
	}
	for {
		over := j.overLimits()
		d.Line = d.Line || over > 0 // told what it is, takes nothing
		run := j.gate.back.Run()
		err := j.ask(d)
		decided := j.decided
		if err != nil {
			if reply := j.goOn(d, wait, err); reply != nil {
				return s.refused(d, decision.NoVerdict, reply)
			}
			continue
		}
		switch decided.Verdict {
		case decision.Admitted:
			s.grant, s.held = &grant{decide: *d, decided: decided}, true
			if j.outage != nil {
				leave, _, ok := j.route.passthrough.Enter(j.facts.Slot)
				if s.leave = leave; !ok {
					return decision.DecisionStoreDown
				}
				return decision.DecisionPassthrough
			}
			if d.Pool != "" && d.Action == store.Book {
				query, _ := j.book.query(d.Pool, d.Slot)
				s.grant.running = j.gate.back.Admitted(run, query, j.forced(s.grant))
			}
			return decision.DecisionAdmitted

		case decision.Load:
			// Somebody looks; meanwhile only the counters' no is believed.
			j.gate.looks.begin(j.book, d.Pool, d.Slot)
			d.Blind, d.Line = true, true

		case decision.NoRoom:
			switch {
			case over > 0:
				return s.refused(d, decided.Verdict, j.refuse(decision.DecisionStoreDown, "", 0))
			case d.Line || d.Action != store.Book || d.MaxInflight == 0:
				s.grant = unseen(d) // admitted once there is room, or the look has been
				return decision.DecisionAdmitted
			case !s.standInLine(d):
				return s.refused(d, decided.Verdict, j.refuseVerdict(&decided))
			}
			d.MaxInflight = 0

		case decision.Answered, decision.Replay:
			return s.refused(d, decided.Verdict, j.replay(&decided, false))

		case decision.Twin, decision.SubjectBusy:
			reply := j.refuseVerdict(&decided)
			if j.route.waits {
				reply.Decision = decision.DecisionDuplicate
				if decided.MayReplay {
					reply.Decision = decision.DecisionReplayed
				}
			}
			return s.refused(d, decided.Verdict, reply)

		default:
			return s.refused(d, decided.Verdict, j.refuseVerdict(&decided))
		}
	}
}

// standInLine takes a place among the requests that would wait for room at the backend;
// false when so many would not be let wait.
func (s *Shadow) standInLine(d *store.Decide) bool {
	s.place = s.j.book.shadowQueues[d.Pool].join(d.Slot)
	return s.place != nil
}

// refused notes that enforce would not forward the request: the store holds nothing for
// it, and hears of it only if it is booked. A key that another request has is not its.
func (s *Shadow) refused(d *store.Decide, v decision.Verdict, reply *Reply) decision.Decision {
	s.grant = unseen(d)
	if keyIsTaken(v) {
		s.grant.decide.Key = ""
	}
	return reply.Decision
}

func keyIsTaken(v decision.Verdict) bool {
	switch v {
	case decision.Answered, decision.Replay, decision.KeyDone, decision.Mismatch, decision.Twin, decision.OutcomeUnknown:
		return true
	}
	return false
}

// unseen is what a request goes under of which the store knows nothing. Its id is a new
// one, so that no copy of what was decided meets it; a cancel keeps to the hold it means.
func unseen(d *store.Decide) *grant {
	g := &grant{decide: *d}
	g.decide.ID = rand.Text()
	g.decided.Hold = d.Target
	if d.Pool != "" && d.Action == store.Book {
		g.decided.Hold = g.decide.ID
	}
	return g
}
