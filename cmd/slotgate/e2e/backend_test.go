package e2e

import (
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
)

// legacy is the sample API, serving on loopback in this process.
type legacy struct {
	*booking.Server
	url string
}

func startLegacy(t testing.TB, o booking.Options) *legacy {
	t.Helper()
	server, err := booking.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: server, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() { defer close(done); _ = web.Serve(listener) }()
	t.Cleanup(func() {
		web.Close()
		<-done
		server.Close()
	})
	return &legacy{Server: server, url: "http://" + listener.Addr().String()}
}

// lessons is the usual configuration in front of the sample API; pool, rule and
// upstream are further settings in flow style.
func lessons(backend, store, upstream, pool, rule string) string {
	return `
upstream: { url: "` + backend + `"` + upstream + ` }
store: { ` + store + ` }
pools:
  lessons: { ` + pool + ` }
rules:
  - name: book-lesson
    match: { methods: [POST], path: "/api/lessons/{lesson}/bookings" }
    action: book
    pool: lessons
    slot: path:lesson
    subject: json:/student_id
    outcomes:
      - { when: { status: 409, json: { /error: sold_out } }, is: sold_out }
      - { when: { status: 409, json: { /error: duplicate } }, is: duplicate }
      - { when: { status: 3xx }, is: refused }
` + rule
}

// redisStore has a time-out that a busy test machine does not reach by itself: only
// the tests of an outage want one.
func redisStore(addr string) string {
	return `kind: redis, timeout: 5s, addresses: ["` + addr + `"]`
}

const memoryStore = "kind: memory"

const keyed = "    idempotency: { key: [header:Idempotency-Key] }\n"
