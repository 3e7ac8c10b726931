package gate

import (
	"errors"
	"net/http"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

// readsBodyFirst reports whether the body is needed before anything is decided. A
// client that waits to be asked for it (RFC 9110 section 10.1.1) is decided on
// without it where the rule does not read it, so that who is refused need not send.
//
// That is for waiting clients only: a body that is on its way anyway gains nothing
// by an early answer, which would cost its connection, and a slow client would hold
// units while it sends.
func (j *journey) readsBodyFirst() bool { return !j.req.BodyHeld || j.match.Rule.ReadsBody() }

// readBody takes the body in, unless that was done before.
func (j *journey) readBody() *Reply {
	if j.req.Body != nil {
		return nil
	}
	body, err := j.req.ReadBody()
	if err != nil {
		return j.refuseBody(err)
	}
	if j.req.Body = body; body == nil {
		j.req.Body = []byte{} // read, and empty
	}
	return nil
}

// refuseBody is the answer to a request whose body did not come.
func (j *journey) refuseBody(err error) *Reply {
	var refusal *rules.Refusal
	switch {
	case errors.As(err, &refusal):
		return j.refuse(decision.Decision(refusal.Kind), refusal.Detail, 0)
	case errors.Is(err, ErrOverloaded):
		return j.refuse(decision.DecisionBusy, "Too many requests are being read at once.", time.Second)
	case errors.Is(err, ErrSlowBody):
		return j.refuseSlow()
	case errors.Is(err, ErrBadBody):
		return j.refuse(decision.DecisionUnidentified, "The body is not what its framing announces.", 0)
	}
	return j.refuse(decision.DecisionUnidentified, "The request body did not arrive whole.", 0)
}

// refuseSlow is the answer to a request of which not all came in time. It never said
// what it is about: unidentified. But its status is HTTP's own, which tells clients
// that sending it again may help (RFC 9110 section 15.5.9).
func (j *journey) refuseSlow() *Reply {
	const d = decision.DecisionUnidentified
	reply := j.refuse(d, "", 0)
	if _, custom := j.customAnswer(d); !custom {
		p := decision.NewProblem(d, "The request body did not arrive whole in time.", j.req.ID)
		p.Status, p.Retryable = http.StatusRequestTimeout, true
		reply.Answer = p.Answer()
	}
	return reply
}

// readUnder asks for the body of a request that is admitted. Its units are its own
// only while the lease leaves time to use them: of a body that does not come by
// then they are free at once, and one that comes later is decided on again.
func (j *journey) readUnder(g *grant) (*grant, *Reply) {
	freed := make(chan struct{})
	lapse := time.AfterFunc(time.Until(g.usableUntil), func() {
		defer close(freed)
		defer func() {
			if fault := recover(); fault != nil {
				j.gate.log.Error("the gate panicked while it gave a grant back; please report this", "panic", fault)
			}
		}()
		j.unused(g)
	})
	refused := j.readBody()
	inTime := lapse.Stop()
	switch {
	case !inTime:
		<-freed
	case refused != nil:
		j.unused(g)
	}
	switch {
	case refused != nil:
		return nil, refused
	case inTime:
		return g, nil
	}
	j.outage = nil // asked anew, too
	return j.admit()
}
