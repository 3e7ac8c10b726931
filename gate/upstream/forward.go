package upstream

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/rules"
)

var _ gate.Backend = (*Client)(nil)

// Forward sends a gated request once and reads the whole answer into memory. See
// gate.Backend.
func (c *Client) Forward(f *gate.Forward) (*gate.BackendAnswer, error) {
	began := time.Now()
	e := exchange{client: c, pool: c.gated}
	a, err := c.tryForward(&e, f)
	c.observe(Exchange{Gated: true, Reused: e.reused, Took: time.Since(began), Err: err})
	if err != nil {
		return nil, err
	}
	return a, nil
}

func (c *Client) tryForward(e *exchange, f *gate.Forward) (answer *gate.BackendAnswer, err error) {
	done, retryAfter, err := c.breaker.allow()
	if err != nil {
		return nil, &gate.BackendError{Failure: gate.BreakerOpen, RetryAfter: retryAfter, Err: err}
	}
	// Reported also when this panics: a probe without a result would keep the
	// breaker half-open for ever.
	result := errNoEnd
	defer func() { done(result) }()
	answer, err = e.forward(f)
	result = err
	return answer, err
}

var (
	errNoEnd   = errors.New("the exchange did not end")
	errTooLate = errors.New("the connection came too late for the request to be sent")
)

// exchange is one request and its answer on one connection.
type exchange struct {
	client *Client
	pool   *pool
	conn   *conn
	br     *bufio.Reader
	sent   int64 // bytes of the request that were written
	reused bool
}

func (e *exchange) forward(f *gate.Forward) (*gate.BackendAnswer, error) {
	if err := e.connect(f.SendBy); err != nil {
		return nil, err
	}
	now := time.Now()
	if now.After(f.SendBy) {
		e.end(false)
		return nil, &gate.BackendError{Failure: gate.NotConnected, Err: errTooLate}
	}
	a, err := e.send(f, now.Add(f.Timeout))
	if err != nil {
		e.end(false)
		return nil, e.failure(err)
	}
	e.end(!a.closes)
	return &gate.BackendAnswer{
		Response: rules.Response{Status: a.status, Header: EndToEnd(a.fields), Body: a.body.b},
		Release:  a.body.free,
	}, nil
}

// connect gets a connection that may be written to.
func (e *exchange) connect(deadline time.Time) error {
	conn, err := e.pool.get(earlier(deadline, time.Now().Add(e.client.connect)))
	if errors.Is(err, errPoolFull) {
		return &gate.BackendError{Failure: gate.NoRoom, Err: err}
	}
	if err != nil {
		return &gate.BackendError{Failure: gate.NotConnected, Err: err}
	}
	e.conn, e.reused = conn, conn.reused
	e.br = e.client.readers.get(conn)
	return nil
}

// end gives the connection back or closes it.
func (e *exchange) end(reusable bool) {
	e.client.readers.put(e.br)
	e.conn.patience = 0
	if reusable {
		e.pool.put(e.conn)
	} else {
		e.pool.discard(e.conn)
	}
}

// wholeAnswer is an answer in memory; closes is also set where something follows
// it on the connection.
type wholeAnswer struct {
	*answer
	body *buffer
}

// send writes a request with a complete body and reads its whole answer. A backend
// that answers, and closes, before it has read everything has answered.
func (e *exchange) send(f *gate.Forward, deadline time.Time) (whole wholeAnswer, err error) {
	if err := e.conn.SetDeadline(deadline); err != nil {
		return whole, err
	}
	r := f.Request
	read := func() (wholeAnswer, error) { return e.readWhole(r.Method, f.Limit) }
	if len(r.Body) > joinBelow {
		isWhole := func(wholeAnswer) bool { return true }
		read = listen(e.conn, nil, read, isWhole).wait
	}
	wrote := e.write(r, r.Body, int64(len(r.Body)))
	if wrote != nil && e.sent == 0 {
		_ = e.conn.SetReadDeadline(longAgo) // whatever comes now is no answer
	}
	switch whole, err = read(); {
	case err != nil:
		return whole, err
	case wrote != nil && e.sent == 0:
		whole.body.free()
		return whole, wrote
	}
	whole.closes = whole.closes || wrote != nil
	return whole, nil
}

func (e *exchange) readWhole(method string, limit int64) (whole wholeAnswer, err error) {
	if whole.answer, err = readAnswer(e.br, method); err != nil {
		return whole, err
	}
	b := newBody(e.br, whole.framing)
	if whole.body, err = e.client.readAll(b, whole.framing, limit); err != nil {
		return whole, err
	}
	whole.closes = whole.closes || !b.atEnd()
	return whole, nil
}

// joinBelow is the size up to which a body is copied behind the head, so that
// both leave in one packet.
const joinBelow = 16 << 10

// write sends the head and, if it is at hand, the body.
func (e *exchange) write(r *gate.Request, body []byte, length int64) error {
	head := headBuffers.Get().(*[]byte)
	defer headBuffers.Put(head)
	*head = appendHead((*head)[:0], r, e.client.target.authority, length)
	if len(body) <= joinBelow {
		*head = append(*head, body...)
		return e.writeBytes(*head)
	}
	if err := e.writeBytes(*head); err != nil {
		return err
	}
	return e.writeBytes(body)
}

func (e *exchange) writeBytes(b []byte) error {
	n, err := e.conn.Write(b)
	e.sent += int64(n)
	return err
}

var headBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 2<<10); return &b }}

// failure says what is known after an exchange that brought no answer.
func (e *exchange) failure(err error) error {
	kind := gate.Broken
	switch {
	case e.sent == 0:
		kind = gate.NotConnected
	case isTimeout(err):
		kind = gate.TimedOut
	}
	if err == io.EOF {
		err = errors.New("the backend closed the connection without an answer")
	}
	return &gate.BackendError{Failure: kind, Err: err}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}
