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

// Free gives the memory of a stream whose Body was closed back to the next one. Nothing
// of the stream may be used afterwards, its Header among it. It need not be called.
func (s *Stream) Free() {
	if p, ok := s.Body.(*passing); ok && p.closed {
		*p = passing{}
		passings.Put(p)
	}
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
// request before its end. Time-outs are Options.Timeout for a short request and
// the head of its answer, or for each write of a long one and for the head; then
// Options.IdleTimeout for each read: a stream of events may pause for longer than a
// page may take.
//
// A refusal (a status of 300 and up) ends the request; after any other answer the
// rest of it is sent first, and the answer goes on when that is done.
//
// The error is a *RequestBodyError or a *gate.BackendError. Pass does not use the
// breaker: slow pages must not stop bookings.
func (c *Client) Pass(r *gate.Request, body io.Reader, length int64) (*Stream, error) {
	began := time.Now()
	p := passings.Get().(*passing)
	p.client, p.pool, p.body, p.length, p.answer.texts = c, c.open, body, length, &c.texts
	err := p.pass(r, began)
	if c.observe != nil {
		c.observe(Exchange{Reused: p.reused, Took: time.Since(began), Err: err})
	}
	if err != nil {
		return nil, err
	}
	return &p.stream, nil
}

// passing is an ungated exchange: a request whose body comes from the client, and its
// answer, whose body goes there. All of it is one piece of memory.
type passing struct {
	exchange
	body     io.Reader           // of the request
	length   int64               // of body
	short    []byte              // the whole body, if it is short
	early    *listening[*answer] // nil: the body is short
	complete bool                // the whole request was sent

	answer  answer
	content body // of the answer
	stream  Stream
	keep    bool // the connection, when content has ended
	closed  bool
}

var passings = sync.Pool{New: func() any { return new(passing) }}

func (p *passing) pass(r *gate.Request, now time.Time) error {
	if p.body == nil {
		p.length = 0
	}
	if p.length > 0 && p.length <= joinBelow {
		if err := p.prefetch(); err != nil {
			return err
		}
		now = time.Now()
	}
	if err := p.connect(now, now.Add(p.client.connect)); err != nil {
		return err
	}
	if err := p.ask(r); err != nil {
		p.end(false)
		if _, ok := err.(*RequestBodyError); ok {
			return err
		}
		return p.failure(err)
	}
	p.begin(!p.complete)
	return nil
}

// begin makes the answer whose head has come the stream.
func (p *passing) begin(early bool) {
	a := &p.answer
	p.conn.patience = p.client.idle
	p.keep = !a.closes && !early
	p.in.lengthenFor(a.framing)
	p.content.begin(p.in.Reader, a.framing)
	if a.framing == chunked {
		p.content.announced = TrailerNames(a.fields)
	}
	p.stream = Stream{Status: a.status, Header: EndToEnd(a.fields), Length: -1, Body: p, Early: early}
	if a.framing >= 0 || a.framing == noBody {
		p.stream.Length = max(a.framing, 0)
	}
}

// Read reads the answer's body.
func (p *passing) Read(b []byte) (int, error) { return p.content.Read(b) }

// Close gives the connection back if the answer was read to its end.
func (p *passing) Close() error {
	if !p.closed {
		p.closed = true
		p.end(p.keep && p.content.atEnd())
	}
	return nil
}

// Announced and Trailers are those of Trailing.
func (p *passing) Announced() []string     { return p.content.announced }
func (p *passing) Trailers() []rules.Field { return p.content.trailers }

// prefetch reads a short body before a connection is taken, so that a client that
// sends it slowly, or not at all, keeps no connection to the backend.
func (p *passing) prefetch() error {
	p.short = make([]byte, p.length)
	if _, err := io.ReadFull(p.body, p.short); err != nil {
		return &RequestBodyError{Err: unexpected(err)}
	}
	return nil
}

// ask sends the request and reads the head of its answer.
func (p *passing) ask(r *gate.Request) error {
	if p.length == 0 || p.short != nil {
		return p.askAtOnce(r)
	}
	return p.askAtLength(r)
}

// askAtOnce is ask for a request that is at hand. It takes no time to write, so that
// one deadline does for both ways.
func (p *passing) askAtOnce(r *gate.Request) error {
	if err := p.conn.SetDeadline(p.conn.taken.Add(p.client.timeout)); err != nil {
		return err
	}
	wrote := p.write(r, p.short, p.length)
	p.complete = wrote == nil
	if wrote != nil && (p.sent == 0 || isTimeout(wrote)) {
		_ = p.conn.SetReadDeadline(longAgo) // what was not heard by now is not waited for
	}
	err := p.answer.read(&p.in, r.Method)
	if wrote != nil && (p.sent == 0 || err != nil) {
		return wrote
	}
	return err
}

// askAtLength is ask for a request that comes while it is sent.
func (p *passing) askAtLength(r *gate.Request) error {
	if err := p.conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	read := func() (*answer, error) { return &p.answer, p.answer.read(&p.in, r.Method) }
	// After a good answer the rest is sent all the same.
	refused := func(a *answer) bool { return a.status >= 300 }
	p.early = listen(p.conn, p.body, read, refused)
	wrote := p.send(r)
	p.complete = p.complete && wrote == nil
	over := p.over()
	_, ofClient := wrote.(*RequestBodyError)
	patience := time.Now().Add(p.client.timeout)
	if ofClient || wrote != nil && (p.sent == 0 || isTimeout(wrote)) {
		patience = longAgo // what was not heard by now is not waited for
	}
	_ = p.conn.SetReadDeadline(patience) // fails on a closed connection; so does the reading
	_, err := p.early.wait()
	if wrote != nil && (p.sent == 0 || (ofClient || err != nil) && !over) {
		return wrote
	}
	return err
}

// over reports that the rest of the request is of no use.
func (p *passing) over() bool { return p.early.over.Load() }

// send writes head and body, or as much as the backend wants to read.
func (p *passing) send(r *gate.Request) error {
	framing := p.length
	if framing == Unknown {
		framing = chunked
	}
	if err := p.refreshWrite(); err != nil {
		return err
	}
	if err := p.writeStart(r, framing); err != nil {
		return err
	}
	buf := copyBuffers.Get().(*[]byte)
	defer copyBuffers.Put(buf)
	for left := p.length; ; {
		room := (*buf)[chunkRoom : len(*buf)-2]
		if left > 0 {
			room = room[:min(left, int64(len(room)))]
		}
		n, err := p.body.Read(room)
		if n > 0 {
			if err := p.writePart(*buf, n); err != nil {
				return err
			}
			left -= int64(n)
		}
		switch {
		case err == io.EOF && p.length == Unknown:
			p.complete = true
			return p.writeBytes(appendTrailers(nil, p.body))
		case left == 0:
			p.complete = true
			return nil
		case err != nil:
			return &RequestBodyError{Err: unexpected(err)}
		}
	}
}

// writeStart sends the head, with the names of the trailers that may come.
func (p *passing) writeStart(r *gate.Request, framing int64) error {
	t, ok := p.body.(Trailing)
	if !ok || framing != chunked || len(t.Announced()) == 0 {
		return p.write(r, nil, framing)
	}
	return p.writeBytes(appendHead(nil, r, p.client.target.authority, framing, t.Announced()...))
}

// chunkRoom is kept free before the data for the line with its size.
const chunkRoom = len("ffffffff\r\n")

var copyBuffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// writePart sends buf[chunkRoom:chunkRoom+n], framed as a chunk where needed.
func (p *passing) writePart(buf []byte, n int) error {
	if err := p.refreshWrite(); err != nil {
		return err
	}
	part := buf[chunkRoom : chunkRoom+n]
	if p.length == Unknown {
		var line [chunkRoom]byte
		size := append(strconv.AppendInt(line[:0], int64(n), 16), '\r', '\n')
		start := chunkRoom - len(size)
		copy(buf[start:], size)
		part = append(buf[start:chunkRoom+n], '\r', '\n')
	}
	return p.writeBytes(part)
}

// errOver: the rest of the request is not sent, because of what has come from the
// backend.
var errOver = errors.New("the rest of the request is of no use")

// refreshWrite lets the next write take its time.
func (p *passing) refreshWrite() error {
	if err := p.conn.SetWriteDeadline(time.Now().Add(p.client.timeout)); err != nil {
		return err
	}
	if p.over() { // asked now, lest this deadline undo the one that ends the writing
		return errOver
	}
	return nil
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
