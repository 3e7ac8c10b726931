package gate

import "github.com/slotgate/slotgate/rules"

// Tracer follows gated requests for somebody who looks at single ones (package trace).
// It is safe for concurrent use; neither it nor what it returns blocks or fails.
type Tracer interface {
	// Begin opens the span of a request that a rule was found for, as a child of the
	// one that the request names.
	Begin(r *Request, rule *rules.Rule) Trace
}

// Trace is one request's. It is used by one goroutine at a time.
type Trace interface {
	// Step opens a span within the request's; name is a fixed word.
	Step(name string) Step
	// ID is the trace's, in hexadecimal; "" where nobody records it.
	ID() string
	End(*Reply)
}

// Step is a part of a request: one call of the store or of the backend.
type Step interface {
	// Outgoing are the fields of a request that is sent in this step: who gets them
	// goes on under it. fields stay as they are.
	Outgoing(fields []rules.Field) []rules.Field
	End(failed bool)
}

// noStep is a part of a request that nobody traces.
type noStep struct{}

func (noStep) Outgoing(fields []rules.Field) []rules.Field { return fields }
func (noStep) End(bool)                                    {}

func (j *journey) beginTrace() {
	if t := j.gate.tracer; t != nil {
		j.trace = t.Begin(j.req, j.match.Rule)
	}
}

// step opens a span within the request's.
func (j *journey) step(name string) Step {
	if j.trace == nil {
		return noStep{}
	}
	return j.trace.Step(name)
}

// outgoing is the request as the backend gets it in this step.
func (j *journey) outgoing(s Step) *Request {
	if j.trace == nil {
		return j.req
	}
	r := *j.req
	r.Header = s.Outgoing(r.Header)
	return &r
}
