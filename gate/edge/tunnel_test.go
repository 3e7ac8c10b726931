package edge

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/rules"
)

// upgrading is a backend that changes to a protocol that sends every byte back.
func upgrading(t testing.TB) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" || r.Header.Get("Connection") != "Upgrade" || r.URL.Path == "/no" {
			w.WriteHeader(426)
			_, _ = io.WriteString(w, "no: "+r.Header.Get("Upgrade"))
			return
		}
		nc, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = nc.Close() }()
		_, _ = io.WriteString(nc, "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nSec-WebSocket-Accept: "+
			r.Header.Get("Sec-WebSocket-Key")+"\r\n\r\nhello")
		_, _ = io.Copy(nc, rw)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

const askWebSocket = "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k1\r\n\r\n"

// opened reads the 101 answer and the greeting behind it.
func (c *client) opened() {
	c.t.Helper()
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil || resp.StatusCode != 101 || resp.Header.Get("Upgrade") != "websocket" ||
		resp.Header.Get("Connection") != "Upgrade" || resp.Header.Get("Sec-Websocket-Accept") != "k1" {
		c.t.Fatalf("%v %v", resp, err)
	}
	greeting := make([]byte, 5)
	if _, err := io.ReadFull(c.in, greeting); err != nil || string(greeting) != "hello" {
		c.t.Fatalf("%q %v", greeting, err)
	}
}

