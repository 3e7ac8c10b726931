package edge

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/accesslog"
	"github.com/slotgate/slotgate/rules"
)

// kept is an access log in memory.
type kept struct {
	mu      sync.Mutex
	entries []accesslog.Entry
	off     bool
}

func (k *kept) On() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.off
}

func (k *kept) Add(e *accesslog.Entry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.entries = append(k.entries, *e)
}

// next waits for the next entry.
func (k *kept) next(t *testing.T) accesslog.Entry {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		k.mu.Lock()
		if len(k.entries) > 0 {
			e := k.entries[0]
			k.entries = k.entries[1:]
			k.mu.Unlock()
			return e
		}
		k.mu.Unlock()
	}
	t.Fatal("no line in the access log")
	return accesslog.Entry{}
}

// accessBackend answers by the path.
func accessBackend(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/long":
			w.Header().Set("Content-Length", fmt.Sprint(1<<20))
			_, _ = io.Copy(w, newNoise(1<<20))
		case "/chunks":
			_, _ = io.WriteString(w, "first")
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, "second")
		case "/echo":
			conn, buffered, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			_, _ = io.Copy(conn, buffered)
			_ = conn.Close()
		case "/missing":
			w.WriteHeader(http.StatusNotFound)
		default:
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, "answer")
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// Each way in which a request can end is one line, with what was sent.
func TestAccessLines(t *testing.T) {
	log := &kept{}
	f := startLogged(t, log, accessBackend(t), nil)
	for _, row := range []struct {
		name, raw string
		want      accesslog.Entry
	}{
		{"gated", "POST /book?token=SECRET HTTP/1.1\r\nHost: a\r\nX-Request-Id: r1\r\nUser-Agent: b\r\nReferer: http://a/page?SECRET\r\nCookie: SECRET\r\nContent-Length: 6\r\n\r\nSECRET",
			accesslog.Entry{Method: "POST", Path: "/book", Protocol: "HTTP/1.1", Status: 201, Bytes: 6, RequestID: "r1", UserAgent: "b", Referer: "http://a/page",
				Rule: "book", Decision: "admitted", Mode: "normal", Outcome: "booked"}},
		{"passed", "GET /page;jsessionid=SECRET/x;y=SECRET HTTP/1.1\r\nHost: a\r\nX-Request-Id: r2\r\nReferer: http://SECRET:SECRET@a/\r\n\r\n",
			accesslog.Entry{Method: "GET", Path: "/page/x", Protocol: "HTTP/1.1", Status: 201, Bytes: 6, RequestID: "r2"}},
		{"missing", "GET /missing HTTP/1.1\r\nHost: a\r\nX-Request-Id: r2\r\n\r\n",
			accesslog.Entry{Method: "GET", Path: "/missing", Protocol: "HTTP/1.1", Status: 404, RequestID: "r2"}},
		{"long", "GET /long HTTP/1.1\r\nHost: a\r\nX-Request-Id: r3\r\n\r\n",
			accesslog.Entry{Method: "GET", Path: "/long", Protocol: "HTTP/1.1", Status: 200, Bytes: 1 << 20, RequestID: "r3"}},
		{"chunks", "GET /chunks HTTP/1.1\r\nHost: a\r\nX-Request-Id: r4\r\n\r\n",
			accesslog.Entry{Method: "GET", Path: "/chunks", Protocol: "HTTP/1.1", Status: 200, Bytes: 11, RequestID: "r4"}},
		{"until close", "GET /chunks HTTP/1.0\r\nHost: a\r\nX-Request-Id: r5\r\n\r\n",
			accesslog.Entry{Method: "GET", Path: "/chunks", Protocol: "HTTP/1.0", Status: 200, Bytes: 11, RequestID: "r5"}},
		{"head", "HEAD /long HTTP/1.1\r\nHost: a\r\nX-Request-Id: r6\r\n\r\n",
			accesslog.Entry{Method: "HEAD", Path: "/long", Protocol: "HTTP/1.1", Status: 200, RequestID: "r6"}},
		{"expect", "POST /book HTTP/1.1\r\nHost: a\r\nX-Request-Id: r7\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
			accesslog.Entry{Method: "POST", Path: "/book", Protocol: "HTTP/1.1", Status: 201, Bytes: 6, RequestID: "r7",
				Rule: "book", Decision: "admitted", Mode: "normal", Outcome: "booked"}},
		{"refused head", "POST /book HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
			accesslog.Entry{Status: 400, Refusal: "framing"}},
		{"user in the target", "GET http://user:SECRET@a/ HTTP/1.1\r\nHost: a\r\n\r\n",
			accesslog.Entry{Status: 400, Refusal: "absolute_form"}},
		{"no HTTP", "SECRET\r\n\r\n", accesslog.Entry{Status: 400, Refusal: "malformed"}},
		{"last hop", "TRACE /a HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\nX-Request-Id: r8\r\n\r\n",
			accesslog.Entry{Method: "TRACE", Path: "/a", Protocol: "HTTP/1.1", Status: 405, RequestID: "r8"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := dial(t, f.addr)
			if _, err := io.WriteString(c.Conn, row.raw); err != nil {
				t.Fatal(err)
			}
			if half, ok := c.Conn.(*net.TCPConn); ok {
				go func() { _, _ = io.Copy(io.Discard, half) }()
			}
			got := log.next(t)
			if got.Began.IsZero() || got.Took < 0 || got.Client.String() != "127.0.0.1" {
				t.Errorf("began %v, took %v, client %v", got.Began, got.Took, got.Client)
			}
			if got.Refusal == "" && row.want.Status == 405 {
				row.want.Bytes = got.Bytes // of the gate's own answer
			}
			if row.want.Refusal != "" && got.Bytes > 0 {
				row.want.Bytes = got.Bytes
			}
			got.Began, got.Took, got.Client = time.Time{}, 0, row.want.Client
			if got != row.want {
				t.Errorf("got  %+v\nwant %+v", got, row.want)
			}
		})
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	if len(log.entries) > 0 {
		t.Errorf("more lines than requests: %+v", log.entries)
	}
}

// Requests on one connection do not mix, and the line of a tunnel comes with its end.
func TestAccessLinesOfAConnection(t *testing.T) {
	log := &kept{}
	f := startLogged(t, log, accessBackend(t), nil)
	c := dial(t, f.addr)
	var raw strings.Builder
	var want []string
	for i, path := range []string{"/long", "/book", "/chunks", "/page", "/missing", "/long"} {
		fmt.Fprintf(&raw, "GET %s HTTP/1.1\r\nHost: a\r\nX-Request-Id: r%d\r\n\r\n", path, i)
		want = append(want, fmt.Sprintf("r%d %s", i, path))
	}
	raw.WriteString("GET /echo HTTP/1.1\r\nHost: a\r\nX-Request-Id: tunnel\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")
	want = append(want, "tunnel /echo")
	go func() { _, _ = io.WriteString(c.Conn, raw.String()) }()
	in := bufio.NewReader(c.Conn)
	for range len(want) {
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != http.StatusSwitchingProtocols {
			_, _ = io.Copy(io.Discard, answer.Body)
		}
	}
	_ = c.Conn.Close()
	var got []string
	for range want {
		e := log.next(t)
		got = append(got, e.RequestID+" "+e.Path)
		if (e.Rule == "book") != (e.Path == "/book") || (e.Status == 101) != (e.Path == "/echo") {
			t.Errorf("%+v", e)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("lines of %v\nwant %v", got, want)
	}
}

func TestAccessLinesOfClientsThatGo(t *testing.T) {
	log := &kept{}
	f := startLogged(t, log, accessBackend(t), nil, func(c *rules.ServerConfig) { c.MaxConnections = 2 })

	silent := dial(t, f.addr) // never says anything: no request, no line
	half := dial(t, f.addr)
	_, _ = io.WriteString(half.Conn, "POST /page HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nonly this")
	eventuallyConnected(t, f, 2)
	over := dial(t, f.addr)
	_, _ = io.ReadAll(over.Conn)
	if e := log.next(t); e.Status != 503 || e.Refusal != "connections" || e.Path != "" {
		t.Errorf("over the limit: %+v", e)
	}
	_ = half.Conn.Close()
	if e := log.next(t); e.Status != statusGone || e.Path != "/page" {
		t.Errorf("gone with half a body: %+v", e)
	}
	_ = silent.Conn.Close()

	log.mu.Lock()
	log.off = true
	log.mu.Unlock()
	c := dial(t, f.addr)
	_, _ = io.WriteString(c.Conn, "GET /page HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	_, _ = io.ReadAll(c.Conn)
	log.mu.Lock()
	defer log.mu.Unlock()
	if len(log.entries) > 0 {
		t.Errorf("lines: %+v", log.entries)
	}
}

func eventuallyConnected(t *testing.T, f *fixture, n int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); f.Connections() != n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d connections", f.Connections())
		}
	}
}

// What the access log costs, and that it costs nothing while it is off.
func BenchmarkAccessLog(b *testing.B) {
	addr := instant(b)
	for _, row := range []struct {
		name string
		log  AccessLog
	}{{"none", nil}, {"off", &switched{}}, {"on", &switched{on: true}}} {
		b.Run(row.name, func(b *testing.B) {
			f := startLogged(b, row.log, "http://"+addr, nil)
			storm(b, f.addr, benchRequest)
		})
	}
}

// switched is an access log that drops what it gets.
type switched struct{ on bool }

func (s *switched) On() bool             { return s.on }
func (s *switched) Add(*accesslog.Entry) {}
