package upstream

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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
	"testing/iotest"
	"time"

	"github.com/slotgate/slotgate/gate"
)

// noise is n bytes that do not repeat, and their sum once they were read.
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
	_, err := io.Copy(h, r)
	if err != nil {
		return err.Error()
	}
	return hex.EncodeToString(h.Sum(nil))
}

const long = 64 << 20

// Streams keep their bytes and need no memory to speak of, whatever the framing.
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
		w.Header().Set("X-Framing", fmt.Sprint(r.ContentLength))
		_, _ = io.WriteString(w, sum(r.Body))
	}))
	defer server.Close()
	c := newClient(t, "", func(o *Options) { o.URL = server.URL })

	stop, peak := make(chan struct{}), make(chan uint64)
	go func() { peak <- peakHeap(stop) }()
	for _, length := range []int64{long, Unknown} {
		s, err := c.Pass(request("POST", "/", ""), newNoise(long), length)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(s.Body)
		_ = s.Body.Close()
		if string(got) != want || s.Early {
			t.Fatalf("upload of length %d: backend got %s, want %s", length, got, want)
		}
	}
	for _, path := range []string{"/length", "/chunks"} {
		s, err := c.Pass(request("GET", path, ""), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if wantLength := map[string]int64{"/length": long, "/chunks": -1}[path]; s.Length != wantLength {
			t.Fatalf("%s has length %d", path, s.Length)
		}
		if got := sum(s.Body); got != want {
			t.Fatalf("download of %s: got %s, want %s", path, got, want)
		}
		_ = s.Body.Close()
	}
	close(stop)
	p := <-peak
	t.Logf("4 × %d MiB passed; the heap grew by %d KiB", long>>20, p>>10)
	if p > 16<<20 {
		t.Fatal("the streams were kept in memory")
	}
	if n := len(c.open.idle); n != 1 {
		t.Fatalf("%d idle connections, want one that carried all", n)
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

// Each event of an endless answer comes through when it is sent.
func TestEventsComeAtOnce(t *testing.T) {
	next := make(chan struct{})
	b := startBackend(t, func(c net.Conn, in *bufio.Reader, _ int) {
		if _, more := receive(in); !more {
			return
		}
		send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")(c)
		for range 3 {
			<-next
			send("6\r\nevent\n\r\n")(c)
		}
		wait(c)
	})
	s, err := newClient(t, b.addr).Pass(request("GET", "/", ""), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Body.Close() }()
	p := make([]byte, 100)
	for range 3 {
		next <- struct{}{}
		n, err := s.Body.Read(p)
		if err != nil || string(p[:n]) != "event\n" {
			t.Fatalf("read %q, %v", p[:n], err)
		}
	}
}

func TestPassedAnswerThatIsCut(t *testing.T) {
	for name, raw := range map[string]string{
		"length": "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
		"chunks": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			b := startBackend(t, func(c net.Conn, in *bufio.Reader, _ int) {
				if _, more := receive(in); more {
					send(raw)(c)
				}
			})
			c := newClient(t, b.addr)
			s, err := c.Pass(request("GET", "/", ""), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(s.Body)
			if string(got) != "hello" || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("read %q, %v", got, err)
			}
			_ = s.Body.Close()
			if len(c.open.idle) != 0 || len(c.open.inUse) != 0 {
				t.Fatal("the broken connection was kept")
			}
		})
	}
}

// A client that breaks off must not make half a request look whole.
func TestPassedRequestThatIsCut(t *testing.T) {
	for _, length := range []int64{1 << 20, Unknown} {
		cut := make(chan error, 1)
		b := startBackend(t, func(c net.Conn, in *bufio.Reader, _ int) {
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, err = io.Copy(io.Discard, req.Body)
			cut <- err
		})
		broken := io.MultiReader(newNoise(100<<10), iotest.ErrReader(io.ErrUnexpectedEOF))
		_, err := newClient(t, b.addr).Pass(request("POST", "/", ""), broken, length)
		var fromClient *RequestBodyError
		if !errors.As(err, &fromClient) {
			t.Fatalf("length %d: %v", length, err)
		}
		if err := <-cut; err == nil {
			t.Fatalf("length %d: the backend took the cut body for whole", length)
		}
	}
}

// A short body that never comes takes no connection.
func TestShortBodyIsReadFirst(t *testing.T) {
	var conns atomic.Int32
	b := startBackend(t, func(_ net.Conn, _ *bufio.Reader, n int) { conns.Store(int32(n)) })
	_, err := newClient(t, b.addr).Pass(request("POST", "/", ""), strings.NewReader("ab"), 3)
	var fromClient *RequestBodyError
	if !errors.As(err, &fromClient) || conns.Load() != 0 {
		t.Fatalf("%v, %d connections", err, conns.Load())
	}
}

