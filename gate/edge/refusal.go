package edge

import (
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

// refusal is an answer of the edge to what no rule gets to see. kind is its word
// in slotgate_edge_refusals_total.
type refusal struct {
	kind       string
	status     int
	detail     string
	retryAfter int // seconds; 0: none
}

var (
	refuseMalformed = &refusal{kind: "malformed", status: 400, detail: "This is no HTTP/1.1 request."}
	refuseFraming   = &refusal{kind: "framing", status: 400, detail: "Content-Length and Transfer-Encoding leave the length of the body in doubt. Send one of them, once; the only transfer coding is chunked."}
	refuseHeader    = &refusal{kind: "header", status: 400, detail: "The name of a header field is not a token."}
	refuseFold      = &refusal{kind: "obs_fold", status: 400, detail: "A header field is continued on a second line. Send it on one."}
	refuseLineEnd   = &refusal{kind: "line_end", status: 400, detail: "A header line does not end in CR LF."}
	refuseMethod    = &refusal{kind: "method", status: 400, detail: "Methods are written in capital letters."}
	refuseConnect   = &refusal{kind: "connect", status: 405, detail: "CONNECT is not supported; this is no forward proxy."}
	refuseAbsolute  = &refusal{kind: "absolute_form", status: 400, detail: "The request target must begin with a slash; with scheme and host in it, the host must be that of the Host field, without a user name."}
	refuseHost      = &refusal{kind: "host", status: 400, detail: "One Host field is needed, with a host and perhaps a port."}
	refusePath      = &refusal{kind: "path", status: 400, detail: "The path has an escape or character that servers read in different ways."}
	refuseTLS       = &refusal{kind: "tls", status: 400, detail: "This port speaks HTTP without TLS."}
	refuseFragment  = &refusal{kind: "fragment", status: 400, detail: "The request target holds a #; a fragment is not sent, and a literal one is %23."}
	refuseVersion   = &refusal{kind: "version", status: 505, detail: "Only HTTP/1.1 and HTTP/1.0 are spoken here."}
	refuseHeadSize  = &refusal{kind: "head_size", status: 431, detail: "The request line and header fields are longer than server.max_header."}
	refuseTimeout   = &refusal{kind: "timeout", status: 408, detail: "The request did not arrive whole in time."}
	refuseBody      = &refusal{kind: "body", status: 400, detail: "The body is not what its framing announces."}
	refuseConns     = &refusal{kind: "connections", status: 503, detail: "Too many connections.", retryAfter: 1}
	refusePanic     = &refusal{kind: "panic", status: 503, detail: "The gate failed on this request.", retryAfter: 1}
)

// answer renders the refusal as problem+json. The request has no decision, so the
// problem has no type of its own (RFC 9457 section 4.2.1).
func (r *refusal) answer(requestID string) decision.Answer {
	a := decision.Problem{
		Type:      "about:blank",
		Title:     http.StatusText(r.status),
		Status:    r.status,
		Detail:    r.detail,
		Retryable: r.retryAfter > 0 || r.status == http.StatusRequestTimeout,
		RequestID: requestID,
	}.Answer()
	if r.status == http.StatusMethodNotAllowed { // RFC 9110 section 15.5.6
		a.Header = append(a.Header, rules.Field{Name: "Allow", Value: methodsHere})
	}
	if r.retryAfter > 0 {
		a.Header = append(a.Header, rules.Field{Name: "Retry-After", Value: strconv.Itoa(r.retryAfter)})
	}
	return a
}

// refuse answers and ends the connection: after a request that was not
// understood, nobody can say where the next one begins.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, r *refusal, requestID string) {
	s.meter.EdgeRefusal(r.kind)
	lineFor(ctx).refused(r.kind)
	if requestID == "" {
		requestID = rand.Text()
	}
	s.writeOwn(ctx, r.answer(requestID))
	endConn(ctx)
}

// endConn closes the connection after the answer, and leaves the client time to
// read it.
func endConn(ctx *fasthttp.RequestCtx) {
	ctx.SetConnectionClose()
	if c := connOf(ctx.Conn()); c != nil {
		c.linger.Store(true)
	}
}

// handleUnreadable answers what fasthttp could not read as a request.
func (s *Server) handleUnreadable(ctx *fasthttp.RequestCtx, err error) {
	if connOf(ctx.Conn()).goOn(err) {
		return
	}
	line := s.beginLine(ctx)
	defer line.end(ctx)
	defer s.recoverFrom(ctx)
	var tooLarge *fasthttp.ErrSmallBuffer
	var netErr net.Error
	switch {
	case errors.Is(err, errHello):
		s.refuse(ctx, refuseTLS, "")
	case errors.As(err, &tooLarge):
		s.refuse(ctx, refuseHeadSize, "")
	case errors.As(err, &netErr) && netErr.Timeout():
		if c := connOf(ctx.Conn()); c != nil && !c.heard.Load() {
			line.drop()
			_ = c.Close() // opened ahead of need and never used: nothing to answer
			return
		}
		s.refuse(ctx, refuseTimeout, "")
	case errors.As(err, &netErr):
		line.drop()
		_ = ctx.Conn().Close() // the client has gone
	default:
		s.refuse(ctx, refuseMalformed, "")
	}
}

// recoverFrom keeps a fault in the gate from ending the process. No request is
// known to cause one; the answer is that of a gate that cannot serve now.
func (s *Server) recoverFrom(ctx *fasthttp.RequestCtx) {
	fault := recover()
	if fault == nil {
		return
	}
	s.log.Error("a request made the gate panic; please report this", "panic", fault, "stack", string(debug.Stack()))
	ctx.Response.Reset()
	s.refuse(ctx, refusePanic, "")
}

// lingering bounds the refused connections that are waited for.
var lingering = make(chan struct{}, 64)

// refuseConn answers a connection over server.max_connections. It does not block:
// the answer fits an empty send buffer, and what waits is bounded.
func (s *Server) refuseConn(nc net.Conn) {
	s.meter.EdgeRefusal(refuseConns.kind)
	s.logRefusedConn(clientAddr(nc.RemoteAddr()))
	if s.tls == nil && nc.SetWriteDeadline(time.Now().Add(time.Second)) == nil {
		a := refuseConns.answer(rand.Text())
		text := appendOwnHead(nil, a)
		text = append(text, "Connection: close\r\n\r\n"...)
		_, _ = nc.Write(append(text, a.Body...))
		select {
		case lingering <- struct{}{}:
			go func() {
				lingerOn(nc)
				_ = nc.Close()
				<-lingering
			}()
			return
		default:
		}
	}
	_ = nc.Close()
}
