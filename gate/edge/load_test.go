package edge

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/upstream"
	"github.com/slotgate/slotgate/rules"
)

// slowClients is a crowd that sends a byte now and then.
const slowClients = 200

// Clients that send their heads or bodies a byte at a time do not delay others.
func TestSlowClientsDelayNobody(t *testing.T) {
	f := start(t, echo(t).URL, nil)
	ctx, cancel := context.WithCancel(context.Background())
	var crowd sync.WaitGroup
	defer crowd.Wait()
	defer cancel()
	for n := range slowClients {
		c := dial(t, f.addr)
		path := []string{"/x", "/book"}[n%2]
		fast, slow := "", "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"
		if n%4 >= 2 {
			fast, slow = slow, strings.Repeat("b", 100)
		}
		c.send(fast)
		crowd.Go(func() {
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for i := range len(slow) {
				select {
				case <-tick.C:
					_, _ = c.Write([]byte{slow[i]})
				case <-ctx.Done():
					_ = c.Close()
					return
				}
			}
		})
	}
	for f.Connections() < slowClients {
		time.Sleep(time.Millisecond)
	}
	quick := dial(t, f.addr)
	var took []time.Duration
	for n := range 100 {
		path := []string{"/x", "/book"}[n%2]
		time.Sleep(25 * time.Millisecond) // so that the slow ones send some bytes meanwhile
		began := time.Now()
		quick.send("POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi")
		if _, body := quick.answer("POST"); body != "POST "+path+" hi" {
			t.Fatal(body)
		}
		took = append(took, time.Since(began))
	}
	late := 0
	for _, d := range took {
		if d > 100*time.Millisecond {
			late++
		}
	}
	if late > 2 {
		t.Fatalf("%d of %d requests took more than 100 ms: %v", late, len(took), took)
	}
}

// A request that is not gated lasts as long as something moves, many times the
// time-outs: ten here, a minute with the default ones under SLOTGATE_SOAK.
func TestLongRequestsAreNotCut(t *testing.T) {
	const parts = 40
	lasts, timeout, idle := 2*time.Second, 200*time.Millisecond, 200*time.Millisecond
	if os.Getenv("SLOTGATE_SOAK") != "" {
		lasts, timeout, idle = time.Minute, 5*time.Second, 10*time.Second
	}
	every := lasts / parts
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			n, err := io.Copy(io.Discard, r.Body)
			_, _ = fmt.Fprintf(w, "%d %v", n, err)
			return
		}
		tick := time.NewTicker(every)
		defer tick.Stop()
		for range parts {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
			<-tick.C
		}
	}))
	defer s.Close()
	backend, err := upstream.New(upstream.Options{URL: s.URL, Timeout: timeout, IdleTimeout: idle})
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	f := start(t, s.URL, nil, func(c *rules.ServerConfig) { c.ReadTimeout, c.IdleTimeout = timeout, idle })
	f.Server.backend = backend

	var both sync.WaitGroup
	for _, test := range []struct{ name, head, part, end, want string }{
		{"down", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "", "", strings.Repeat("x", parts)},
		{"up", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 40000\r\n\r\n", strings.Repeat("x", 40000/parts), "", "40000 <nil>"},
		{"up in chunks", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n", "0\r\n\r\n", "40 <nil>"},
	} {
		c := dial(t, f.addr)
		_ = c.SetDeadline(time.Now().Add(lasts + 20*time.Second))
		both.Go(func() {
			began := time.Now()
			_, _ = io.WriteString(c, test.head)
			if test.part != "" {
				tick := time.NewTicker(every)
				defer tick.Stop()
				for range parts {
					_, _ = io.WriteString(c, test.part)
					<-tick.C
				}
				_, _ = io.WriteString(c, test.end)
			}
			resp, err := http.ReadResponse(c.in, nil)
			if err != nil {
				t.Errorf("%s: %v", test.name, err)
				return
			}
			body, err := io.ReadAll(resp.Body)
			if took := time.Since(began); resp.StatusCode != 200 || string(body) != test.want || err != nil || took < lasts/2 {
				t.Errorf("%s, after %v: %d %q, %v", test.name, took, resp.StatusCode, body, err)
			}
		})
	}
	both.Wait()
}

// zeros is a body of n bytes that costs nothing to make.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// A body longer than memory passes both ways in constant memory: 256 MiB, or 2 GiB
// under SLOTGATE_SOAK.
func TestMemoryOfLongStreams(t *testing.T) {
	size := int64(256 << 20)
	if os.Getenv("SLOTGATE_SOAK") != "" {
		size = 2 << 30
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if n != r.ContentLength || err != nil {
			t.Errorf("the backend got %d bytes of %d: %v", n, r.ContentLength, err)
		}
		w.Header().Set("Content-Length", fmt.Sprint(n))
		_, _ = io.Copy(w, io.LimitReader(zeros{}, n))
	}))
	defer s.Close()
	f := start(t, s.URL, nil)
	// What a process has once it is warm, the race detector's memory for it too.
	before := streamBothWays(t, f.addr, 32<<20)
	peak := streamBothWays(t, f.addr, size)
	t.Logf("%d MiB up and down; the process grew by %d KiB", size>>20, (peak-before)>>10)
	if peak-before > 32<<20 {
		t.Fatalf("the process grew by %d MiB", (peak-before)>>20)
	}
}

// streamBothWays sends and gets size bytes, and tells the most memory that the
// process had meanwhile.
func streamBothWays(t *testing.T, addr string, size int64) (peak int64) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+addr+"/", io.LimitReader(zeros{}, size))
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = size
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	peak = residentBytes(t)
	buf := make([]byte, 1<<20)
	var got int64
	for err == nil {
		var n int
		n, err = resp.Body.Read(buf)
		if got += int64(n); got%(16<<20) < int64(n) {
			peak = max(peak, residentBytes(t))
		}
	}
	if err != io.EOF || got != size {
		t.Fatalf("got %d bytes of %d: %v", got, size, err)
	}
	return peak
}

// residentBytes is the memory of this process that is in RAM (proc(5)).
func residentBytes(t *testing.T) int64 {
	t.Helper()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatalf("this test needs Linux's /proc: %v", err)
	}
	var total, resident int64
	if _, err := fmt.Sscan(string(statm), &total, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * int64(os.Getpagesize())
}
