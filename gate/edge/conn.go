package edge

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slotgate/slotgate/gate/deadline"
)

// listener hands out tracked connections, and refuses those over the limit.
type listener struct {
	net.Listener
	server *Server
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := newConn(nc, l.server)
		if l.server.conns.add(c, l.server.config.MaxConnections) {
			return c, nil
		}
		l.server.refuseConn(nc)
	}
}

// conn is a client's connection, below TLS where there is any.
type conn struct {
	*deadline.Conn
	server *Server
	heard  atomic.Bool // a byte has been read
	// linger: the client may still be sending; closing at once would make its
	// kernel throw the answer away.
	linger atomic.Bool
	closed sync.Once
	// waiting is the request whose body the client has been asked for. What is
	// written meanwhile is 100 (Continue); failing to write it goes unnoticed until
	// the body is read, because fasthttp would tell nobody of it.
	waiting *waiting
	line    *line // of the access log, for the request under way; nil: none

	peer    netip.Addr // invalid: a unix socket
	hop     hop
	hasGone func() bool // gone, bound once

	socket syscall.RawConn  // nil: not a socket
	poll   func(fd uintptr) // bound once, so that a look allocates nothing
	polled [1]unix.PollFd
}

func newConn(nc net.Conn, s *Server) *conn {
	c := &conn{Conn: deadline.New(nc), server: s, peer: clientAddr(nc.RemoteAddr())}
	c.hasGone = c.gone
	if sc, ok := nc.(syscall.Conn); ok {
		if socket, err := sc.SyscallConn(); err == nil {
			c.socket = socket
		}
	}
	c.poll = func(fd uintptr) {
		c.polled[0] = unix.PollFd{Fd: int32(fd), Events: pollGone}
		if _, err := unix.Poll(c.polled[:], 0); err != nil {
			c.polled[0].Revents = 0
		}
	}
	return c
}

// connOf finds the tracked connection under what fasthttp serves.
func connOf(nc net.Conn) *conn {
	if secure, ok := nc.(*tls.Conn); ok {
		nc = secure.NetConn()
	}
	c, _ := nc.(*conn)
	return c
}

// gone reports, without waiting, that the client has closed its side. A client
// that closes only its sending half looks the same. For one goroutine.
func (c *conn) gone() bool {
	if c == nil || c.socket == nil {
		return false
	}
	c.polled[0].Revents = 0
	if err := c.socket.Control(c.poll); err != nil {
		return true // closed here
	}
	return c.polled[0].Revents&(pollGone|unix.POLLHUP|unix.POLLERR) != 0
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.heard.Load() {
		c.heard.Store(true)
		if p[0] == handshake && c.server.tls == nil {
			return 0, errHello // it would wait for an answer until read_timeout
		}
	}
	return n, err
}

// handshake is the first byte that a TLS client sends (RFC 8446 section 5.1).
const handshake = 22

var errHello = errors.New("a TLS handshake on a plain port")

// writePiece is how much a client must take within idle_timeout.
const writePiece = 64 << 10

// Write fails when the client takes nothing for idle_timeout.
func (c *conn) Write(p []byte) (int, error) {
	written := 0
	for {
		piece := p[written:min(len(p), written+writePiece)]
		if idle := c.server.config.IdleTimeout; idle > 0 {
			if err := c.Conn.SetWriteDeadline(time.Now().Add(idle)); err != nil && c.waiting == nil {
				return written, err
			}
		}
		n, err := c.Conn.Write(piece)
		if c.waiting != nil {
			return len(p), nil
		}
		written += n
		if err != nil || written == len(p) {
			return written, err
		}
	}
}

const (
	lingerTime = 2 * time.Second // how long a client may go on sending
	lingerMax  = 16 << 20        // and how much
)

// Close waits for a client that is still sending, for a bounded time, so that it
// can read the answer it was given.
func (c *conn) Close() error {
	var err error
	c.closed.Do(func() {
		if c.linger.Load() {
			lingerOn(c.Conn)
		}
		err = c.Conn.Close()
		c.server.conns.remove(c)
	})
	return err
}

func lingerOn(nc net.Conn) {
	half, ok := nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || nc.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, nc, lingerMax)
}

// tracker knows every open connection.
type tracker struct {
	mu    sync.Mutex
	open  map[*conn]struct{}
	empty chan struct{} // closed when open becomes empty; nil: nobody waits
}

// add reports false when there are max connections already.
func (t *tracker) add(c *conn, max int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if max > 0 && len(t.open) >= max {
		return false
	}
	if t.open == nil {
		t.open = make(map[*conn]struct{})
	}
	t.open[c] = struct{}{}
	return true
}

func (t *tracker) remove(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, c)
	if len(t.open) == 0 && t.empty != nil {
		close(t.empty)
		t.empty = nil
	}
}

func (t *tracker) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open)
}

// drained is closed once there is no connection.
func (t *tracker) drained() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	done := make(chan struct{})
	if len(t.open) == 0 {
		close(done)
		return done
	}
	t.empty = done
	return done
}

// closeSilent closes the connections on which no byte has come: browsers open
// some ahead of need, and fasthttp would wait for them.
func (t *tracker) closeSilent() { t.closeIf(func(c *conn) bool { return !c.heard.Load() }) }

func (t *tracker) closeAll() { t.closeIf(func(*conn) bool { return true }) }

func (t *tracker) closeIf(f func(*conn) bool) {
	t.mu.Lock()
	var match []*conn
	for c := range t.open {
		if f(c) {
			match = append(match, c)
		}
	}
	t.mu.Unlock()
	for _, c := range match {
		c.linger.Store(false)
		_ = c.Close()
	}
}
