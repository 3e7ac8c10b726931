package upstream

import (
	"bufio"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/rules"
)

const (
	closed = iota
	halfOpen
	opened
)

// switchable is a backend that answers, or stays silent, as told.
func switchable(t *testing.T) (addr string, silent *atomic.Bool, hits *atomic.Int32) {
	silent, hits = new(atomic.Bool), new(atomic.Int32)
	b := startBackend(t, func(c net.Conn, in *bufio.Reader, _ int) {
		for {
			if _, more := receive(in); !more {
				return
			}
			hits.Add(1)
			if silent.Load() {
				wait(c)
				return
			}
			send(ok("hi"))(c)
		}
	})
	return b.addr, silent, hits
}

func breakerOf(openFor time.Duration) func(*Options) {
	return func(o *Options) {
		o.Breaker = rules.BackendBreaker{FailureRatio: 0.5, MinRequests: 4, Window: 10 * time.Second, OpenFor: openFor, Probes: 3}
	}
}

func TestBreakerOpensAndCloses(t *testing.T) {
	addr, silent, hits := switchable(t)
	c := newClient(t, addr, breakerOf(100*time.Millisecond))
	const brief, ample = 30 * time.Millisecond, 5 * time.Second
	try := func(within time.Duration) gate.BackendFailure {
		a, err := forward(c, request("POST", "/", "x"), within)
		if err == nil {
			a.Release()
		}
		return failureOf(err)
	}
	silent.Store(true)
	for n := range 4 {
		if got := try(brief); got != gate.TimedOut {
			t.Fatalf("request %d: failure %d, want a time-out", n, got)
		}
	}
	if got := c.BreakerState(); got != opened {
		t.Fatalf("state %d after four time-outs, want open", got)
	}
	before := hits.Load()
	_, err := forward(c, request("POST", "/", "x"), time.Second)
	if failureOf(err) != gate.BreakerOpen {
		t.Fatalf("open breaker: %v", err)
	}
	if after := err.(*gate.BackendError).RetryAfter; after <= 0 || after > 150*time.Millisecond {
		t.Fatalf("RetryAfter %v", after)
	}
	if hits.Load() != before {
		t.Fatal("a request passed the open breaker")
	}

	// A failed probe opens it again; it does not stay half-open.
	until(t, "half-open", func() bool { return c.BreakerState() == halfOpen })
	if got := try(brief); got != gate.TimedOut {
		t.Fatalf("probe: failure %d", got)
	}
	if got := c.BreakerState(); got != opened {
		t.Fatalf("state %d after a failed probe, want open", got)
	}

	silent.Store(false)
	until(t, "half-open again", func() bool { return c.BreakerState() == halfOpen })
	for n := range 3 {
		if got := try(ample); got != 0 {
			t.Fatalf("probe %d: failure %d", n, got)
		}
	}
	if got := c.BreakerState(); got != closed {
		t.Fatalf("state %d after three good probes, want closed", got)
	}
}

// Half-open lets three through, and the others are told to come back soon.
func TestBreakerProbesAreFew(t *testing.T) {
	addr, silent, hits := switchable(t)
	c := newClient(t, addr, breakerOf(50*time.Millisecond))
	silent.Store(true)
	for range 4 {
		_, _ = forward(c, request("POST", "/", "x"), 30*time.Millisecond)
	}
	until(t, "half-open", func() bool { return c.BreakerState() == halfOpen })
	before := hits.Load()
	var wg sync.WaitGroup
	var refused atomic.Int32
	for range 100 {
		wg.Go(func() {
			_, err := forward(c, request("POST", "/", "x"), time.Second)
			if failureOf(err) == gate.BreakerOpen {
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	if n := hits.Load() - before; n != 3 || refused.Load() != 97 {
		t.Fatalf("%d probes reached the backend and %d were refused, want 3 and 97", n, refused.Load())
	}
	silent.Store(false)
	until(t, "closed", func() bool {
		if a, err := forward(c, request("POST", "/", "x"), time.Second); err == nil {
			a.Release()
		}
		return c.BreakerState() == closed
	})
}

func TestBreakerCountsConnectFailures(t *testing.T) {
	b := startBackend(t, answers(ok("")))
	b.stop()
	c := newClient(t, b.addr, breakerOf(time.Minute))
	for range 4 {
		if _, err := forward(c, request("POST", "/", "x"), time.Second); failureOf(err) != gate.NotConnected {
			t.Fatal(err)
		}
	}
	if c.BreakerState() != opened {
		t.Fatal("four refused connections did not open the breaker")
	}
}

// What does not speak against the backend's health does not open the breaker.
func TestBreakerDoesNotCount(t *testing.T) {
	for name, raw := range map[string]string{
		"5xx":    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
		"broken": "no HTTP\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			b := startBackend(t, answers(raw))
			c := newClient(t, b.addr, breakerOf(time.Minute))
			for range 20 {
				if a, err := forward(c, request("POST", "/", "x"), time.Second); err == nil {
					a.Release()
				}
			}
			if got := c.BreakerState(); got != closed {
				t.Fatalf("state %d, want closed", got)
			}
		})
	}
}

// until polls for a state that only time brings.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("never %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}
