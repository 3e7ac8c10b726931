package upstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slotgate/slotgate/gate/deadline"
)

// conn is one connection to the backend. It is used by one exchange at a time.
type conn struct {
	net.Conn
	in        *bufio.Reader // of Conn; empty while nobody uses the connection
	taken     time.Time     // when its present use began
	born      time.Time
	idleSince time.Time
	reused    bool
	// patience is how long each read may take; 0: the deadline that is set holds.
	patience time.Duration

	socket syscall.RawConn
	secure bool             // TLS is spoken on the socket
	look   func(fd uintptr) // bound once, so that a look allocates nothing
	looked [1]unix.PollFd
	byte1  [1]byte
}

// dial connects until the latest time, at most for connect_timeout, TLS handshake
// included. A name is resolved each time, and of several addresses, IPv6 and IPv4,
// the first that accepts is taken (RFC 8305).
func (c *Client) dial(latest time.Time) (*conn, error) {
	ctx, cancel := context.WithDeadline(context.Background(), earlier(latest, time.Now().Add(c.connect)))
	defer cancel()
	nc, err := c.dialer.DialContext(ctx, c.target.network, c.target.address)
	if err != nil {
		return nil, fmt.Errorf("connect to the backend: %w", err)
	}
	sc, ok := nc.(syscall.Conn)
	if !ok {
		_ = nc.Close()
		return nil, fmt.Errorf("connect to the backend: a %T has no socket to look at", nc)
	}
	socket, err := sc.SyscallConn()
	if err != nil {
		_ = nc.Close()
		return nil, fmt.Errorf("connect to the backend: %w", err)
	}
	nc = deadline.New(nc)
	if c.target.tls != nil {
		secure := tls.Client(nc, c.target.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = nc.Close()
			return nil, fmt.Errorf("TLS handshake with the backend: %w", err)
		}
		nc = secure
	}
	return newConn(nc, socket, c.target.tls != nil, c.readers.longest), nil
}

func newConn(nc net.Conn, socket syscall.RawConn, secure bool, maxHeader int) *conn {
	c := &conn{Conn: nc, born: time.Now(), socket: socket, secure: secure}
	c.in = bufio.NewReaderSize(c, min(shortHead, maxHeader))
	c.look = func(fd uintptr) {
		c.looked[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
		if _, err := unix.Poll(c.looked[:], 0); err != nil {
			c.looked[0].Revents = unix.POLLERR
		}
	}
	return c
}

func (c *conn) Read(p []byte) (int, error) {
	if c.patience > 0 {
		if err := c.SetReadDeadline(time.Now().Add(c.patience)); err != nil {
			return 0, err
		}
	}
	return c.Conn.Read(p)
}

// quiet reports that the connection is open and has nothing to read.
func (c *conn) quiet() bool {
	if c.in.Buffered() > 0 || c.readable() {
		return false
	}
	if !c.secure {
		return true
	}
	// TLS may have taken more from the socket than the last answer needed. With
	// a deadline in the past, Read returns such bytes and never waits.
	if c.SetReadDeadline(time.Unix(1, 0)) != nil {
		return false
	}
	n, err := c.Read(c.byte1[:])
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && c.SetReadDeadline(time.Time{}) == nil
}

// readable reports, without waiting, that a read of the socket would return at
// once: with data, with the end, or with an error.
func (c *conn) readable() bool {
	if err := c.socket.Control(c.look); err != nil {
		return true
	}
	return c.looked[0].Revents != 0
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
