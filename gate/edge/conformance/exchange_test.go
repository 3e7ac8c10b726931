package conformance

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"
)

// conformanceCase is a row of the table.
type conformanceCase struct {
	name string
	rfc  string // sections, of RFC 9112 where none is named
	duty string
	raw  string // what the client sends
	// shown stands for raw in the table; "": raw itself.
	shown string
	script
	inTurn bool // the request after the case is sent when the case is answered
	cut    bool // the client's side of the connection ends behind raw
	whole  bool // order, spelling and additions of fields are told too
	// chance: ReverseProxy looks at a connection that it has pooled on a goroutine
	// of its own, and the next request may be faster.
	chance bool
	must   must // what this gate has to do
	// breach: it does not, the table says so, and this goes when it does.
	breach bool
}

// afterRequest ends every case but those that are cut.
const afterRequest = "GET " + after + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

// observation is what a proxy made of a case.
type observation struct {
	seen     []*message // the case's requests at the backend
	after    bool       // the request behind them got there too
	cut      bool       // a request got there in part
	leftover string
	interim  []*message // 1xx
	answers  []*message
	ended    bool // the proxy closed the connection
}

func (p *proxy) play(t *testing.T, c *conformanceCase) *observation {
	t.Helper()
	p.backend.begin(c.script)
	o := &observation{}
	o.talk(t, p.addr, c)
	if p.forget != nil {
		p.forget()
	}
	p.backend.end()

	p.backend.mu.Lock()
	defer p.backend.mu.Unlock()
	o.cut, o.leftover = p.backend.cut > 0, p.backend.leftover
	for _, m := range p.backend.requests {
		if m.method() == "GET" && m.target() == after {
			o.after = true
		} else {
			o.seen = append(o.seen, m)
		}
	}
	return o
}

// talk is the client's side of a case.
func (o *observation) talk(t *testing.T, addr string, c *conformanceCase) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))

	// The proxy may have closed before everything is written: the answers tell.
	send := func(text string) { _, _ = io.WriteString(conn, text) }
	switch {
	case c.cut:
		send(c.raw)
		_ = conn.(*net.TCPConn).CloseWrite()
	case c.inTurn:
		send(c.raw)
	default:
		send(c.raw + afterRequest)
	}
	var methods []string
	for _, m := range readRequests(c.raw) {
		methods = append(methods, m.method())
	}
	in := bufio.NewReader(conn)
	waiting := c.inTurn
	o.ended = readAnswers(in, append(methods, "GET"), func(m *message) {
		if status := m.status(); status >= 100 && status < 200 && status != 101 {
			o.interim = append(o.interim, m)
			return
		}
		o.answers = append(o.answers, m)
		if waiting && m.status() != 101 && len(o.answers) == len(methods) {
			waiting = false
			send(afterRequest)
		}
	}, func() { send(ping) })
}
