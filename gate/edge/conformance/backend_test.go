package conformance

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience bounds every wait of a case. It decides how long a broken test takes,
// and no verdict: a case in which it runs out says so in the table.
const patience = 5 * time.Second

// Targets that the backend answers plainly whatever the case's script is: after
// ends every case and shows whether the connection is still in step; first is
// there to leave a pooled connection behind.
const (
	after = "/after"
	first = "/first"
)

// knock is the line on which the backend resets the connection.
const knock = "KNOCK\r\n"

// ping is what the client of an upgrade sends behind the answer.
const ping = "ping"

// script is what the backend does with the request that a case is about.
type script struct {
	answer string // raw; "": 200 with the request's target as body
	hangUp bool   // close the connection after it
	// upgrade: answer is to a request with Upgrade only, and what the client then
	// says is said back to it.
	upgrade bool
}

// backend is a server that records all requests on all its connections.
type backend struct {
	listener net.Listener

	mu       sync.Mutex
	script   script
	open     map[*net.TCPConn]bool
	closed   sync.Cond  // one of open
	requests []*message // whole ones, as they came
	cut      int        // connections that ended inside a request
	leftover string     // what no request begins with
}

func startBackend(t *testing.T) *backend {
	t.Helper()
	listener := listen(t)
	b := &backend{listener: listener, open: map[*net.TCPConn]bool{}}
	b.closed.L = &b.mu
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			tcp := conn.(*net.TCPConn)
			b.mu.Lock()
			b.open[tcp] = true
			b.mu.Unlock()
			go func() {
				b.serve(tcp)
				_ = tcp.Close()
				b.mu.Lock()
				defer b.mu.Unlock()
				delete(b.open, tcp)
				b.closed.Broadcast()
			}()
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		accepting.Wait()
		b.end()
	})
	return b
}

func (b *backend) addr() string { return b.listener.Addr().String() }

// begin forgets the case before.
func (b *backend) begin(s script) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.script, b.requests, b.cut, b.leftover = s, nil, 0, ""
}

// end closes all connections, first its own side of each, so that what the proxy
// still sends is recorded and the proxy has noticed when end returns.
func (b *backend) end() {
	b.acceptAll()
	b.mu.Lock()
	defer b.mu.Unlock()
	for conn := range b.open {
		_ = conn.CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(patience))
	}
	for len(b.open) > 0 {
		b.closed.Wait()
	}
}

// acceptAll returns when the connections that were made before are accepted: they
// stand in line, and this one is behind them. It is reset, not closed, so that no
// port waits for late segments of it.
func (b *backend) acceptAll() {
	last, err := net.Dial("tcp", b.addr())
	if err != nil {
		return // the listener is closed
	}
	_, _ = io.WriteString(last, knock)
	_, _ = io.Copy(io.Discard, last)
	_ = last.Close()
}

func (b *backend) serve(conn *net.TCPConn) {
	in := bufio.NewReader(conn)
	if b, err := in.Peek(len(knock)); err == nil && string(b) == knock {
		_ = conn.SetLinger(0)
		return
	}
	for {
		m, err := readHead(in)
		if err != nil {
			b.mu.Lock()
			b.leftover += m.line
			b.mu.Unlock()
			return
		}
		if expects := m.values("Expect"); len(expects) > 0 && strings.EqualFold(expects[0], "100-continue") {
			_, _ = io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\n")
		}
		m.readBody(in, false)
		s := b.record(m)
		if m.cut || !b.answer(conn, in, m, s) {
			return
		}
	}
}

func (b *backend) record(m *message) script {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m.cut {
		b.cut++
	} else {
		b.requests = append(b.requests, m)
	}
	if m.target() == after || m.target() == first {
		return script{}
	}
	return b.script
}

// answer reports whether the connection goes on.
func (b *backend) answer(conn net.Conn, in io.Reader, m *message, s script) bool {
	switching := s.upgrade && len(m.values("Upgrade")) > 0
	text := s.answer
	if text == "" && !s.hangUp || s.upgrade && !switching {
		text = fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(m.target()))
		if m.method() != "HEAD" {
			text += m.target()
		}
	}
	if _, err := io.WriteString(conn, text); err != nil {
		return false
	}
	if switching {
		said := make([]byte, len(ping))
		if _, err := io.ReadFull(in, said); err == nil {
			_, _ = conn.Write(said)
		}
		return false
	}
	return !s.hangUp
}
