package edge

import (
	"io"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/accesslog"
	"github.com/slotgate/slotgate/rules"
)

// AccessLog takes a line for each request; see package accesslog. It is safe for
// concurrent use, does not block and does not keep the entry.
type AccessLog interface {
	On() bool
	Add(*accesslog.Entry)
}

// Discretion says what a log may show of a request. It is safe for concurrent use.
type Discretion interface {
	// LoggedPath is what is shown of a path.
	LoggedPath(path string) string
	// Logs reports whether a header field may be shown.
	Logs(field string) bool
}

// statusGone is nginx's word for a client that went away before it had an answer.
const statusGone = 499

// line is what the access log is to say of the request that a connection is busy with.
// It is written when the last byte of the answer has been handed to the connection.
type line struct {
	accesslog.Entry
	log AccessLog
	// later: the answer's body, or another protocol, goes on when the handler has
	// returned.
	later bool
}

// beginLine starts the line of a request, if there is an access log.
func (s *Server) beginLine(ctx *fasthttp.RequestCtx) *line {
	c := connOf(ctx.Conn())
	if c == nil {
		return nil
	}
	if s.access == nil || !s.access.On() {
		c.line = nil
		return nil
	}
	if c.line == nil {
		c.line = new(line)
	}
	*c.line = line{log: s.access, Entry: accesslog.Entry{Began: time.Now(), Client: clientAddr(ctx.RemoteAddr())}}
	return c.line
}

// lineFor is the line of the request that ctx is about; nil without an access log.
func lineFor(ctx *fasthttp.RequestCtx) *line {
	if c := connOf(ctx.Conn()); c != nil {
		return c.line
	}
	return nil
}

// request takes what may be shown of a request that was understood.
func (l *line) request(r *gate.Request, http10 bool, d Discretion) {
	if l == nil {
		return
	}
	l.Client, l.Method, l.Path, l.Protocol = r.Client, r.Method, d.LoggedPath(r.Path), "HTTP/1.1"
	if http10 {
		l.Protocol = "HTTP/1.0"
	}
	if d.Logs("X-Request-Id") {
		l.RequestID = r.ID
	}
	if d.Logs("User-Agent") {
		l.UserAgent = fieldValue(r.Header, "User-Agent")
	}
	if d.Logs("Referer") {
		l.Referer = refererPath(fieldValue(r.Header, "Referer"))
	}
}

// reply takes what was decided; nil: nothing was.
func (l *line) reply(r *gate.Reply) {
	if l == nil || r == nil {
		return
	}
	l.Rule, l.Decision, l.Mode, l.Shadow = r.Rule, string(r.Decision), string(r.Mode), string(r.Shadow)
	if r.Outcome != rules.NoOutcome {
		l.Outcome = r.Outcome.String()
	}
}

// refused takes why no rule saw the request.
func (l *line) refused(kind string) {
	if l != nil {
		l.Refusal = kind
	}
}

// gone notes that the client went away and gets no answer.
func (l *line) gone() {
	if l != nil {
		l.Status = statusGone
	}
}

// drop leaves the line out: there was no request to answer.
func (l *line) drop() {
	if l != nil {
		l.log = nil
	}
}

// end writes the line when the handler returns, unless there is more to come.
func (l *line) end(ctx *fasthttp.RequestCtx) {
	if l == nil || l.later || l.log == nil {
		return
	}
	if l.Status == 0 {
		l.Status = ctx.Response.StatusCode()
		switch {
		case ctx.IsHead():
		case ctx.Response.IsBodyStream():
			l.Bytes = int64(ctx.Response.Header.ContentLength())
		default:
			l.Bytes = int64(len(ctx.Response.Body()))
		}
	}
	l.add()
}

func (l *line) add() {
	l.Took = time.Since(l.Began)
	l.log.Add(&l.Entry)
	l.log = nil
}

// stream has the line wait for the end of a body, and counts it.
func (l *line) stream(status int, body io.ReadCloser) io.ReadCloser {
	if l == nil {
		return body
	}
	l.later, l.Status = true, status
	return &countedBody{ReadCloser: body, line: l}
}

// countedBody ends the line with the body. fasthttp closes it once it has been
// written, or could not be.
type countedBody struct {
	io.ReadCloser
	line *line
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.line.Bytes += int64(n)
	return n, err
}

func (b *countedBody) Close() error {
	if b.line.log != nil {
		b.line.add()
	}
	return b.ReadCloser.Close()
}

// hijacked has the line wait for done, which is called when the connection has ended.
func (l *line) hijacked(status int) (done func(bytes int64)) {
	if l == nil {
		return func(int64) {}
	}
	l.later, l.Status = true, status
	return func(bytes int64) {
		l.Bytes = bytes
		l.add()
	}
}

// requestID is what the process log shows of it.
func (s *Server) requestID(r *gate.Request) slog.Attr {
	if s.discretion != nil && !s.discretion.Logs("X-Request-Id") {
		return slog.Attr{}
	}
	return slog.String("request_id", r.ID)
}

// logRefusedConn writes the line of a connection that was not served.
func (s *Server) logRefusedConn(client netip.Addr) {
	if s.access != nil && s.access.On() {
		s.access.Add(&accesslog.Entry{Began: time.Now(), Client: client, Status: refuseConns.status, Refusal: refuseConns.kind})
	}
}

// refererPath is a Referer without its query, which may hold what the page was
// called with, and nothing where it names a user.
func refererPath(referer string) string {
	if i := strings.IndexAny(referer, "?#;"); i >= 0 {
		referer = referer[:i]
	}
	_, rest, _ := strings.Cut(referer, "//")
	authority, _, _ := strings.Cut(rest, "/")
	if strings.Contains(authority, "@") {
		return ""
	}
	return referer
}
