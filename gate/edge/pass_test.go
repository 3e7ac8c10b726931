package edge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/upstream"
	"github.com/slotgate/slotgate/rules"
)

const long = 64 << 20

// noise is n bytes that do not repeat.
type noise struct {
	left int64
	rng  *rand.ChaCha8
}

func newNoise(n int64) *noise { return &noise{left: n, rng: rand.NewChaCha8([32]byte{1})} }

func (r *noise) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), r.left)]
	_, _ = r.rng.Read(p)
	r.left -= int64(len(p))
	return len(p), nil
}

func sum(r io.Reader) string {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return err.Error()
	}
	return hex.EncodeToString(h.Sum(nil))
}

// 64 MiB each way pass through whole, and the process does not grow.
func TestLongStreams(t *testing.T) {
	want := sum(newNoise(long))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "GET" {
			if r.URL.Path == "/length" {
				w.Header().Set("Content-Length", fmt.Sprint(long))
			}
			_, _ = io.Copy(w, newNoise(long))
			return
		}
		_, _ = io.WriteString(w, sum(r.Body))
	}))
	defer server.Close()
	f := start(t, server.URL, nil)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	hc := &http.Client{Transport: transport}

	stop, peak := make(chan struct{}), make(chan uint64)
	go func() { peak <- peakHeap(stop) }()
	for _, length := range []int64{long, -1} {
		req, _ := http.NewRequestWithContext(context.Background(), "POST", "http://"+f.addr+"/", newNoise(long))
		req.ContentLength = length
		resp, err := hc.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(got) != want {
			t.Fatalf("upload of length %d: got %s, want %s", length, got, want)
		}
	}
	for _, path := range []string{"/length", "/chunks"} {
		resp, err := hc.Get("http://" + f.addr + path)
		if err != nil {
			t.Fatal(err)
		}
		if got := sum(resp.Body); got != want {
			t.Fatalf("download of %s: got %s, want %s", path, got, want)
		}
		_ = resp.Body.Close()
	}
	close(stop)
	p := <-peak
	t.Logf("4 × %d MiB passed; the heap grew by %d KiB", long>>20, p>>10)
	if p > 24<<20 {
		t.Fatal("the streams were kept in memory")
	}
	if n := f.Connections(); n != 1 {
		t.Fatalf("%d client connections, want one that carried all", n)
	}
}

// peakHeap tells how far the heap grew until it was told to stop.
func peakHeap(stop <-chan struct{}) (peak uint64) {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before := m.HeapAlloc
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapAlloc-min(before, m.HeapAlloc))
		select {
		case <-stop:
			return peak
		case <-tick.C:
		}
	}
}

// Requests sent ahead are answered in order, gated and ungated, with and without
// bodies.
func TestPipelinedRequests(t *testing.T) {
	f := start(t, echo(t).URL, nil)
	c := dial(t, f.addr)
	var raw strings.Builder
	var want []string
	for n := range 30 {
		switch n % 3 {
		case 0:
			fmt.Fprintf(&raw, "GET /%d HTTP/1.1\r\nHost: x\r\n\r\n", n)
			want = append(want, fmt.Sprintf("GET /%d ", n))
		case 1:
			fmt.Fprintf(&raw, "POST /book/%d HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", n)
			want = append(want, fmt.Sprintf("POST /book/%d abc", n))
		case 2:
			fmt.Fprintf(&raw, "POST /%d HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", n)
			want = append(want, fmt.Sprintf("POST /%d abc", n))
		}
	}
	c.send(raw.String())
	for _, w := range want {
		if _, body := c.answer("POST"); body != w {
			t.Fatalf("got %q, want %q", body, w)
		}
	}
}

