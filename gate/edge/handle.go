package edge

import (
	"net/http"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
)

// handle is the way of every request.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	if !connOf(ctx.Conn()).goOn(nil) {
		s.answer(ctx, nil)
	}
}

// received is a request on its way through the edge. All of it is one piece of memory.
type received struct {
	head    head
	request gate.Request
	body    requestBody            // where there is one
	readAll func() ([]byte, error) // that of body, bound once
	over    bool                   // nobody looks at the request any more
}

var receiveds = sync.Pool{New: func() any {
	r := new(received)
	r.readAll = r.body.readAll
	return r
}}

// end ends the body, and gives the memory back where that is safe.
func (r *received) end() {
	r.body.done()
	if r.over {
		readAll, room := r.readAll, r.body.spare()
		*r = received{}
		r.readAll, r.body.room = readAll, room
		receiveds.Put(r)
	}
}

// answer prepares the answer in ctx. await, if set, is called before the first
// byte of the body is read.
func (s *Server) answer(ctx *fasthttp.RequestCtx, await func() error) {
	line := s.beginLine(ctx)
	defer line.end(ctx)
	defer s.recoverFrom(ctx)
	r := receiveds.Get().(*received)
	defer r.end()
	in, req := &r.head, &r.request
	in.texts = &s.texts
	refused := in.read(&ctx.Request.Header)
	if refused == nil && s.config.ForwardPath == "normalized" {
		refused = in.normalize()
	}
	if refused != nil {
		s.refuse(ctx, refused, "")
		return
	}
	last := in.lastHop()
	in.countHop()
	s.describe(req, ctx, in)
	line.request(req, in.http10, s.discretion)
	if in.length == 0 {
		req.ReadBody = readNothing
	} else {
		b := &r.body // which is zero but for its room
		b.server, b.ctx, b.conn, b.length, b.announced, b.await = s, ctx, ctx.Conn(), in.length, in.trailers, await
		req.ReadBody = r.readAll
		req.BodyHeld = await != nil && in.length <= int64(s.config.MaxBody)
	}
	if last {
		s.writeOwn(ctx, in.lastHopAnswer(req.ID))
		return
	}

	match, off, reply := s.gate.Route(req)
	defer req.Shadow.End()
	switch {
	case reply != nil:
		s.writeReply(ctx, req, reply)
	case match.Rule != nil:
		// What the client does meanwhile does not end it.
		s.writeReply(ctx, req, s.gate.Serve(req, match))
		r.over = true // the gate keeps nothing of it, and the answer is not of it
	case !off && s.config.Unmatched == "reject":
		s.writeOwn(ctx, notFound(req))
	case !validEscapes(in.path):
		// The rules have their own say about such paths, if they could match.
		s.refuse(ctx, refusePath, req.ID)
	default:
		s.pass(ctx, r)
		line.reply(req.Shadow.Reply())
		// A body, or a shadow, may still be looked at while the answer is on its way.
		r.over = in.length == 0 && req.Shadow == nil && !ctx.Response.IsBodyStream() && !ctx.Hijacked()
	}
}

func notFound(req *gate.Request) decision.Answer {
	return decision.Problem{
		Type:      "about:blank",
		Title:     http.StatusText(http.StatusNotFound),
		Status:    http.StatusNotFound,
		Detail:    "No rule of the gate is for this request, and server.unmatched is reject.",
		RequestID: req.ID,
	}.Answer()
}
