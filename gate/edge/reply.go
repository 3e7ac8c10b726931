package edge

import (
	"bytes"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/upstream"
	"github.com/slotgate/slotgate/rules"
)

// exposed are the fields of the gate's own answers that scripts may read.
const exposed = "Gate-Decision, Gate-Mode, Gate-Rule, Gate-Outcome, Gate-Hold, Gate-Bound, Gate-Shadow, " +
	"Idempotent-Replayed, Retry-After, RateLimit, RateLimit-Policy"

// writeReply writes what the gate decided on.
func (s *Server) writeReply(ctx *fasthttp.RequestCtx, req *gate.Request, r *gate.Reply) {
	t := getHeadText()
	defer t.free()
	own := r.Decision.Status() != 0 || r.Replayed
	lineFor(ctx).reply(r)

	t.b = appendStatus(t.b, r.Status)
	if own {
		t.b = appendDate(t.b)
		t.b = s.appendCORS(t.b, req.Header)
		r.Header = s.withoutCORS(r.Header)
	}
	t.b = appendFields(t.b, withoutField(r.Header, "Idempotent-Replayed")) // ours to say
	if s.config.GateHeaders {
		t.b = appendGateFields(t.b, r)
	}
	if r.Replayed {
		t.b = appendField(t.b, "Idempotent-Replayed", "true")
	}
	t.b = appendFraming(t.b, req.Method, r, own)
	s.send(ctx, r.Status, t, r.Body, r.Release)
}

// appendFraming tells the length of the body that HEAD leaves out; fasthttp tells that
// of others.
func appendFraming(b []byte, method string, r *gate.Reply, own bool) []byte {
	switch {
	case r.Status != 304 && method != "HEAD":
		return b
	case own && r.Status != 304 && len(r.Body) > 0:
		return appendLength(b, int64(len(r.Body)))
	}
	return appendAnnounced(b, r.Header)
}

// appendAnnounced frames an answer without a body as the backend would frame the
// body.
func appendAnnounced(b []byte, fields []rules.Field) []byte {
	if n, ok := upstream.ParseLength(fieldValue(fields, "Content-Length")); ok {
		return appendLength(b, n)
	}
	return append(b, "Transfer-Encoding: chunked\r\n"...)
}

func appendGateFields(b []byte, r *gate.Reply) []byte {
	b = appendField(b, "Gate-Decision", string(r.Decision))
	b = appendField(b, "Gate-Mode", string(r.Mode))
	if r.Rule != "" {
		b = appendField(b, "Gate-Rule", r.Rule)
	}
	if r.Outcome != rules.NoOutcome {
		b = appendField(b, "Gate-Outcome", r.Outcome.String())
	}
	if r.Hold != "" {
		b = appendField(b, "Gate-Hold", r.Hold)
	}
	if r.Bound != "" {
		b = appendField(b, "Gate-Bound", r.Bound)
	}
	if r.Shadow != "" {
		b = appendField(b, "Gate-Shadow", string(r.Shadow))
	}
	return b
}

// appendCORS lets the pages of the configured origins read an answer that the
// backend, which has its own rules for that, did not make.
func (s *Server) appendCORS(b []byte, request []rules.Field) []byte {
	if len(s.cors) == 0 {
		return b
	}
	b = appendField(b, "Vary", "Origin")
	origin := fieldValue(request, "Origin")
	switch {
	case origin == "":
		return b
	case s.cors[origin]:
		b = appendField(b, "Access-Control-Allow-Origin", origin)
		b = appendField(b, "Access-Control-Allow-Credentials", "true")
	case s.cors["*"]:
		b = appendField(b, "Access-Control-Allow-Origin", "*")
	default:
		return b
	}
	return appendField(b, "Access-Control-Expose-Headers", exposed)
}

// withoutCORS drops the CORS fields of a stored answer: they were for the origin
// of the first request.
func (s *Server) withoutCORS(fields []rules.Field) []rules.Field {
	if len(s.cors) == 0 {
		return fields
	}
	kept := make([]rules.Field, 0, len(fields))
	for _, f := range fields {
		if !hasPrefixFolded(f.Name, "Access-Control-") {
			kept = append(kept, f)
		}
	}
	return kept
}

// writeOwn writes an answer that has no decision: it carries no Gate-* fields.
func (s *Server) writeOwn(ctx *fasthttp.RequestCtx, a decision.Answer) { s.writeBeside(ctx, a, nil) }

// writeBeside is writeOwn for a request that may have a shadow.
func (s *Server) writeBeside(ctx *fasthttp.RequestCtx, a decision.Answer, shadow *gate.Shadow) {
	t := getHeadText()
	defer t.free()
	t.b = appendOwnHead(t.b, a)
	t.b = s.appendShadow(t.b, shadow)
	if origin := ctx.Request.Header.Peek("Origin"); len(origin) > 0 && !strings.ContainsAny(string(origin), "\r\n") {
		t.b = s.appendCORS(t.b, []rules.Field{{Name: "Origin", Value: string(origin)}})
	}
	s.send(ctx, a.Status, t, a.Body, nil)
}

// copyBelow is the size up to which a body is copied, to give its memory back at
// once; a longer one is kept until it is written.
const copyBelow = 16 << 10

// send hands an answer to fasthttp, which adds the framing of a body and writes it when
// the handler has returned.
func (s *Server) send(ctx *fasthttp.RequestCtx, status int, t *headText, body []byte, release func()) {
	t.setHead(&ctx.Response.Header, status)
	switch {
	case len(body) == 0:
	case release != nil && len(body) > copyBelow:
		ctx.Response.SetBodyStream(&heldBody{Reader: bytes.NewReader(body), release: release}, len(body))
		return
	default:
		ctx.Response.SetBody(body)
	}
	if release != nil {
		release()
	}
}

// heldBody gives its memory back when it has been written.
type heldBody struct {
	*bytes.Reader
	release func()
}

func (b *heldBody) Close() error {
	if b.release != nil {
		b.release()
		b.release = nil
	}
	return nil
}