// An answer of unknown length ends, for a client of HTTP/1.0, with the connection;
// one of known length does not.
func TestHTTP10(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Proto != "HTTP/1.1" || r.Header.Get("Connection") != "" {
			t.Errorf("the backend got %s, Connection %q", r.Proto, r.Header.Get("Connection"))
		}
		for range 3 {
			_, _ = io.WriteString(w, "part ")
			if r.URL.Path == "/chunks" {
				w.(http.Flusher).Flush()
			}
		}
	}))
	defer server.Close()
	f := start(t, server.URL, nil)

	c := dial(t, f.addr)
	c.send("GET /chunks HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
	head := c.rawAnswer()
	if strings.Contains(head, "Transfer-Encoding") || !strings.Contains(head, "Connection: close\r\n") {
		t.Fatalf("head %q", head)
	}
	if rest, err := io.ReadAll(c.in); string(rest) != "part part part " || err != nil {
		t.Fatalf("body %q, %v", rest, err)
	}

	c = dial(t, f.addr)
	for range 2 {
		c.send("GET /length HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
		if resp, body := c.answer("GET"); body != "part part part " || resp.Header.Get("Connection") != "keep-alive" {
			t.Fatalf("%v %q", resp.Header, body)
		}
	}
	c.send("GET /length HTTP/1.0\r\n\r\n")
	if _, body := c.answer("GET"); body != "part part part " || !c.closed() {
		t.Fatalf("body %q, or the connection stays open", body)
	}
}

// What the backend cut, the client sees cut, whatever the framing.
func TestCutAnswersStayCut(t *testing.T) {
	big := strings.Repeat("x", 100<<10)
	for _, test := range []struct{ name, proto, raw string }{
		{"length", "1.1", "HTTP/1.1 200 OK\r\nX-Then: close\r\nContent-Length: 200000\r\n\r\n" + big},
		{"chunks", "1.1", "HTTP/1.1 200 OK\r\nX-Then: close\r\nTransfer-Encoding: chunked\r\n\r\n19000\r\n" + big + "\r\n"},
		{"chunks to HTTP/1.0", "1.0", "HTTP/1.1 200 OK\r\nX-Then: close\r\nTransfer-Encoding: chunked\r\n\r\n19000\r\n" + big + "\r\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			url, _ := rawBackend(t, test.raw)
			f := start(t, url, nil)
			c := dial(t, f.addr)
			c.send("GET / HTTP/" + test.proto + "\r\nHost: x\r\n\r\n")
			resp, err := http.ReadResponse(c.in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = io.ReadAll(resp.Body); err == nil {
				t.Fatal("half an answer looks whole")
			}
		})
	}
	t.Run("short", func(t *testing.T) {
		url, _ := rawBackend(t, "HTTP/1.1 200 OK\r\nX-Then: close\r\nContent-Length: 10\r\n\r\nhello")
		f := start(t, url, nil)
		if resp, _ := ask(t, f.addr, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); resp.StatusCode != 502 {
			t.Fatalf("status %d", resp.StatusCode)
		}
	})
}

// Events come through one by one.
func TestEventsComeAtOnce(t *testing.T) {
	next := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		for range 3 {
			<-next
			_, _ = io.WriteString(w, "data: x\n\n")
			w.(http.Flusher).Flush()
		}
	}))
	defer server.Close()
	f := start(t, server.URL, nil)
	c := dial(t, f.addr)
	c.send("GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
	resp, err := http.ReadResponse(c.in, nil) // the head comes before any event
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 100)
	for range 3 {
		next <- struct{}{}
		if n, err := resp.Body.Read(p); string(p[:n]) != "data: x\n\n" || err != nil && err != io.EOF {
			t.Fatalf("%q %v", p[:n], err)
		}
	}
}

