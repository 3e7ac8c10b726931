package edge

import (
	"iter"

	"github.com/valyala/fasthttp"
)

// waiting is a request whose client holds its body back until it is asked for
// (RFC 9110 section 10.1.1). Its handling has come to where the body is needed.
type waiting struct {
	resume func() (struct{}, bool)
	failed error // the body does not come
}

// handleExpect handles a request up to its answer or to where it needs the body,
// whichever comes first: a client that is refused has not sent its body, and got
// no 100 (Continue). fasthttp takes every status but 100 for the answer; after 100
// it calls the handler, or the error handler when no body comes, and either one
// lets the handling go on. Both parts run one after the other, never at once.
func (s *Server) handleExpect(ctx *fasthttp.RequestCtx) int {
	w := &waiting{}
	resume, stop := iter.Pull(func(yield func(struct{}) bool) {
		s.answer(ctx, func() error {
			yield(struct{}{})
			return w.failed
		})
	})
	w.resume = resume
	if _, needsBody := resume(); needsBody {
		connOf(ctx.Conn()).waiting = w
		return fasthttp.StatusContinue
	}
	stop()
	return ctx.Response.StatusCode()
}

// goOn lets the handling of a waiting request go on to its end; false when there
// is none.
func (c *conn) goOn(failed error) bool {
	if c == nil || c.waiting == nil {
		return false
	}
	w := c.waiting
	c.waiting = nil
	w.failed = failed
	w.resume()
	return true
}
