package upstream

import (
	"errors"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/rules"
)

// Unknown is the length of a request body that is sent in chunks.
const Unknown int64 = -1

// Stream is an answer whose body is still on its way.
type Stream struct {
	Status int
	Header []rules.Field // end-to-end, in order
	// Length of Body in bytes; -1 when only its end will tell.
	Length int64
	// Body must be closed, also when it is empty or was read to its end. A body
	// that the backend cut ends in io.ErrUnexpectedEOF, never in io.EOF. It is a
	// Trailing.
	Body io.ReadCloser
	// Early: the backend answered before it had read the whole request, the rest
	// of which was not read from the request's body either.
	Early bool
}

// RequestBodyError is a failure to read the client's body; the backend is not to
// blame.
type RequestBodyError struct{ Err error }

func (e *RequestBodyError) Error() string { return "read the request body: " + e.Err.Error() }
func (e *RequestBodyError) Unwrap() error { return e.Err }

// Pass streams an ungated request to the backend, once, and returns when the head
// of the answer is there. Memory stays constant whatever the lengths. length is
// that of body in bytes, or Unknown; a nil body is none, a Trailing one is sent
// with its trailers, an Interrupter is interrupted when the backend has refused the
// request before its end. Time-outs are Options.Timeout for each write and for the
// head, then Options.IdleTimeout for each read: a stream of events may pause for
// longer than a page may take.
//
// A refusal (a status of 300 and up) ends the request; after any other answer the
// rest of it is sent first, and the answer goes on when that is done.
//
// The error is a *RequestBodyError or a *gate.BackendError. Pass does not use the
// breaker: slow pages must not stop bookings.
func (c *Client) Pass(r *gate.Request, body io.Reader, length int64) (*Stream, error) {
	began := time.Now()
	e := exchange{client: c, pool: c.open}
	s, err := c.pass(&e, r, body, length)
	c.observe(Exchange{Reused: e.reused, Took: time.Since(began), Err: err})
	return s, err
}

func (c *Client) pass(e *exchange, r *gate.Request, body io.Reader, length int64) (*Stream, error) {
	up := upload{exchange: e, body: body, length: length}
	if body == nil {
		up.length = 0
	}
	if err := up.prefetch(); err != nil {
		return nil, err
	}
	if err := e.connect(time.Now().Add(c.connect)); err != nil {
		return nil, err
	}
	a, err := up.run(r)
	if err != nil {
		e.end(false)
		if _, ok := err.(*RequestBodyError); ok {
			return nil, err
		}
		return nil, e.failure(err)
	}
	return e.stream(a, &up), nil
}

// stream is the answer whose head has come. up is nil for a request without a
// body.
func (e *exchange) stream(a *answer, up *upload) *Stream {
	s := &Stream{Status: a.status, Length: -1, Early: up != nil && !up.complete}
	if a.framing >= 0 || a.framing == noBody {
		s.Length = max(a.framing, 0)
	}
	e.conn.patience = e.client.idle
	d := &download{exchange: *e, body: newBody(e.br, a.framing), keep: !a.closes && !s.Early}
	if a.framing == chunked {
		d.announced = TrailerNames(a.fields)
	}
	s.Body = d
	s.Header = EndToEnd(a.fields)
	return s
}

// upload sends a request whose body comes from the client.
type upload struct {
	*exchange
	body     io.Reader
	length   int64
	short    []byte              // the whole body, if it is short
	early    *listening[*answer] // nil: the body is short
	complete bool                // everything was sent
}

// prefetch reads a short body before a connection is taken, so that a client that
// sends it slowly, or not at all, keeps no connection to the backend.
func (up *upload) prefetch() error {
	if up.length <= 0 || up.length > joinBelow {
		return nil
	}
	up.short = make([]byte, up.length)
	if _, err := io.ReadFull(up.body, up.short); err != nil {
		return &RequestBodyError{Err: unexpected(err)}
	}
	return nil
}