// A backend that refuses early is heard; the rest of the body is not sent.
func TestPassedRequestThatIsRefusedEarly(t *testing.T) {
	b := startBackend(t, func(c net.Conn, in *bufio.Reader, _ int) {
		_, _ = in.ReadString('\n')
		send("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig")(c)
		wait(c)
	})
	c := newClient(t, b.addr)
	source := newNoise(long)
	s, err := c.Pass(request("POST", "/", ""), source, long)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(s.Body)
	_ = s.Body.Close()
	if s.Status != 413 || string(got) != "big" || !s.Early {
		t.Fatalf("got %d %q early %v", s.Status, got, s.Early)
	}
	if source.left == 0 {
		t.Fatal("the whole body was sent to a backend that had refused it")
	}
	if len(c.open.idle) != 0 {
		t.Fatal("a connection with half a request on it was kept")
	}
}

// A backend that begins a good answer early still gets the whole request.
func TestPassedRequestThatIsAnsweredEarly(t *testing.T) {
	want := sum(newNoise(4 << 20))
	b := startBackend(t, func(c net.Conn, in *bufio.Reader, _ int) {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		send("HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n")(c)
		send(sum(req.Body))(c)
		wait(c)
	})
	c := newClient(t, b.addr)
	s, err := c.Pass(request("POST", "/", ""), newNoise(4<<20), 4<<20)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(s.Body)
	_ = s.Body.Close()
	if string(got) != want || s.Early || len(c.open.idle) != 1 {
		t.Fatalf("backend got %s, want %s", got, want)
	}
}

// A stream may pause for longer than a page may take to begin.
func TestStreamsMayPause(t *testing.T) {
	b := startBackend(t, func(c net.Conn, in *bufio.Reader, _ int) {
		if _, ok := receive(in); !ok {
			return
		}
		send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")(c)
		for range 3 {
			<-time.After(150 * time.Millisecond)
			send("1\r\nx\r\n")(c)
		}
		send("0\r\n\r\n")(c)
	})
	c := newClient(t, b.addr, func(o *Options) { o.Timeout, o.IdleTimeout = 50*time.Millisecond, 5*time.Second })
	s, err := c.Pass(request("GET", "/", ""), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Body.Close() }()
	if body, err := io.ReadAll(s.Body); err != nil || string(body) != "xxx" {
		t.Fatalf("%q %v", body, err)
	}
}

func TestPassTimeouts(t *testing.T) {
	quick := func(o *Options) { o.Timeout, o.IdleTimeout = 100*time.Millisecond, 100*time.Millisecond }
	t.Run("no head", func(t *testing.T) {
		b := startBackend(t, func(c net.Conn, _ *bufio.Reader, _ int) { wait(c) })
		if _, err := newClient(t, b.addr, quick).Pass(request("GET", "/", ""), nil, 0); failureOf(err) != gate.TimedOut {
			t.Fatal(err)
		}
	})
	t.Run("does not read", func(t *testing.T) {
		release := make(chan struct{})
		b := startBackend(t, func(net.Conn, *bufio.Reader, int) { <-release })
		defer close(release)
		if _, err := newClient(t, b.addr, quick).Pass(request("POST", "/", ""), newNoise(long), long); failureOf(err) != gate.TimedOut {
			t.Fatal(err)
		}
	})
	t.Run("pauses in the body", func(t *testing.T) {
		b := startBackend(t, func(c net.Conn, _ *bufio.Reader, _ int) {
			send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe")(c)
			wait(c)
		})
		s, err := newClient(t, b.addr, quick).Pass(request("GET", "/", ""), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Body.Close() }()
		if _, err := io.ReadAll(s.Body); !isTimeout(err) {
			t.Fatal(err)
		}
	})
	t.Run("a long answer that does not pause", func(t *testing.T) {
		const parts, every = 65, 20 * time.Millisecond // longer than the time-out
		b := startBackend(t, func(c net.Conn, _ *bufio.Reader, _ int) {
			send(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", parts))(c)
			tick := time.NewTicker(every)
			defer tick.Stop()
			for range parts {
				<-tick.C
				send("x")(c)
			}
			wait(c)
		})
		patient := func(o *Options) { o.Timeout = time.Second }
		s, err := newClient(t, b.addr, patient).Pass(request("GET", "/", ""), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Body.Close() }()
		if got, err := io.ReadAll(s.Body); len(got) != parts || err != nil {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	})
}

// Other traffic must not take the connections of bookings.
func TestPoolsAreSeparate(t *testing.T) {
	b := startBackend(t, func(c net.Conn, in *bufio.Reader, _ int) {
		for {
			r, more := receive(in)
			if !more || strings.HasPrefix(r.head, "GET") {
				wait(c)
				return
			}
			send(ok("booked"))(c)
		}
	})
	c := newClient(t, b.addr, func(o *Options) { o.MaxConnections = 1; o.Timeout = 5 * time.Second })
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = c.Pass(request("GET", "/slow", ""), nil, 0)
	}()
	until(t, "busy with a slow page", func() bool { return len(c.open.inUse) == 1 })
	wantBody(t, c, request("POST", "/", "x"), "booked")
	b.stop()
	<-done
}
