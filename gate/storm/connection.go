package storm

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxHead = 64 << 10 // of an answer, in bytes; a longer one is malformed
	maxBody = 1 << 20  // of an answer; what is longer is cut here and not read on
)

// ErrorKind names why a request got no answer. What the server did with the
// request is known only for the connect kinds: nothing.
type ErrorKind string

const (
	ConnectRefused ErrorKind = "connect-refused"
	ConnectTimeout ErrorKind = "connect-timeout"
	ConnectFailed  ErrorKind = "connect-failed"
	Timeout        ErrorKind = "timeout"   // no whole answer within Options.Timeout
	Closed         ErrorKind = "closed"    // end of the connection instead of an answer
	Reset          ErrorKind = "reset"     // connection reset instead of an answer
	Cut            ErrorKind = "cut"       // the answer began and did not end
	Malformed      ErrorKind = "malformed" // the answer is not HTTP/1.1
	Stopped        ErrorKind = "stopped"   // the storm ended first
)

// TransportError is a request without an answer.
type TransportError struct {
	Kind ErrorKind
	Err  error
}

func (e *TransportError) Error() string { return string(e.Kind) + ": " + e.Err.Error() }

func (e *TransportError) Unwrap() error { return e.Err }

// origin is where a target's connections go.
type origin struct {
	address string      // host:port
	tls     *tls.Config // nil for http
}

// connection is one kept-alive HTTP/1.1 connection of one client. It writes a
// request at most once and is closed after anything but a clean answer.
type connection struct {
	net.Conn
	raw     syscall.RawConn // of the TCP connection
	broken  error           // what ended reading
	limited io.LimitedReader
	reader  *bufio.Reader
	release func() bool // ends the watch on the storm's context
	usable  bool
}

// connect opens a connection within timeout. It is closed when ctx ends.
func (o origin) connect(ctx context.Context, timeout time.Duration) (*connection, *TransportError) {
	dialing, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var dialer net.Dialer
	tcp, err := dialer.DialContext(dialing, "tcp", o.address)
	if err != nil {
		return nil, &TransportError{connectKind(ctx, err), err}
	}
	c := &connection{Conn: tcp, usable: true}
	if c.raw, err = tcp.(*net.TCPConn).SyscallConn(); err == nil && o.tls != nil {
		secure := tls.Client(tcp, o.tls)
		c.Conn, err = secure, secure.HandshakeContext(dialing)
	}
	if err != nil {
		tcp.Close()
		return nil, &TransportError{connectKind(ctx, err), err}
	}
	c.limited.R = c
	c.reader = bufio.NewReader(&c.limited)
	c.release = context.AfterFunc(ctx, func() { tcp.Close() })
	return c, nil
}

// Read remembers the error that ended reading, which http.ReadResponse does not
// always pass on.
func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.broken = err
	}
	return n, err
}

func (c *connection) close() {
	c.usable = false
	c.release()
	c.Conn.Close()
}

// alive reports whether the connection can take a request: the server has
// neither closed it nor sent bytes that nobody asked for.
func (c *connection) alive() bool {
	if !c.usable {
		return false
	}
	quiet := false
	err := c.raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		quiet = err == unix.EAGAIN
		return true
	})
	return err == nil && quiet
}

// answer is what came back. Its body lies in the client's buffer and is valid
// until the next request.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// send writes request once and reads the answer to it into body. Of asked,
// only the method counts.
func (c *connection) send(ctx context.Context, asked *http.Request, request []byte, body *bytes.Buffer, timeout time.Duration) (answer, *TransportError) {
	c.SetDeadline(time.Now().Add(timeout))
	_, failed := c.Write(request)
	// A server may answer and close before it has read a long body: the answer
	// counts then, not the broken write.
	got, err := c.receive(ctx, asked, body)
	if err != nil {
		c.close()
		if failed != nil && err.Kind == Closed {
			err = &TransportError{answerKind(ctx, failed), failed}
		}
		return answer{}, err
	}
	if failed != nil || !c.usable {
		c.close()
		return got, nil
	}
	c.SetDeadline(time.Time{}) // idleness has no limit on this side
	return got, nil
}

func (c *connection) receive(ctx context.Context, asked *http.Request, body *bytes.Buffer) (answer, *TransportError) {
	c.limited.N = maxHead
	if _, err := c.reader.Peek(1); err != nil {
		return answer{}, &TransportError{answerKind(ctx, err), err}
	}
	response, err := http.ReadResponse(c.reader, asked)
	for err == nil && response.StatusCode < 200 && response.StatusCode != http.StatusSwitchingProtocols {
		response, err = http.ReadResponse(c.reader, asked)
	}
	if err != nil {
		if c.broken == nil {
			return answer{}, &TransportError{Malformed, err}
		}
		return answer{}, &TransportError{cutKind(ctx, c.broken), err}
	}
	c.limited.N = math.MaxInt64
	body.Reset()
	if response.StatusCode == http.StatusSwitchingProtocols {
		c.usable = false // what follows is another protocol
	} else if _, err := body.ReadFrom(io.LimitReader(response.Body, maxBody+1)); err != nil {
		return answer{}, &TransportError{cutKind(ctx, err), err}
	}
	if body.Len() > maxBody {
		body.Truncate(maxBody)
		c.usable = false
	}
	if response.Close || c.reader.Buffered() > 0 {
		c.usable = false
	}
	return answer{response.StatusCode, response.Header, body.Bytes()}, nil
}

func connectKind(ctx context.Context, err error) ErrorKind {
	switch {
	case ctx.Err() != nil:
		return Stopped
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return ConnectTimeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return ConnectRefused
	default:
		return ConnectFailed
	}
}

// answerKind classifies an error before the first byte of an answer.
func answerKind(ctx context.Context, err error) ErrorKind {
	switch {
	case ctx.Err() != nil:
		return Stopped
	case errors.Is(err, os.ErrDeadlineExceeded):
		return Timeout
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return Reset
	default:
		return Closed
	}
}

// cutKind classifies an error after the first byte of an answer.
func cutKind(ctx context.Context, err error) ErrorKind {
	switch kind := answerKind(ctx, err); kind {
	case Stopped, Timeout:
		return kind
	default:
		return Cut
	}
}