// run sends the request and reads the head of its answer.
func (up *upload) run(r *gate.Request) (*answer, error) {
	read := func() (*answer, error) { return readAnswer(up.br, r.Method) }
	if up.length != 0 && up.short == nil {
		// After a good answer the rest is sent all the same.
		refused := func(a *answer) bool { return a.status >= 300 }
		up.early = listen(up.conn, up.body, read, refused)
		read = up.early.wait
	}
	wrote := up.send(r)
	up.complete = up.complete && wrote == nil
	over := up.over()
	_, ofClient := wrote.(*RequestBodyError)
	patience := time.Now().Add(up.client.timeout)
	if ofClient || isTimeout(wrote) || wrote != nil && up.sent == 0 {
		patience = longAgo // what was not heard by now is not waited for
	}
	if err := up.conn.SetReadDeadline(patience); err != nil {
		return nil, err
	}
	a, err := read()
	if wrote != nil && (up.sent == 0 || (ofClient || err != nil) && !over) {
		return nil, wrote
	}
	return a, err
}

// over reports that the rest of the request is of no use.
func (up *upload) over() bool { return up.early != nil && up.early.over.Load() }

// send writes head and body, or as much as the backend wants to read.
func (up *upload) send(r *gate.Request) error {
	framing := up.length
	if framing == Unknown {
		framing = chunked
	}
	if err := up.refreshWrite(); err != nil {
		return err
	}
	if err := up.writeStart(r, framing); err != nil {
		return err
	}
	if up.length == 0 || up.short != nil {
		up.complete = true
		return nil
	}
	buf := copyBuffers.Get().(*[]byte)
	defer copyBuffers.Put(buf)
	for left := up.length; ; {
		room := (*buf)[chunkRoom : len(*buf)-2]
		if left > 0 {
			room = room[:min(left, int64(len(room)))]
		}
		n, err := up.body.Read(room)
		if n > 0 {
			if err := up.writePart(*buf, n); err != nil {
				return err
			}
			left -= int64(n)
		}
		switch {
		case err == io.EOF && up.length == Unknown:
			up.complete = true
			return up.writeBytes(appendTrailers(nil, up.body))
		case left == 0:
			up.complete = true
			return nil
		case err != nil:
			return &RequestBodyError{Err: unexpected(err)}
		}
	}
}

// writeStart sends the head, with the names of the trailers that may come, and the
// body if it is short.
func (up *upload) writeStart(r *gate.Request, framing int64) error {
	t, ok := up.body.(Trailing)
	if !ok || framing != chunked || len(t.Announced()) == 0 {
		return up.write(r, up.short, framing)
	}
	return up.writeBytes(appendHead(nil, r, up.client.target.authority, framing, t.Announced()...))
}

// chunkRoom is kept free before the data for the line with its size.
const chunkRoom = len("ffffffff\r\n")

var copyBuffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// writePart sends buf[chunkRoom:chunkRoom+n], framed as a chunk where needed.
func (up *upload) writePart(buf []byte, n int) error {
	if err := up.refreshWrite(); err != nil {
		return err
	}
	part := buf[chunkRoom : chunkRoom+n]
	if up.length == Unknown {
		var line [chunkRoom]byte
		size := append(strconv.AppendInt(line[:0], int64(n), 16), '\r', '\n')
		start := chunkRoom - len(size)
		copy(buf[start:], size)
		part = append(buf[start:chunkRoom+n], '\r', '\n')
	}
	return up.writeBytes(part)
}

// errOver: the rest of the request is not sent, because of what has come from the
// backend.
var errOver = errors.New("the rest of the request is of no use")

// refreshWrite lets the next write take its time.
func (up *upload) refreshWrite() error {
	if err := up.conn.SetWriteDeadline(time.Now().Add(up.client.timeout)); err != nil {
		return err
	}
	if up.over() { // asked now, lest this deadline undo the one that ends the writing
		return errOver
	}
	return nil
}

// download is the body of a streamed answer.
type download struct {
	exchange
	*body
	keep   bool
	closed bool
}

// Close gives the connection back if the answer was read to its end.
func (d *download) Close() error {
	if !d.closed {
		d.closed = true
		d.end(d.keep && d.atEnd())
	}
	return nil
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Announced and Trailers are those of Trailing.
func (d *download) Announced() []string     { return d.announced }
func (d *download) Trailers() []rules.Field { return d.trailers }
