package edge

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/upstream"
	"github.com/slotgate/slotgate/rules"
)

// requestBody is a client's body, which is read whole (gated) or as a stream.
type requestBody struct {
	server *Server
	ctx    *fasthttp.RequestCtx
	conn   net.Conn
	length int64 // as head.length

	data    []byte
	room    []byte // of data, where it fits
	taken   int64  // of the budget
	started bool
	ended   bool // read to its end
	idle    bool // each read may take idle_timeout; else all of them read_timeout
	failed  error
	count   int64

	announced []string // trailers
	// await has the client send the body; nil: it does without being asked.
	await func() error
	// interrupted: nobody needs the rest. Set before the read deadline.
	interrupted atomic.Bool
}

// Interrupt is that of upstream.Interrupter.
func (b *requestBody) Interrupt() {
	b.interrupted.Store(true)
	_ = b.conn.SetReadDeadline(time.Unix(1, 0)) // closed: then Read fails as well
}

// Announced and Trailers are those of upstream.Trailing.
func (b *requestBody) Announced() []string { return b.announced }

func (b *requestBody) Trailers() []rules.Field {
	if !b.ended || len(b.announced) == 0 {
		return nil
	}
	var trailers []rules.Field
	for line := range strings.SplitSeq(string(b.ctx.Request.Header.TrailerHeader()), "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		if slices.ContainsFunc(b.announced, func(n string) bool { return strings.EqualFold(n, name) }) {
			trailers = append(trailers, rules.Field{Name: name, Value: strings.Trim(value, " \t")})
		}
	}
	return trailers
}

// readNothing is readAll of a request without a body.
func readNothing() ([]byte, error) { return nil, nil }

// done gives the memory back, and ends the connection if the body was not read to
// its end.
func (b *requestBody) done() {
	if b.taken > 0 {
		b.server.budget.Give(b.taken)
		b.taken = 0
	}
	if b.length != 0 && !b.ended {
		endConn(b.ctx)
	}
}

// readAll is gate.Request.ReadBody.
func (b *requestBody) readAll() ([]byte, error) {
	if !b.started {
		b.started = true
		b.failed = b.fill(int64(b.server.config.MaxBody))
	}
	if b.failed != nil {
		return nil, b.failed
	}
	return b.data, nil
}

// stream is the body for a request that passes ungated: what is still to come, or
// what has been read to find that out.
func (b *requestBody) stream() io.Reader {
	if b.started {
		return bytes.NewReader(b.data)
	}
	b.idle = true
	return b
}

// firstChunk is reserved at most before the first bytes of a body come: who announces
// many long bodies and sends none takes no room from others.
const firstChunk = 4 << 10

func (b *requestBody) fill(limit int64) error {
	if b.length == 0 {
		return nil
	}
	if b.length > limit {
		return tooLarge(limit)
	}
	first := min(firstChunk, limit+1)
	if b.length > 0 {
		first = min(first, b.length)
	}
	if !b.reserve(first) {
		return gate.ErrOverloaded
	}
	for {
		n, err := b.Read(b.data[len(b.data):cap(b.data)])
		b.data = b.data[:len(b.data)+n]
		switch {
		case int64(len(b.data)) > limit:
			return tooLarge(limit)
		case err == io.EOF:
			return nil
		case err != nil:
			return b.failure(err)
		case len(b.data) < cap(b.data):
			continue
		}
		next := min(2*int64(cap(b.data)), limit+1)
		if b.length > 0 {
			next = min(next, b.length)
		}
		if !b.reserve(next) {
			return gate.ErrOverloaded
		}
	}
}

// failure is what the gate is told of a body that did not come whole. The answer is
// the gate's, for the rule's words are in it; the kind is counted here.
func (b *requestBody) failure(err error) error {
	kind := gate.ErrClientGone
	if refused := refusalOf(err); refused != nil {
		b.server.meter.EdgeRefusal(refused.kind)
		kind = gate.ErrBadBody
		if refused == refuseTimeout {
			kind = gate.ErrSlowBody
		}
	}
	return fmt.Errorf("%w: %w", kind, err)
}

func tooLarge(limit int64) error {
	return &rules.Refusal{
		Kind:   rules.RefuseTooLarge,
		Detail: fmt.Sprintf("The body is longer than the %d bytes that are allowed here.", limit),
	}
}

func (b *requestBody) reserve(size int64) bool {
	if !b.server.budget.Take(size - b.taken) {
		return false
	}
	b.taken = size
	if size <= int64(cap(b.room)) {
		b.data = append(b.room[:0:size], b.data...)
		return true
	}
	grown := make([]byte, len(b.data), size)
	copy(grown, b.data)
	b.data = grown
	return true
}

// spare is memory for the next body: that of this one, at which nobody looks any more.
func (b *requestBody) spare() []byte {
	if n := cap(b.data); n > cap(b.room) && n <= firstChunk {
		return b.data[:0]
	}
	return b.room
}

// Read returns io.EOF only at the end that the framing tells.
func (b *requestBody) Read(p []byte) (int, error) {
	if b.ended {
		return 0, io.EOF
	}
	if b.await != nil {
		await := b.await
		b.await = nil
		// What came before the client was asked took no time of its own.
		if err := b.allow(b.server.config.ReadTimeout); err != nil {
			return 0, err
		}
		if err := await(); err != nil {
			return 0, err
		}
	}
	if b.idle {
		if err := b.allow(b.server.config.IdleTimeout); err != nil {
			return 0, err
		}
	}
	n, err := b.ctx.RequestBodyStream().Read(p)
	b.count += int64(n)
	switch {
	case b.length == upstream.Unknown:
		b.ended = err == io.EOF
	case b.count == b.length:
		b.ended = true
		err = io.EOF
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// allow gives the client time to send.
func (b *requestBody) allow(d time.Duration) error {
	if err := b.conn.SetReadDeadline(time.Now().Add(d)); err != nil {
		return err
	}
	if b.interrupted.Load() { // asked now, lest this deadline undo that of Interrupt
		return os.ErrDeadlineExceeded
	}
	return nil
}

// refusalOf tells a slow client (408) and a wrong one (400) from one that has
// gone, for which there is no answer: nil.
func refusalOf(err error) *refusal {
	var netErr net.Error
	switch {
	case errors.As(err, &netErr) && netErr.Timeout():
		return refuseTimeout
	case errors.As(err, &netErr), errors.Is(err, io.ErrUnexpectedEOF):
		return nil
	}
	return refuseBody
}
