package e2e

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/admin"
	"github.com/slotgate/slotgate/gate/edge"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/memstore"
	"github.com/slotgate/slotgate/gate/store/redisstore"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/gate/upstream"
	"github.com/slotgate/slotgate/rules"
)

// BenchmarkJourney drives a bare fasthttp proxy and the gate, in the same process
// and in front of the same instant backend, with the same clients. The ratio of
// their times is what counts; clients and backend share the machine with both.
func BenchmarkJourney(b *testing.B) {
	backend := serveFast(b, func(ctx *fasthttp.RequestCtx) {
		ctx.SetStatusCode(fasthttp.StatusCreated)
		ctx.SetContentType("application/json")
		ctx.SetBodyString(`{"data":{"booking_id":1}}`)
	})
	b.Run("bare proxy", func(b *testing.B) {
		to := &fasthttp.HostClient{Addr: backend, MaxConns: 512, MaxIdemponentCallAttempts: 1}
		volley(b, serveFast(b, func(ctx *fasthttp.RequestCtx) {
			if err := to.Do(&ctx.Request, &ctx.Response); err != nil {
				ctx.SetStatusCode(fasthttp.StatusBadGateway)
			}
		}), orders)
	})
	for _, s := range []struct {
		name string
		open func() store.Store
	}{
		{"memory", func() store.Store { return memstore.New(memstore.Options{MaxMemory: 8 << 30}) }},
		{"redis", func() store.Store {
			s, err := redisstore.Open(b.Context(), redisstore.Options{
				Addresses: []string{testbed.Redis(b).Addr()}, Prefix: "bench", Timeout: 5e9, Logger: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				b.Fatal(err)
			}
			return s
		}},
	} {
		b.Run("admit, "+s.name, func(b *testing.B) {
			volley(b, serveGate(b, backend, s.open(), "capacity: 1000000000"), orders)
		})
		b.Run("sold out, "+s.name, func(b *testing.B) {
			addr := serveGate(b, backend, s.open(), "capacity: 1")
			volleyOnce(b, addr, order(1, 1))
			volley(b, addr, func(n int64) string { return order(1, n+2) })
		})
		b.Run("replay, "+s.name, func(b *testing.B) {
			addr := serveGate(b, backend, s.open(), "capacity: 1")
			volleyOnce(b, addr, order(1, 1))
			volley(b, addr, func(int64) string { return order(1, 1) })
		})
	}
	b.Run("not gated", func(b *testing.B) {
		volley(b, serveGate(b, backend, memstore.New(memstore.Options{MaxMemory: 1 << 26}), "capacity: 1"), func(n int64) string {
			return strings.Replace(order(1, n), "/bookings", "/wishes", 1)
		})
	})
}

func orders(n int64) string { return order(n%1000, n) }

// order is a whole request with a key and a student of its own.
func order(lesson, n int64) string {
	body := `{"student_id":"student-` + strconv.FormatInt(n, 10) + `"}`
	return fmt.Sprintf("POST /api/lessons/%d/bookings HTTP/1.1\r\nHost: bench.test\r\nContent-Type: application/json\r\n"+
		"Authorization: Bearer 0123456789abcdef\r\nIdempotency-Key: key-%d\r\nContent-Length: %d\r\n\r\n%s", lesson, n, len(body), body)
}

func serveFast(b *testing.B, handler fasthttp.RequestHandler) string {
	b.Helper()
	server := &fasthttp.Server{Handler: handler, NoDefaultServerHeader: true}
	listener := listen(b)
	go func() { _ = server.Serve(listener) }()
	b.Cleanup(func() { _ = server.Shutdown() })
	return listener.Addr().String()
}

func listen(b *testing.B) net.Listener {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	return listener
}

func serveGate(b *testing.B, backend string, s store.Store, pool string) string {
	b.Helper()
	cfg, faults := rules.Load("bench.yaml", []byte(stage.Lessons("http://"+backend, stage.MemoryStore, "", pool, stage.Keyed)), rules.LoadOptions{})
	if len(faults.Errors()) > 0 {
		b.Fatal(faults)
	}
	set, err := rules.NewSet(cfg)
	if err != nil {
		b.Fatal(err)
	}
	budget := edge.NewBudget(int64(cfg.Server.MaxBuffered))
	up, err := upstream.New(upstream.Options{
		URL: cfg.Upstream.URL, ConnectTimeout: cfg.Upstream.ConnectTimeout, Timeout: cfg.Upstream.Timeout,
		MaxConnections: cfg.Upstream.MaxConnections, KeepAlive: cfg.Upstream.KeepAlive, Breaker: cfg.Upstream.Breaker, Budget: budget,
	})
	if err != nil {
		b.Fatal(err)
	}
	meter, log := admin.NewMetrics(cfg, "bench", ""), slog.New(slog.DiscardHandler)
	g, err := gate.New(gate.Options{Config: cfg, Set: set, Store: s, Backend: up, Meter: meter, Logger: log})
	if err != nil {
		b.Fatal(err)
	}
	server, err := edge.New(edge.Options{Config: cfg.Server, Gate: g, Backend: up, Meter: meter, Logger: log, Budget: budget})
	if err != nil {
		b.Fatal(err)
	}
	listener := listen(b)
	go func() { _ = server.Serve(listener) }()
	b.Cleanup(func() {
		_ = server.Shutdown(b.Context())
		g.Close(b.Context())
		up.Close()
		_ = s.Close()
	})
	return listener.Addr().String()
}

// volley has 64 clients send requests, each on a connection of its own.
func volley(b *testing.B, addr string, request func(n int64) string) {
	b.Helper()
	var number atomic.Int64
	b.SetParallelism(32) // of each of the machine's cores
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		answers := bufio.NewReader(conn)
		var resp fasthttp.Response
		for pb.Next() {
			if _, err := io.WriteString(conn, request(number.Add(1))); err != nil {
				b.Error(err)
				return
			}
			if err := resp.Read(answers); err != nil {
				b.Error(err)
				return
			}
			if status := resp.StatusCode(); status != 201 && status != 409 {
				b.Errorf("%s", &resp)
				return
			}
		}
	})
}

func volleyOnce(b *testing.B, addr, request string) {
	b.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		b.Fatal(err)
	}
	var resp fasthttp.Response
	if err := resp.Read(bufio.NewReader(conn)); err != nil || resp.StatusCode() != 201 {
		b.Fatalf("%v %s", err, &resp)
	}
}
