// Package deadline makes it cheap to give every request on a connection a time-out.
//
// The runtime keeps a timer for each deadline of a connection. A server that sets a new
// one for each request moves timers several times a request, nearly always to a later
// time. A Conn leaves its timer where it is then: when it fires, and the deadline is
// another by now, the timer is moved and the operation goes on. That is once in a
// time-out, and not once in a request.
package deadline

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// Conn is a connection whose deadlines are moved to a later time for next to nothing.
// They end operations exactly when those of a net.Conn would. Like every net.Conn it may
// be used by several goroutines at once.
//
// Setting a deadline on a closed connection may succeed; reading and writing tell.
type Conn struct {
	net.Conn
	read, write timer
}

// New wraps a connection, whose deadlines must not be set but through the Conn from now on.
func New(nc net.Conn) *Conn { return &Conn{Conn: nc} }

// Read is that of net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if n > 0 || err == nil || !c.read.early(err, c.Conn.SetReadDeadline) {
			return n, err
		}
	}
}

// Write is that of net.Conn.
func (c *Conn) Write(p []byte) (int, error) {
	written := 0
	for {
		n, err := c.Conn.Write(p[written:])
		written += n
		if err == nil || !c.write.early(err, c.Conn.SetWriteDeadline) {
			return written, err
		}
	}
}

// CloseWrite shuts down the writing side, where the connection can.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// SetDeadline is that of net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline is that of net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.read.set(t, c.Conn.SetReadDeadline) }

// SetWriteDeadline is that of net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.write.set(t, c.Conn.SetWriteDeadline) }

// timer is one way's. Zero times are no deadline.
type timer struct {
	mu     sync.Mutex
	wanted time.Time // the deadline
	armed  time.Time // what the connection has been told; not after wanted
}

// set makes t the deadline. arm tells the connection.
func (d *timer) set(t time.Time, arm func(time.Time) error) error {
	d.mu.Lock()
	d.wanted = t
	var err error
	if d.armed.IsZero() || t.Before(d.armed) { // else it is moved when it fires
		d.armed = t
		err = arm(t)
	}
	d.mu.Unlock()
	return err
}

// early reports that err is that of a deadline which is not the connection's own any
// more; now it is, and the operation is to go on.
func (d *timer) early(err error, arm func(time.Time) error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.wanted.IsZero() && !time.Now().Before(d.wanted) {
		return false
	}
	d.armed = d.wanted
	return arm(d.wanted) == nil
}
