package testbed

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// BackendProxy is an HTTP/1.1 reverse proxy before a real backend. To its clients it
// is that backend, with faults: ordered for a request, or drawn. Bodies are passed on
// whole, not as they come; upgrades are not supported. A request that it has passed
// on is carried out even if its client leaves.
//
// All methods are safe for concurrent use.
type BackendProxy struct {
	t         testing.TB
	target    string
	door      *door
	transport *http.Transport
	life      context.Context // ends with the test

	mu        sync.Mutex
	counts    [faultKinds]int
	requests  int // that faults may befall
	orders    []backendOrder
	odds      map[BackendFault]float64
	seed      uint64
	drawn     int // requests that a fault was drawn for
	eligible  func(*http.Request) bool
	slowness  time.Duration
	shutTime  time.Duration
	refused   bool        // by Refuse
	reopening *time.Timer // after a RefuseBackend
}

// FaultyBackend listens on a free loopback port and passes on to the backend at
// target (host:port). It ends with the test.
func FaultyBackend(t testing.TB, target string) *BackendProxy {
	t.Helper()
	life, end := context.WithCancel(context.Background())
	b := &BackendProxy{
		t: t, target: target, life: life,
		transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 256},
		slowness:  200 * time.Millisecond, shutTime: 200 * time.Millisecond,
	}
	t.Cleanup(b.transport.CloseIdleConnections)
	door, err := openDoor(t, loopback(FreePort(t)), func(client net.Conn) visit { return &call{proxy: b, client: client} })
	if err != nil {
		t.Fatal(err)
	}
	b.door = door
	t.Cleanup(end) // before the door waits for calls
	return b
}

// Addr returns the host:port to connect to.
func (b *BackendProxy) Addr() string { return b.door.addr }

// Only lets faults befall, and Requests count, only the requests that eligible
// accepts; nil stands for all. It must not touch the body.
func (b *BackendProxy) Only(eligible func(*http.Request) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.eligible = eligible
}

// Order lets fault befall the n-th request from now on, 1 being the next. Where two
// orders meet, the first given counts. NoFault spares a request a drawn one.
func (b *BackendProxy) Order(fault BackendFault, n int) {
	b.t.Helper()
	if n < 1 || fault < NoFault || fault >= faultKinds {
		b.t.Fatalf("testbed: Order(%v, %d): want a fault and n >= 1", fault, n)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.orders = append(b.orders, backendOrder{fault, n})
}

// Draw lets each request from now on suffer a fault with the given probabilities,
// whose sum is at most 1. Which one depends on nothing but the seed and how many
// requests came since Draw. Empty odds end it.
func (b *BackendProxy) Draw(seed uint64, odds map[BackendFault]float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seed, b.odds, b.drawn = seed, odds, 0
}

// SlowBy sets how late Slow and StrayLate are, 200 ms at first.
func (b *BackendProxy) SlowBy(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slowness = d
}

// RefuseFor sets how long RefuseBackend keeps the port closed, 200 ms at first.
func (b *BackendProxy) RefuseFor(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shutTime = d
}

// Refuse with true closes the listening port: new connections are refused by the
// kernel, existing ones live on. With false it opens the port again.
func (b *BackendProxy) Refuse(refuse bool) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused = refuse
	b.door.refuse(refuse)
}

// Sever cuts all connections.
func (b *BackendProxy) Sever() { b.door.sever() }

// Requests returns how many requests have come.
func (b *BackendProxy) Requests() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.requests
}

// Count returns how many requests a fault was chosen for, and with NoFault how many
// were spared. Whatever is chosen, a request that the backend leaves unanswered ends in
// a reset connection.
func (b *BackendProxy) Count(fault BackendFault) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts[fault]
}

// choose counts a request and returns what is to befall it.
func (b *BackendProxy) choose(r *http.Request) BackendFault {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.eligible != nil && !b.eligible(r) {
		return NoFault
	}
	b.requests++
	fault, ordered := NoFault, false
	waiting := b.orders[:0]
	for _, o := range b.orders {
		if o.after--; o.after > 0 {
			waiting = append(waiting, o)
		} else if !ordered {
			fault, ordered = o.fault, true
		}
	}
	b.orders = waiting
	if len(b.odds) > 0 {
		b.drawn++
		if !ordered {
			fault = draw(b.seed, b.drawn, b.odds)
		}
	}
	b.counts[fault]++
	return fault
}

// shut closes the port for a while.
func (b *BackendProxy) shut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.door.refuse(true)
	if b.reopening != nil {
		b.reopening.Stop()
	}
	b.reopening = time.AfterFunc(b.shutTime, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if !b.refused {
			b.door.refuse(false)
		}
	})
}
