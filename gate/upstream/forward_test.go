package upstream

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate"
)

// Answers that are answers, and whether another request may follow them on the
// connection.
func TestAnswers(t *testing.T) {
	for _, test := range []struct {
		name, method, raw string
		status            int
		body              string
		reused            bool
	}{
		{"length", "POST", ok("hello"), 200, "hello", true},
		{"no body", "POST", "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", 201, "", true},
		{"names in any case", "POST", "HTTP/1.1 200 OK\r\ncONTENT-lENGTH: 2\r\n\r\nhi", 200, "hi", true},
		{"chunks", "POST", "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n", 200, "hello", true},
		{"chunks with trailers", "POST", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 1\r\nX-B: 2\r\n\r\n", 200, "a", true},
		{"until the end", "POST", "HTTP/1.1 200 OK\r\n\r\nhello", 200, "hello", false},
		{"close", "POST", "HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 2\r\n\r\nhi", 200, "hi", false},
		{"1.0", "POST", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, "hi", false},
		{"1.0 that stays", "POST", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi", 200, "hi", true},
		{"interim answers", "POST", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + ok("hi"), 200, "hi", true},
		{"HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", 200, "", false},
		{"204", "POST", "HTTP/1.1 204 No Content\r\n\r\n", 204, "", true},
		{"304", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304, "", false},
		{"no reason", "POST", "HTTP/1.1 200\r\nContent-Length: 1\r\n\r\na", 200, "a", true},
		{"bare line feeds", "POST", "HTTP/1.1 200 OK\nContent-Length: 1\n\na", 200, "a", true},
		{"a blank before the colon", "POST", "HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\na", 200, "a", true},
		{"a folded line", "POST", "HTTP/1.1 200 OK\r\nX-Folded: a\r\n  b\r\nContent-Length: 1\r\n\r\na", 200, "a", true},
		{"500 is an answer", "POST", "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 1\r\n\r\na", 500, "a", true},
		{"bytes behind the answer", "POST", ok("hi") + "x", 200, "hi", false},
		{"bytes behind 204", "POST", "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", 204, "", false},
		{"a body behind HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var conns atomic.Int32
			b := startBackend(t, func(c net.Conn, in *bufio.Reader, n int) {
				conns.Store(int32(n))
				for {
					if _, ok := receive(in); !ok {
						return
					}
					_, _ = io.WriteString(c, test.raw)
					if strings.Contains(test.name, "until") {
						return
					}
				}
			})
			c := newClient(t, b.addr)
			for range 2 {
				a, err := forward(c, request(test.method, "/", ""), 2*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				if a.Status != test.status || string(a.Body) != test.body {
					t.Fatalf("got %d %q, want %d %q", a.Status, a.Body, test.status, test.body)
				}
				a.Release()
			}
			if reused := conns.Load() == 1; reused != test.reused {
				t.Fatalf("connection reused: %v, want %v", reused, test.reused)
			}
		})
	}
}

func TestAnswerFields(t *testing.T) {
	b := startBackend(t, answers("HTTP/1.1 200 OK\r\nset-cookie: a=1\r\nDate: x\r\nX-Hop: 1\r\nConnection: keep-alive, X-Hop\r\nKeep-Alive: timeout=5\r\nSet-Cookie: b=2\r\nX-Folded: a\r\n\t b\r\nContent-Length: 0\r\n\r\n"))
	a, err := forward(newClient(t, b.addr), request("GET", "/", ""), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Release()
	want := "[{set-cookie a=1} {Date x} {Set-Cookie b=2} {X-Folded a b} {Content-Length 0}]"
	if got := fmt.Sprint(a.Header); got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}

// What is no answer must say truthfully what is known.
func TestFailures(t *testing.T) {
	const brief = 100 * time.Millisecond
	for _, test := range []struct {
		name   string
		within time.Duration
		after  func(c net.Conn) // what the backend does with the request
		want   gate.BackendFailure
	}{
		{"closed without an answer", time.Second, func(net.Conn) {}, gate.Broken},
		{"reset", time.Second, func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) }, gate.Broken},
		{"cut body", time.Second, send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"), gate.Broken},
		{"cut head", time.Second, send("HTTP/1.1 200 OK\r\nContent-Le"), gate.Broken},
		{"cut chunk", time.Second, send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe"), gate.Broken},
		{"no last chunk", time.Second, send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"), gate.Broken},
		{"no end of the trailers", time.Second, send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n"), gate.Broken},
		{"bad chunk size", time.Second, send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), gate.Broken},
		{"no HTTP", time.Second, send("SSH-2.0-OpenSSH_9.6\r\n\r\n"), gate.Broken},
		{"HTTP/2", time.Second, send("HTTP/2 200 OK\r\n\r\n"), gate.Broken},
		{"length and chunks", time.Second, send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), gate.Broken},
		{"two lengths", time.Second, send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello"), gate.Broken},
		{"a list of lengths", time.Second, send("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello"), gate.Broken},
		{"a signed length", time.Second, send("HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello"), gate.Broken},
		{"another coding", time.Second, send("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"), gate.Broken},
		{"chunks in 1.0", time.Second, send("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), gate.Broken},
		{"a name with a blank", time.Second, send("HTTP/1.1 200 OK\r\nContent Length: 5\r\n\r\nhello"), gate.Broken},
		{"101 unasked", time.Second, send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"), gate.Broken},
		{"interim answers without end", time.Second, send(strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", maxInterim+1)), gate.Broken},
		{"a head over 64 KiB", time.Second, send("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n"), gate.Broken},
		{"longer than kept", time.Second, send("HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n"), gate.Broken},
		{"longer than kept, unannounced", time.Second, send("HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("x", 1<<20+1)), gate.Broken},
		{"silence", brief, wait, gate.TimedOut},
		{"silence after the head", brief, func(c net.Conn) { send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe")(c); wait(c) }, gate.TimedOut},
		{"a trickle that never pauses for long", 300 * time.Millisecond, trickle, gate.TimedOut},
	} {
		t.Run(test.name, func(t *testing.T) {
			var seen atomic.Int32
			b := startBackend(t, func(c net.Conn, in *bufio.Reader, _ int) {
				if _, more := receive(in); more {
					seen.Add(1)
					test.after(c)
				}
			})
			c := newClient(t, b.addr)
			for _, method := range []string{"POST", "PUT", "GET"} {
				seen.Store(0)
				began := time.Now()
				_, err := forward(c, request(method, "/", "x"), test.within)
				if got := failureOf(err); got != test.want {
					t.Fatalf("%s: failure %d (%v), want %d", method, got, err, test.want)
				}
				if n := seen.Load(); n != 1 {
					t.Fatalf("%s reached the backend %d times", method, n)
				}
				if took := time.Since(began); took > test.within+time.Second {
					t.Fatalf("%s took %v", method, took)
				}
				if failureOf(err) == gate.NotConnected {
					t.Fatal("claims that nothing was sent")
				}
			}
		})
	}
}

func send(raw string) func(net.Conn) {
	return func(c net.Conn) { _, _ = io.WriteString(c, raw) }
}

// wait returns when the other side has closed.
func wait(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

func trickle(c net.Conn) {
	send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")(c)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if _, err := c.Write([]byte("x")); err != nil {
			return
		}
	}
}

func TestNeverSent(t *testing.T) {
	closed := startBackend(t, answers(ok("")))
	closed.stop()
	_, err := forward(newClient(t, closed.addr), request("POST", "/", "x"), time.Second)
	if failureOf(err) != gate.NotConnected {
		t.Fatalf("nobody listens: %v", err)
	}

	b := startBackend(t, answers(ok("hi")))
	c := newClient(t, b.addr)
	if _, err = forward(c, request("POST", "/", "x"), -time.Second); failureOf(err) != gate.NotConnected {
		t.Fatalf("deadline has passed: %v", err)
	}
	wantBody(t, c, request("POST", "/", "x"), "hi")
}

// With every connection in use, a request waits for one, and none is left over
// afterwards.
func TestConnectionsAreBounded(t *testing.T) {
	release := make(chan struct{})
	var open, most atomic.Int32
	b := startBackend(t, func(c net.Conn, in *bufio.Reader, _ int) {
		now := open.Add(1)
		defer open.Add(-1)
		for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
		}
		for {
			if _, ok := receive(in); !ok {
				return
			}
			<-release
			send(ok("hi"))(c)
		}
	})
	c := newClient(t, b.addr, func(o *Options) { o.MaxConnections = 2; o.ConnectTimeout = 50 * time.Millisecond })
	results := make(chan error, 2)
	for range 2 {
		go func() {
			a, err := forward(c, request("POST", "/", "x"), 5*time.Second)
			if err == nil {
				a.Release()
			}
			results <- err
		}()
	}
	for len(c.gated.inUse) < 2 {
		time.Sleep(time.Millisecond)
	}
	if _, err := forward(c, request("POST", "/", "x"), 5*time.Second); failureOf(err) != gate.NoRoom {
		close(release)
		t.Fatalf("third request: %v", err)
	}
	close(release)
	for range 2 {
		if err := <-results; err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		wantBody(t, c, request("POST", "/", "x"), "hi")
	}
	if n := most.Load(); n > 2 {
		t.Fatalf("%d connections at once, the limit is 2", n)
	}
}

// A backend that answers and closes before it has read a large body has answered.
func TestEarlyRefusalOfALargeBody(t *testing.T) {
	b := startBackend(t, func(c net.Conn, in *bufio.Reader, _ int) {
		_, _ = in.ReadString('\n')
		send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig")(c)
		_ = c.(*net.TCPConn).CloseWrite()
		wait(c)
	})
	c := newClient(t, b.addr)
	a, err := forward(c, request("POST", "/", strings.Repeat("x", 8<<20)), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Release()
	if a.Status != 413 || string(a.Body) != "big" {
		t.Fatalf("got %d %q", a.Status, a.Body)
	}
}

func TestBudgetOfAnswers(t *testing.T) {
	b := startBackend(t, func(c net.Conn, in *bufio.Reader, _ int) {
		for {
			r, more := receive(in)
			if !more {
				return
			}
			var size int
			_, _ = fmt.Sscanf(r.head, "POST /%d", &size)
			send(ok(strings.Repeat("x", size)))(c)
		}
	})
	budget := &testBudget{max: 100 << 10}
	c := newClient(t, b.addr, func(o *Options) { o.Budget = budget })
	a, err := forward(c, request("POST", "/60000", ""), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := forward(c, request("POST", "/60000", ""), time.Second); failureOf(err) != gate.Broken {
		t.Fatalf("over the budget: %v", err)
	}
	a.Release()
	if a, err = forward(c, request("POST", "/60000", ""), time.Second); err != nil {
		t.Fatal(err)
	}
	a.Release()
	if used := budget.used.Load(); used != 0 {
		t.Fatalf("%d bytes are still taken", used)
	}
}

type testBudget struct {
	max  int64
	used atomic.Int64
}

func (b *testBudget) Take(n int64) bool {
	if b.used.Add(n) > b.max {
		b.used.Add(-n)
		return false
	}
	return true
}

func (b *testBudget) Give(n int64) { b.used.Add(-n) }

func TestTLSAndUnixSocket(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s", r.Proto, body)
	})
	secure := httptest.NewTLSServer(handler)
	defer secure.Close()
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	c := newClient(t, "", func(o *Options) {
		o.URL = secure.URL
		o.TLS = &tls.Config{RootCAs: roots}
	})
	for range 5 {
		wantBody(t, c, request("POST", "/", "x"), "HTTP/1.1 x")
	}
	if len(c.gated.idle) != 1 {
		t.Fatalf("%d idle TLS connections, want 1 that was used five times", len(c.gated.idle))
	}
	untrusting := newClient(t, "", func(o *Options) { o.URL = secure.URL })
	if _, err := forward(untrusting, request("POST", "/", "x"), time.Second); failureOf(err) != gate.NotConnected {
		t.Fatalf("an unknown certificate: %v", err)
	}

	path := filepath.Join(t.TempDir(), "backend.sock")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	local := &httptest.Server{Listener: ln, Config: &http.Server{Handler: handler}}
	local.Start()
	defer local.Close()
	c = newClient(t, "", func(o *Options) { o.URL = "unix:" + path })
	for range 5 {
		wantBody(t, c, request("POST", "/", "x"), "HTTP/1.1 x")
	}
}

func TestTargets(t *testing.T) {
	for _, good := range []string{"http://127.0.0.1:9000", "http://backend", "https://backend/", "http://[::1]:80", "unix:/run/b.sock", "unix:///run/b.sock"} {
		if _, err := parseTarget(good, nil); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "127.0.0.1:9000", "ftp://x", "http://", "http://u:p@x", "http://x/api", "http://x?q", "unix:relative", "unix:"} {
		if _, err := parseTarget(bad, nil); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