// 10,000 messages go to and fro, and the end of one side reaches the other. The
// first bytes come with the request, before the protocol has changed.
func TestTunnel(t *testing.T) {
	f := start(t, upgrading(t), nil)
	c := dial(t, f.addr)
	c.send(askWebSocket + "early")
	c.opened()
	early := make([]byte, 5)
	if _, err := io.ReadFull(c.in, early); err != nil || string(early) != "early" {
		t.Fatalf("%q %v", early, err)
	}
	if open, total := f.Tunnels(); open != 1 || total != 1 {
		t.Fatalf("%d open of %d", open, total)
	}
	message, back := bytes.Repeat([]byte("m"), 125), make([]byte, 125)
	for i := range 10_000 {
		message[0], message[1] = byte(i), byte(i>>8)
		if _, err := c.Write(message); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c.in, back); err != nil || !bytes.Equal(back, message) {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if !c.closed() {
		t.Fatal("the backend's end did not come")
	}
}

func TestTunnelThatTheBackendRefuses(t *testing.T) {
	f := start(t, upgrading(t), nil)
	c := dial(t, f.addr)
	for range 2 {
		c.send(strings.Replace(askWebSocket, "/ws", "/no", 1))
		if resp, body := c.answer("GET"); resp.StatusCode != 426 || body != "no: websocket" || resp.Header.Get("Upgrade") != "" {
			t.Fatalf("%d %q %v", resp.StatusCode, body, resp.Header)
		}
	}
	f = start(t, "", nil)
	if resp, _ := ask(t, f.addr, askWebSocket); resp.StatusCode != 502 {
		t.Fatal(resp.StatusCode)
	}
}

// HTTP in another version would pass every rule by, a gated request has one
// answer, and a body leaves open where the other protocol begins: they are sent on
// without Upgrade.
func TestUpgradesThatAreNotPassedOn(t *testing.T) {
	f := start(t, upgrading(t), nil)
	for _, raw := range []string{
		strings.Replace(askWebSocket, "Upgrade: websocket", "Upgrade: h2c", 1),
		strings.Replace(askWebSocket, "Upgrade: websocket", "Upgrade: HTTP/2.0", 1),
		strings.Replace(askWebSocket, "Upgrade: websocket", "Upgrade: TLS/1.2", 1),
		strings.Replace(askWebSocket, "Upgrade: websocket", "Upgrade: websocket, h2c", 1),
		strings.Replace(askWebSocket, "Upgrade: websocket", "Upgrade: websocket\r\nUpgrade: h2c", 1),
		strings.Replace(askWebSocket, ", Upgrade", "", 1),
		strings.Replace(askWebSocket, "/ws", "/book", 1),
		strings.Replace(askWebSocket, "\r\n\r\n", "\r\nContent-Length: 1\r\n\r\na", 1),
		strings.Replace(askWebSocket, "HTTP/1.1", "HTTP/1.0", 1),
	} {
		if resp, body := ask(t, f.addr, raw); resp.StatusCode != 426 || body != "no: " {
			t.Errorf("%q: %d %q", raw, resp.StatusCode, body)
		}
	}
}

func TestSilentTunnelEnds(t *testing.T) {
	f := start(t, upgrading(t), nil, func(c *rules.ServerConfig) { c.IdleTimeout = 100 * time.Millisecond })
	c := dial(t, f.addr)
	c.send(askWebSocket)
	c.opened()
	if !c.closed() {
		t.Fatal("a silent tunnel stays open")
	}
}

func TestShutdownEndsTunnels(t *testing.T) {
	files, trusting := testTLS(t)
	for _, secure := range []bool{false, true} {
		f := start(t, upgrading(t), nil, func(c *rules.ServerConfig) {
			c.IdleTimeout = time.Minute
			if secure {
				c.TLS = files
			}
		})
		c := dial(t, f.addr)
		if secure {
			c.Conn = tlsClient(c.Conn, trusting)
			c.in = bufio.NewReader(c.Conn)
		}
		c.send(askWebSocket)
		c.opened()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		if err := f.Shutdown(ctx); err != nil {
			t.Fatal(err)
		}
		cancel()
		if !c.closed() {
			t.Fatal("the tunnel stays open")
		}
		if open, total := f.Tunnels(); open != 0 || total != 1 || !slices.Equal(f.meter.tunnels, []int{1, 0}) {
			t.Fatalf("%d open of %d, told %v", open, total, f.meter.tunnels)
		}
	}
}

// Declared trailers pass both ways; others, and those that would be read as part
// of the head, do not.
func TestTrailers(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum, X-Two, Content-Type")
		_, _ = io.Copy(w, r.Body)
		_ = http.NewResponseController(w).Flush()
		w.Header().Set("X-Sum", r.Trailer.Get("X-Check"))
		w.Header().Add("X-Two", "a")
		w.Header().Add("X-Two", "b")
		w.Header().Set("Content-Type", "evil")
		w.Header().Set(http.TrailerPrefix+"X-Undeclared", r.Trailer.Get("X-Undeclared")+r.Header.Get("X-Check"))
	}))
	defer s.Close()
	f := start(t, s.URL, nil)
	const chunks = "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Check: 17\r\nX-Undeclared: u\r\n\r\n"
	resp, body := ask(t, f.addr, "POST /x HTTP/1.1\r\nHost: x\r\nTrailer: X-Check\r\n"+chunks)
	if body != "abc" || resp.Trailer.Get("X-Sum") != "17" || strings.Join(resp.Trailer["X-Two"], " ") != "a b" || len(resp.Trailer) != 2 {
		t.Fatalf("%q %v", body, resp.Trailer)
	}
	resp, body = ask(t, f.addr, "POST /x HTTP/1.1\r\nHost: x\r\n"+chunks)
	if body != "abc" || resp.Trailer.Get("X-Sum") != "" || resp.Trailer.Get("X-Undeclared") != "" {
		t.Fatalf("undeclared: %q %v", body, resp.Trailer)
	}
	if resp, body := ask(t, f.addr, "POST /x HTTP/1.0\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"); body != "abc" || len(resp.Trailer) != 0 {
		t.Fatalf("HTTP/1.0: %q %v", body, resp.Trailer)
	}
}

// An event arrives while the backend is still silent about the next.
func TestEventsArriveAsTheyCome(t *testing.T) {
	sent := make(chan time.Time, 1)
	next := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range next {
			sent <- time.Now()
			_, _ = io.WriteString(w, "data: x\n\n")
			if err := http.NewResponseController(w).Flush(); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		}
	}))
	defer s.Close()
	f := start(t, s.URL, nil)
	c := dial(t, f.addr)
	c.send("GET /events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n")
	var events *bufio.Reader
	for i := range 20 {
		next <- struct{}{}
		at := <-sent
		if events == nil {
			resp, err := http.ReadResponse(c.in, nil)
			if err != nil || resp.Header.Get("Content-Type") != "text/event-stream" {
				t.Fatal(resp, err)
			}
			events = bufio.NewReader(resp.Body)
		}
		for range 2 {
			if _, err := events.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(at); took > 50*time.Millisecond {
			t.Fatalf("event %d took %v", i, took)
		}
	}
	close(next)
}
