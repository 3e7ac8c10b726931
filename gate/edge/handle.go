package edge

import (
	"net/http"

	"github.com/valyala/fasthttp"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

// handle is the way of every request.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	if !connOf(ctx.Conn()).goOn(nil) {
		s.answer(ctx, nil)
	}
}

// answer prepares the answer in ctx. await, if set, is called before the first
// byte of the body is read.
func (s *Server) answer(ctx *fasthttp.RequestCtx, await func() error) {
	defer s.recoverFrom(ctx)
	in, refused := readHead(&ctx.Request.Header)
	if refused == nil && s.config.ForwardPath == "normalized" {
		refused = in.normalize()
	}
	if refused != nil {
		s.refuse(ctx, refused, "")
		return
	}
	req := s.request(ctx, in)
	body := &requestBody{server: s, ctx: ctx, conn: ctx.Conn(), length: in.length, announced: in.trailers, await: await}
	defer body.done()
	req.ReadBody = body.readAll

	match, off, reply := s.gate.Route(req)
	switch {
	case body.refused != nil:
		s.refuse(ctx, body.refused, req.ID)
	case reply != nil:
		s.writeReply(ctx, req, reply)
	case match.Rule != nil:
		s.serve(ctx, req, match, body)
	case !off && s.config.Unmatched == "reject":
		s.writeOwn(ctx, notFound(req))
	case !validEscapes(in.path):
		// The rules have their own say about such paths, if they could match.
		s.refuse(ctx, refusePath, req.ID)
	default:
		s.pass(ctx, req, in, body)
	}
}

// serve is the way of a gated request. What the client does meanwhile does not
// end it.
func (s *Server) serve(ctx *fasthttp.RequestCtx, req *gate.Request, match rules.Match, body *requestBody) {
	reply := s.gate.Serve(req, match)
	if body.refused != nil {
		release(reply)
		s.refuse(ctx, body.refused, req.ID)
		return
	}
	s.writeReply(ctx, req, reply)
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

func release(reply *gate.Reply) {
	if reply.Release != nil {
		reply.Release()
	}
}
