package faults

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
)

// The three ways to sell, side by side in every cell: each is a pool, a rule and a
// database of its own, behind the same gates and in the same store.
const (
	// pass lets bookings through while the store is away; the backend's constraints
	// bound what is sold.
	pass = "pass"
	// reject refuses while the store is away. Its backend has no constraints, reads
	// first and writes later: what is sold is the gates' doing alone.
	reject = "reject"
	// local is before such a backend too. Without its store each gate admits at most
	// its declared share of what it last knew.
	local = "local"
)

var pools = []string{pass, reject, local}

// The sizes of one pool.
const (
	lessons = 4
	seats   = 10 // of each lesson
	crowd   = 20 // students who want each lesson
)

// refresh is how often truth is read.
const refresh = time.Second

// timeouts are of the store and of the backend. That of the part which has no fault
// is one that a busy test machine does not reach by itself.
type timeouts struct{ store, upstream time.Duration }

// hall is a sale's place: databases, backend, store and two gates.
type hall struct {
	t       *testing.T
	tables  map[string]stage.Tables // by pool
	backend map[string]*booking.Server
	front   *stage.Front
	holdTTL time.Duration
	config  string

	mu    sync.Mutex
	gates []*stage.Gate
}

// openHall starts all of it in front of a store.
func openHall(t *testing.T, store stage.Topology, limits timeouts) *hall {
	t.Helper()
	// As short as the time-outs let it be.
	h := &hall{t: t, holdTTL: limits.upstream + 2*limits.store + 500*time.Millisecond, tables: map[string]stage.Tables{}, backend: map[string]*booking.Server{}}
	routes := http.NewServeMux()
	for _, pool := range pools {
		h.tables[pool] = stage.PostgresTables(t)
		h.backend[pool] = stage.StartBackend(t, booking.Options{
			Database: h.tables[pool].Database, Style: booking.Naive, NoConstraints: pool != pass,
			Delay: 2 * time.Millisecond, Lessons: lessons, Seats: seats * size(),
		}).Server
		routes.Handle("/"+pool+"/", http.StripPrefix("/"+pool, h.backend[pool]))
	}
	h.front = stage.StartFront(t, routes)
	h.config = h.configuration(store, limits)
	for range 2 {
		h.gates = append(h.gates, stage.StartGate(t, h.config))
	}
	return h
}

// configuration is numeric where the backend's constraints stand behind it. Where
// nothing does, it is all that exactness takes: truth, keep_unknown and unknown:
// reject.
func (h *hall) configuration(store stage.Topology, limits timeouts) string {
	const withoutConstraints = "hold_ttl: %v, one_per_subject: true, keep_unknown: true"
	truth := func(pool string) string {
		return h.tables[pool].Remainder("lesson_slot", fmt.Sprintf("refresh: %v, hot: 300ms, lag: 100ms, timeout: 5s, max_rate: 200/s", refresh))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "upstream: { url: %q, timeout: %v }\nstore: { %s }\npools:\n", h.front.URL(), limits.upstream, store.Store(fmt.Sprintf("timeout: %v", limits.store)))
	fmt.Fprintf(&b, "  pass: { capacity: %d, hold_ttl: %v, one_per_subject: true }\n", seats*size(), h.holdTTL)
	fmt.Fprintf(&b, "  reject: { %s, "+withoutConstraints+" }\n", truth(reject), h.holdTTL)
	fmt.Fprintf(&b, "  local: { %s, "+withoutConstraints+" }\nrules:\n", truth(local), h.holdTTL)
	for _, pool := range pools {
		unknown := "reject"
		if pool == pass {
			unknown = "retry"
		}
		fmt.Fprintf(&b, `  - name: %[1]s
    match: { methods: [POST], path: "/%[1]s/api/lessons/{lesson}/bookings" }
    action: book
    pool: %[1]s
    slot: path:lesson
    subject: json:/student_id
    outcomes:
      - { when: { status: 409, json: { /error: sold_out } }, is: sold_out }
      - { when: { status: 409, json: { /error: duplicate } }, is: duplicate }
      - { when: { status: 3xx }, is: refused }
    idempotency: { key: [header:Idempotency-Key], unknown: %[2]s }
    on_store_failure: %[1]s
    passthrough: { slot: { rate: 1000/s, burst: 1000 }, rule: { rate: 5000/s, burst: 5000 }, max_inflight: 256, share: 0.5 }
`, pool, unknown)
	}
	return b.String()
}

// gate is where clients go.
func (h *hall) gate(n int) *stage.Gate {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gates[n]
}

// restart starts a gate anew, with an address of its own.
func (h *hall) restart(n int) {
	h.t.Helper()
	fresh := stage.StartGate(h.t, h.config)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gates[n] = fresh
}

// rest waits until every gate decides by its store and has settled all it can.
func (h *hall) rest() {
	h.t.Helper()
	stage.NormalAgain(h.t, h.gates...)
	stage.Eventually(h.t, 15*time.Second, func() string {
		for _, g := range h.gates {
			if status := stage.Send("GET", g.Admin+"/v1/status", ""); !bytes.Contains(status.Body, []byte(`"settle_backlog":0`)) {
				return fmt.Sprintf("gate %s has settlements to make: %s", g.URL, status.Body)
			}
		}
		return ""
	})
}
