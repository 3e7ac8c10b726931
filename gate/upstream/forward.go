package upstream

import (
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
	e := forwardings.Get().(*forwarding)
	e.client, e.pool, e.answer.texts = c, c.gated, &c.texts
	if e.free == nil {
		e.free = e.release
	}
	err := c.tryForward(e, f, began)
	if c.observe != nil {
		c.observe(Exchange{Gated: true, Reused: e.reused, Took: time.Since(began), Err: err})
	}
	if err != nil {
		e.release()
		return nil, err
	}
	return &e.result, nil
}

// tryForward forwards unless the breaker is open. A forward that panics ends, too: a probe
// without a result would keep the breaker half-open for ever.
func (c *Client) tryForward(e *forwarding, f *gate.Forward, now time.Time) error {
	tried := false
	_, err := c.breaker.cb.Execute(func() (struct{}, error) {
		tried = true
		return struct{}{}, e.forward(f, now)
	})
	if !tried {
		return &gate.BackendError{Failure: gate.BreakerOpen, RetryAfter: c.breaker.retryAfter(err), Err: err}
	}
	return err
}

var errTooLate = errors.New("the connection came too late for the request to be sent")

// exchange is one request and its answer on one connection.
type exchange struct {
	client *Client
	pool   *pool
	conn   *conn
	in     input // of conn
	sent   int64 // bytes of the request that were written
	reused bool
}

// connect gets a connection that may be written to, within connect_timeout.
func (e *exchange) connect(now, deadline time.Time) error {
	conn, err := e.pool.get(now, earlier(deadline, now.Add(e.client.connect)))
	if errors.Is(err, errPoolFull) {
		return &gate.BackendError{Failure: gate.NoRoom, Err: err}
	}
	if err != nil {
		return &gate.BackendError{Failure: gate.NotConnected, Err: err}
	}
	e.conn, e.reused = conn, conn.reused
	e.in = input{Reader: conn.in, conn: conn, readers: &e.client.readers}
	return nil
}

// end gives the connection back or closes it.
func (e *exchange) end(reusable bool) {
	e.in.free()
	e.conn.patience = 0
	if reusable {
		e.pool.put(e.conn)
	} else {
		e.pool.discard(e.conn)
	}
}

// forwarding is a gated exchange. All of it is one piece of memory.
type forwarding struct {
	exchange
	answer answer
	body   body    // of the answer
	whole  *buffer // what was read of body; nil: nothing
	result gate.BackendAnswer
	free   func() // that of release, bound once
}

var forwardings = sync.Pool{New: func() any { return new(forwarding) }}

// release gives the memory back, that of the result too.
func (e *forwarding) release() {
	if e.whole != nil {
		e.whole.release()
	}
	free := e.free
	*e = forwarding{}
	e.free = free
	forwardings.Put(e)
}

func (e *forwarding) forward(f *gate.Forward, now time.Time) error {
	if err := e.connect(now, f.SendBy); err != nil {
		return err
	}
	now = time.Now()
	if now.After(f.SendBy) {
		e.end(false)
		return &gate.BackendError{Failure: gate.NotConnected, Err: errTooLate}
	}
	whole, err := e.send(f, now.Add(f.Timeout))
	if err != nil {
		e.end(false)
		return e.failure(err)
	}
	e.end(!e.answer.closes)
	e.whole = whole
	e.result = gate.BackendAnswer{
		Response: rules.Response{Status: e.answer.status, Header: EndToEnd(e.answer.fields), Body: whole.b},
		Release:  e.free,
	}
	return nil
}

// send writes a request with a complete body and reads its whole answer. A backend
// that answers, and closes, before it has read everything has answered.
func (e *forwarding) send(f *gate.Forward, deadline time.Time) (whole *buffer, err error) {
	if err := e.conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	r := f.Request
	var early *listening[*buffer]
	if len(r.Body) > joinBelow {
		isWhole := func(*buffer) bool { return true }
		early = listen(e.conn, nil, func() (*buffer, error) { return e.readWhole(r.Method, f.Limit) }, isWhole)
	}
	wrote := e.write(r, r.Body, int64(len(r.Body)))
	if wrote != nil && e.sent == 0 {
		_ = e.conn.SetReadDeadline(longAgo) // whatever comes now is no answer
	}
	if early != nil {
		whole, err = early.wait()
	} else {
		whole, err = e.readWhole(r.Method, f.Limit)
	}
	switch {
	case err != nil:
		return nil, err
	case wrote != nil && e.sent == 0:
		whole.release()
		return nil, wrote
	}
	e.answer.closes = e.answer.closes || wrote != nil
	return whole, nil
}

// readWhole reads the answer into memory. It closes also where something follows it on
// the connection.
func (e *forwarding) readWhole(method string, limit int64) (*buffer, error) {
	if err := e.answer.read(&e.in, method); err != nil {
		return nil, err
	}
	e.body.begin(e.in.Reader, e.answer.framing)
	whole, err := e.client.readAll(&e.body, e.answer.framing, limit)
	if err != nil {
		return nil, err
	}
	e.answer.closes = e.answer.closes || !e.body.atEnd()
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
