package stage

import (
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
)

// Backend is the sample API, serving on loopback in this process.
type Backend struct {
	*booking.Server
	URL string
}

// StartBackend starts it; it ends with the test.
func StartBackend(t testing.TB, o booking.Options) *Backend {
	t.Helper()
	server, err := booking.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return &Backend{Server: server, URL: Serve(t, server)}
}

// Counts is what the database says of each lesson.
func (b *Backend) Counts(t testing.TB) []booking.Sale {
	t.Helper()
	sales, err := b.Sales(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return sales
}

// Serve serves a handler on loopback until the test ends, and returns its URL.
func Serve(t testing.TB, handler http.Handler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() { defer close(done); _ = web.Serve(listener) }()
	t.Cleanup(func() {
		web.Close()
		<-done
	})
	return "http://" + listener.Addr().String()
}