// Without an answer from the backend, an ungated request gets a problem, and no
// Gate-* fields.
func TestFailedPass(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	broken, _ := rawBackend(t, "X-Then: close\r\n\r\n")
	for url, status := range map[string]int{
		"http://127.0.0.1:1":               502,
		"http://" + silent.Addr().String(): 504,
		broken:                             502,
	} {
		f := start(t, url, nil)
		resp, body := ask(t, f.addr, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		if resp.StatusCode != status || !strings.Contains(body, `"urn:slotgate:upstream-`) || strings.Contains(fmt.Sprint(resp.Header), "Gate-") {
			t.Errorf("%s: %d %v %s", url, resp.StatusCode, resp.Header, body)
		}
	}
}

// A backend that refuses a long upload early is heard: by a client that sends on, by
// one that pauses for the answer, and by one that was asked for its body.
func TestEarlyRefusalByTheBackend(t *testing.T) {
	url, _ := rawBackend(t, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig")
	f := start(t, url, nil, func(c *rules.ServerConfig) { c.IdleTimeout, c.ReadTimeout = time.Minute, time.Minute })
	for name, framing := range map[string]string{
		"length":           "Content-Length: 8388608\r\n",
		"chunks":           "Transfer-Encoding: chunked\r\n",
		"length, expected": "Content-Length: 8388608\r\nExpect: 100-continue\r\n",
		"chunks, expected": "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n",
	} {
		for part, size := range map[string]int{"whole": 8 << 20, "a part of it": 100 << 10, "one byte": 1, "nothing": 0} {
			if name == "length" && size == 0 {
				continue // no client waits for nothing; the handler runs at the first byte
			}
			t.Run(name+" "+part, func(t *testing.T) {
				c := dial(t, f.addr)
				body := strings.Repeat("x", size)
				if strings.HasPrefix(name, "chunks") && size > 0 {
					body = fmt.Sprintf("%x\r\n%s\r\n", size, body)
				}
				c.send("POST / HTTP/1.1\r\nHost: x\r\n" + framing + "\r\n")
				if strings.HasSuffix(name, "expected") {
					// 100 comes first, unless the refusal was quicker.
					if first, err := c.in.Peek(len("HTTP/1.1 1")); err != nil || string(first) != "HTTP/1.1 1" {
						body = ""
					} else if _, err := http.ReadResponse(c.in, nil); err != nil {
						t.Fatal(err)
					}
				}
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					_, _ = io.WriteString(c, body)
				}()
				resp, got := c.answer("POST")
				if resp.StatusCode != 413 || got != "big" || !resp.Close {
					t.Fatalf("%d %q, close %v", resp.StatusCode, got, resp.Close)
				}
				<-sent
				if half, ok := c.Conn.(*net.TCPConn); !ok || half.CloseWrite() != nil || !c.closed() {
					t.Fatal("the connection stays open")
				}
			})
		}
	}
}

// A client that breaks off a download, or an upload, ends it at the backend too.
func TestClientThatBreaksOff(t *testing.T) {
	ended := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		if r.Method == "GET" {
			for err == nil {
				_, err = w.Write(make([]byte, 64<<10))
			}
		} else {
			_, err = io.Copy(io.Discard, r.Body)
		}
		ended <- err
	}))
	defer server.Close()
	f := start(t, server.URL, nil)
	for _, raw := range []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 50000),
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nc350\r\n" + strings.Repeat("x", 50000) + "\r\n",
	} {
		c := dial(t, f.addr)
		c.send(raw)
		if raw[0] == 'G' {
			_, _ = c.in.ReadByte()
		}
		_ = c.Close()
		select {
		case err := <-ended:
			if err == nil {
				t.Fatalf("%.60q: looked whole to the backend", raw)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%.60q: the backend was not told", raw)
		}
	}
}

// A client's close is about its own connection.
func TestCloseStaysOnItsSide(t *testing.T) {
	url, heads := rawBackend(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	var opened atomic.Int32
	observe := func(e upstream.Exchange) {
		if !e.Reused {
			opened.Add(1)
		}
	}
	backend, err := upstream.New(upstream.Options{URL: url, KeepAlive: time.Minute, Observe: observe})
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	f := start(t, url, nil)
	f.Server.backend = backend
	for range 5 {
		c := dial(t, f.addr)
		c.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if resp, _ := c.answer("GET"); !resp.Close || !c.closed() {
			t.Fatal("the client's connection stays open")
		}
		if head := <-heads; strings.Contains(head, "Connection") {
			t.Fatalf("backend got %q", head)
		}
	}
	if n := opened.Load(); n != 1 {
		t.Fatalf("%d connections to the backend, want 1", n)
	}
}
