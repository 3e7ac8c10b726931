package edge

import (
	"errors"
	"io"
	"net"
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/upstream"
)

// pass is the way of a request that is not gated: both bodies stream.
func (s *Server) pass(ctx *fasthttp.RequestCtx, r *received) {
	req, in := &r.request, &r.head
	var source io.Reader
	if in.length != 0 {
		source = r.body.stream()
	}
	if in.upgrade != "" {
		s.passUpgrade(ctx, req, in)
		return
	}
	stream, err := s.backendOf(req).Pass(req, source, in.length)
	if err != nil {
		s.passFailed(ctx, req, err)
		return
	}
	s.passAnswer(ctx, req, in, stream)
}

// passAnswer hands the backend's answer on as it comes.
func (s *Server) passAnswer(ctx *fasthttp.RequestCtx, req *gate.Request, in *head, stream *upstream.Stream) {
	t := getHeadText()
	defer t.free()
	t.b = appendStatus(t.b, stream.Status)
	t.b = appendFields(t.b, req.WithIDs(stream.Status, stream.Header))
	t.b = s.appendShadow(t.b, req.Shadow)

	switch {
	case req.Method == "HEAD" || stream.Status == 304:
		_ = stream.Body.Close()
		t.b = appendAnnounced(t.b, stream.Header)
		s.send(ctx, stream.Status, t, nil, nil)
	case stream.Length < 0 && in.http10:
		s.passUntilClose(ctx, t, stream)
	case stream.Length < 0:
		s.send(ctx, stream.Status, t, nil, nil)
		body := stream.Body
		if trailing, ok := body.(upstream.Trailing); ok && len(trailing.Announced()) > 0 {
			for _, name := range trailing.Announced() {
				_ = ctx.Response.Header.AddTrailer(name) // or fasthttp forbids it: then it is dropped
			}
			body = &trailingBody{ReadCloser: body, from: trailing, to: &ctx.Response.Header}
		}
		ctx.Response.ImmediateHeaderFlush = true
		ctx.Response.SetBodyStream(lineFor(ctx).stream(stream.Status, body), -1)
	case stream.Length <= copyBelow:
		s.passShort(ctx, req, t, stream)
	default:
		s.send(ctx, stream.Status, t, nil, nil)
		ctx.Response.ImmediateHeaderFlush = true
		ctx.Response.SetBodyStream(lineFor(ctx).stream(stream.Status, stream.Body), int(stream.Length))
	}
}

// trailingBody sets the trailers when the body has ended, right before fasthttp
// writes them.
type trailingBody struct {
	io.ReadCloser
	from upstream.Trailing
	to   *fasthttp.ResponseHeader
	// ended: the trailers are set; the end may be read more than once.
	ended bool
}

func (b *trailingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && !b.ended {
		b.ended = true
		for _, f := range b.from.Trailers() {
			if slices.ContainsFunc(b.to.PeekTrailerKeys(), func(key []byte) bool { return string(key) == f.Name }) {
				b.to.Add(f.Name, f.Value)
			}
		}
	}
	return n, err
}

// passShort waits for a short body, so that head and body leave at once, and a
// body that was cut is a 502 and not half an answer.
func (s *Server) passShort(ctx *fasthttp.RequestCtx, req *gate.Request, t *headText, stream *upstream.Stream) {
	data := slices.Grow(t.body[:0], int(stream.Length))[:stream.Length]
	t.body = data
	_, err := io.ReadFull(stream.Body, data)
	_ = stream.Body.Close()
	if err != nil {
		s.passFailed(ctx, req, &gate.BackendError{Failure: gate.Broken, Err: err})
		return
	}
	s.send(ctx, stream.Status, t, data, nil)
	if req.Shadow == nil { // it may look at the answer until it ends
		stream.Free()
	}
}

// passUntilClose serves an HTTP/1.0 client, which knows no chunks: the end of the
// connection ends the body.
func (s *Server) passUntilClose(ctx *fasthttp.RequestCtx, t *headText, stream *upstream.Stream) {
	text := append([]byte(nil), t.b...)
	text = append(text, "Connection: close\r\n\r\n"...)
	ctx.HijackSetNoResponse(true)
	ended := lineFor(ctx).hijacked(stream.Status)
	ctx.Hijack(func(c net.Conn) {
		var sent int64
		defer func() { ended(sent) }()
		defer func() {
			if fault := recover(); fault != nil {
				s.log.Error("the gate panicked while passing an answer on; please report this", "panic", fault)
			}
			_ = stream.Body.Close()
		}()
		if _, err := c.Write(text); err != nil {
			return
		}
		var err error
		if sent, err = io.Copy(c, stream.Body); err != nil {
			abort(c)
		}
	})
}

// abort ends a connection so that the client sees a fault and not a regular end,
// which would make a cut body look whole.
func abort(nc net.Conn) {
	if h, ok := nc.(interface{ UnsafeConn() net.Conn }); ok {
		nc = h.UnsafeConn()
	}
	c := connOf(nc)
	if c == nil {
		return
	}
	if tcp, ok := c.Conn.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

// passFailed answers for a backend, or a client, that failed. An ungated request
// has no decision to tell.
func (s *Server) passFailed(ctx *fasthttp.RequestCtx, req *gate.Request, err error) {
	var fromClient *upstream.RequestBodyError
	if errors.As(err, &fromClient) {
		if refused := refusalOf(fromClient.Err); refused != nil {
			s.refuse(ctx, refused, req.ID)
		} else {
			lineFor(ctx).gone()
			_ = ctx.Conn().Close() // it has gone
		}
		return
	}
	s.log.Debug("backend gave no answer", s.requestID(req), "error", err)
	d, detail := decision.DecisionUpstreamFailed, "The service behind the gate broke off its answer."
	var failure *gate.BackendError
	if errors.As(err, &failure) {
		switch failure.Failure {
		case gate.TimedOut:
			d, detail = decision.DecisionUpstreamTimeout, "The service behind the gate did not answer in time."
		case gate.NotConnected:
			detail = "No connection to the service behind the gate; nothing was sent."
		}
	}
	s.writeBeside(ctx, decision.NewProblem(d, detail, req.ID).Answer(), req.Shadow)
}
