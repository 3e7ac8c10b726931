package upstream

import (
	"bufio"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate"
)

// Ways in which backends have been seen to answer. Whatever a backend does on a
// connection, the request after it gets its own answer; and the connection is used
// again only where nothing can be left on it.
func TestScenarios(t *testing.T) {
	raw := func(text string) script { return func(c net.Conn, _ *bufio.Reader, _ int) { send(text)(c) } }
	const (
		poison = "HTTP/1.1 200 OK\r\nX-Poison: 1\r\nContent-Length: 17\r\n\r\n{\"victim\":\"data\"}"
		html   = "<html>Fatal error</html>"
	)
	for _, test := range []struct {
		id, name string
		method   string
		play     script // what the first connection answers
		late     string // comes when the first request is over
		closes   bool   // the backend then ends the connection
		within   time.Duration
		status   int
		body     string
		failure  gate.BackendFailure // instead of an answer
		reused   bool
	}{
		{id: "C-01", name: "a failure that says 200", play: raw(ok(`{"code":409}`)), status: 200, body: `{"code":409}`, reused: true},
		{id: "C-03", name: "an error page that says 200", play: raw(ok(html)), status: 200, body: html, reused: true},
		{id: "C-05", name: "a redirect is not followed", play: raw("HTTP/1.1 302 Found\r\nLocation: /form\r\nContent-Length: 0\r\n\r\n"), status: 302, reused: true},
		{id: "C-13", name: "both framings", play: raw("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"), failure: gate.Broken},
		{id: "C-16", name: "ended by the connection", play: raw("HTTP/1.1 200 OK\r\n\r\n{\"ok\":true}"), closes: true, status: 200, body: `{"ok":true}`},
		{id: "C-17", name: "no length and no end", play: raw("HTTP/1.1 200 OK\r\n\r\n{\"ok\":true}"), within: 100 * time.Millisecond, failure: gate.TimedOut},
		{id: "C-22", name: "reset without an answer", play: func(c net.Conn, _ *bufio.Reader, _ int) {
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}, closes: true, failure: gate.Broken},
		{id: "C-22b", name: "closed without an answer", play: raw(""), closes: true, failure: gate.Broken},
		{id: "C-22c", name: "a body that is cut", play: raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"), closes: true, failure: gate.Broken},
		{id: "C-22d", name: "chunks that are cut", play: raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"), closes: true, failure: gate.Broken},
		{id: "C-26", name: "early hints", play: raw("HTTP/1.1 103 Early Hints\r\nLink: </x.css>\r\n\r\n" + ok("{}")), status: 200, body: "{}", reused: true},
		{id: "C-27", name: "processing, three times", play: raw(strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 3) + ok("{}")), status: 200, body: "{}", reused: true},
		{id: "C-27b", name: "processing without end", play: raw(strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 50) + ok("{}")), failure: gate.Broken},
		{id: "C-31", name: "HEAD with a body", method: "HEAD", play: raw("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), status: 200},
		{id: "C-33", name: "304 with a length", play: raw("HTTP/1.1 304 Not Modified\r\nContent-Length: 50\r\n\r\n"), status: 304},
		{id: "C-34", name: "status 999", play: raw("HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n"), status: 999, reused: true},
		{id: "C-34b", name: "status 205", play: raw("HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n"), status: 205, reused: true},
		{id: "C-34c", name: "status 199", play: raw("HTTP/1.1 199 What\r\n\r\n" + ok("")), failure: gate.Broken},
		{id: "C-34d", name: "101 that nobody asked for", play: raw("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n"), failure: gate.Broken},
		{id: "C-34e", name: "status 20", play: raw("HTTP/1.1 20 OK\r\n\r\n"), failure: gate.Broken},
		{id: "C-36", name: "bare line feeds", play: raw("HTTP/1.1 201 Created\nContent-Length: 2\n\n{}"), status: 201, body: "{}", reused: true},
		{id: "C-42", name: "503 with Retry-After", play: raw("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nContent-Length: 0\r\n\r\n"), status: 503, reused: true},
		{id: "C-43", name: "500 after the commit", play: raw("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 1\r\n\r\nx"), status: 500, body: "x", reused: true},
		{id: "C-46", name: "a head that trickles", play: func(c net.Conn, in *bufio.Reader, _ int) {
			send("HTTP/1.1 201 Created\r\n")(c)
			tick := time.NewTicker(10 * time.Millisecond) // the trickle itself, until the client gives up
			defer tick.Stop()
			for range tick.C {
				if _, err := c.Write([]byte("X-A: b\r\n")); err != nil {
					return
				}
			}
		}, closes: true, within: 150 * time.Millisecond, failure: gate.TimedOut},
		{id: "C-48", name: "names in small letters", play: raw("HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\nset-cookie: a=1\r\n\r\n2\r\n{}\r\n0\r\n\r\n"), status: 201, body: "{}", reused: true},
		{id: "C-50", name: "204 whose body comes late", play: raw("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"), late: poison, status: 204},
		{id: "C-50b", name: "204 that announces nothing, and a late body", play: raw("HTTP/1.1 204 No Content\r\n\r\n"), late: poison, status: 204},
		{id: "C-51", name: "HEAD whose body comes late", method: "HEAD", play: raw("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), late: poison, status: 200},
		{id: "C-54", name: "an answer after the deadline", play: raw(""), late: poison, within: 50 * time.Millisecond, failure: gate.TimedOut},
	} {
		if test.method == "" {
			test.method = "POST"
		}
		if test.within == 0 {
			test.within = 2 * time.Second
		}
		for way, ask := range map[string]func(*Client, *gate.Request, time.Duration) (int, string, error){"forwarded": askForward, "passed": askPass} {
			t.Run(test.id+" "+test.name+" "+way, func(t *testing.T) {
				var connections atomic.Int32
				over, sent := make(chan struct{}), make(chan struct{})
				b := startBackend(t, func(c net.Conn, in *bufio.Reader, n int) {
					connections.Store(int32(n))
					if n == 1 {
						if _, more := receive(in); !more {
							return
						}
						test.play(c, in, n)
						if test.closes {
							close(sent)
							return
						}
						<-over
						if test.late != "" {
							_, _ = c.Write([]byte(test.late)) // the client may have gone, as it should
						}
						close(sent)
					}
					answers(ok("own"))(c, in, n)
				})
				c := newClient(t, b.addr, func(o *Options) { o.Timeout, o.IdleTimeout = test.within, test.within })
				began := time.Now()
				status, body, err := ask(c, request(test.method, "/", "b"), test.within)
				if took := time.Since(began); took > 2*test.within+time.Second {
					t.Errorf("took %v", took)
				}
				close(over)
				<-sent
				switch {
				case test.failure != 0:
					if failureOf(err) != test.failure {
						t.Fatalf("%v, want failure %d", err, test.failure)
					}
				case err != nil:
					t.Fatal(err)
				case status != test.status || body != test.body:
					t.Fatalf("%d %q, want %d %q", status, body, test.status, test.body)
				}
				if status, body, err = ask(c, request("POST", "/next", ""), time.Second); status != 200 || body != "own" || err != nil {
					t.Fatalf("the next request: %d %q, %v", status, body, err)
				}
				if reused := connections.Load() == 1; reused != test.reused {
					t.Errorf("connection reused: %v, want %v", reused, test.reused)
				}
			})
		}
	}
}
