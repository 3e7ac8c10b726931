package trace

import (
	"context"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/rules"
)

// request is the server span of one request.
type request struct {
	tracer *Tracer
	ctx    context.Context // holds the span
	span   trace.Span
	// continued: the request came with a trace context that was understood.
	continued bool
}

// Begin implements gate.Tracer. The span began when the request's head was complete.
func (t *Tracer) Begin(r *gate.Request, rule *rules.Rule) gate.Trace {
	parent := parentOf(r.Header)
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), parent)
	method := methodName(r.Method)
	path := rule.Match.Path
	ctx, span := t.tracer.Start(ctx, method+" "+path,
		trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(r.Arrived),
		trace.WithAttributes(
			attribute.String("http.request.method", method),
			attribute.String("http.route", path),
			attribute.String("slotgate.rule", rule.Name)))
	if rule.Pool != nil {
		span.SetAttributes(attribute.String("slotgate.pool", rule.Pool.Name))
	}
	return &request{tracer: t, ctx: ctx, span: span, continued: parent.IsValid()}
}

// methodName is bounded: a client may make up any method (OpenTelemetry semantic
// conventions, http.request.method).
func methodName(method string) string {
	if slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"}, method) {
		return method
	}
	return "_OTHER"
}

func (r *request) ID() string {
	if c := r.span.SpanContext(); c.IsSampled() {
		return c.TraceID().String()
	}
	return ""
}

func (r *request) Step(name string) gate.Step {
	kind := trace.SpanKindInternal
	if name == "upstream" {
		kind = trace.SpanKindClient
	}
	_, span := r.tracer.tracer.Start(r.ctx, name, trace.WithSpanKind(kind))
	return &step{span: span, continued: r.continued}
}

func (r *request) End(reply *gate.Reply) {
	r.span.SetAttributes(
		attribute.Int("http.response.status_code", reply.Status),
		attribute.String("slotgate.decision", string(reply.Decision)),
		attribute.String("slotgate.mode", string(reply.Mode)))
	if reply.Outcome != rules.NoOutcome {
		r.span.SetAttributes(attribute.String("slotgate.outcome", reply.Outcome.String()))
	}
	if reply.Status >= 500 {
		r.span.SetStatus(codes.Error, "")
	}
	r.span.End()
}

// step is a span within a request's.
type step struct {
	span      trace.Span
	continued bool
}

// Outgoing puts the span into traceparent, in the place of the client's. A tracestate
// goes on as it was sent, but for one whose traceparent was not understood (W3C Trace
// Context, 3.3 and 4.3).
func (s *step) Outgoing(fields []rules.Field) []rules.Field {
	own := rules.Field{Name: "traceparent", Value: traceparent(s.span.SpanContext())}
	out := make([]rules.Field, 0, len(fields)+1)
	placed := false
	for _, f := range fields {
		switch {
		case strings.EqualFold(f.Name, "traceparent"):
			if !placed {
				out, placed = append(out, own), true
			}
		case !s.continued && strings.EqualFold(f.Name, "tracestate"):
		default:
			out = append(out, f)
		}
	}
	if !placed {
		out = append(out, own)
	}
	return out
}

func (s *step) End(failed bool) {
	if failed {
		s.span.SetStatus(codes.Error, "")
	}
	s.span.End()
}
