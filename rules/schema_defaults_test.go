package rules

import (
	"fmt"
	"reflect"
	"testing"
	"time"
)

func TestLoadDefaults(t *testing.T) {
	cfg := load(t, base, LoadOptions{})
	want := defaultConfig()
	want.Upstream.URL = "http://127.0.0.1:9000"
	pool := defaultPool()
	pool.Capacity = Capacity{Kind: CapacityNumber, Units: 6}
	want.Pools = map[string]*PoolConfig{"lessons": pool}
	rule := defaultRule()
	rule.Name = "book-lesson"
	rule.Match.Path = "/api/lessons/{lesson}/bookings"
	rule.Pool = "lessons"
	rule.Slot = Extractors{{Source: FromPath, Name: "lesson"}}
	want.Rules = []*RuleConfig{rule}
	if !reflect.DeepEqual(cfg, want) {
		t.Errorf("got  %+v\nwant %+v", cfg, want)
	}
}

// TestDefaultsFollowTheContract spells the table of the documentation out.
func TestDefaultsFollowTheContract(t *testing.T) {
	cfg := load(t, edit(t, "name:", "idempotency: {}\nlimits: { slot: { rate: 7/10s } }"), LoadOptions{})
	r := cfg.Rules[0]
	for _, row := range []struct {
		name      string
		got, want any
	}{
		{"server.listen", cfg.Server.Listen, ":8080"},
		{"server.max_body", cfg.Server.MaxBody.String(), "1MiB"},
		{"server.max_header", cfg.Server.MaxHeader.String(), "16KiB"},
		{"server.max_buffered", cfg.Server.MaxBuffered.String(), "256MiB"},
		{"server.read_timeout", cfg.Server.ReadTimeout, 10 * time.Second},
		{"server.idle_timeout", cfg.Server.IdleTimeout, time.Minute},
		{"server.max_connections", cfg.Server.MaxConnections, 16384},
		{"server.drain", cfg.Server.Drain, 15 * time.Second},
		{"server.gate_headers", cfg.Server.GateHeaders, true},
		{"server.unmatched", cfg.Server.Unmatched, "pass"},
		{"server.forward_path", cfg.Server.ForwardPath, "as_sent"},
		{"admin.listen", cfg.Admin.Listen, "127.0.0.1:9901"},
		{"upstream.dialect", cfg.Upstream.Dialect, "any"},
		{"upstream.connect_timeout", cfg.Upstream.ConnectTimeout, time.Second},
		{"upstream.timeout", cfg.Upstream.Timeout, 5 * time.Second},
		{"upstream.max_connections", cfg.Upstream.MaxConnections, 512},
		{"upstream.keep_alive", cfg.Upstream.KeepAlive, 4 * time.Second},
		{"upstream.breaker", cfg.Upstream.Breaker, BackendBreaker{0.5, 20, 10 * time.Second, 2 * time.Second, 3}},
		{"store.kind", cfg.Store.Kind, "memory"},
		{"store.addresses", cfg.Store.Addresses[0], "127.0.0.1:6379"},
		{"store.mode", cfg.Store.Mode, "standalone"},
		{"store.prefix", cfg.Store.Prefix, "slotgate"},
		{"store.timeout", cfg.Store.Timeout, 250 * time.Millisecond},
		{"store.breaker", cfg.Store.Breaker, StoreBreaker{5, time.Second, 1}},
		{"store.max_memory", cfg.Store.MaxMemory.String(), "512MiB"},
		{"log", cfg.Log, LogConfig{Level: "info", Format: "text"}},
		{"tracing", cfg.Tracing, TracingConfig{Sample: 0.01}},
		{"hold_ttl", cfg.Pools["lessons"].HoldTTL, 30 * time.Second},
		{"retain", cfg.Pools["lessons"].Retain, 720 * time.Hour},
		{"queue", cfg.Pools["lessons"].Queue, QueueConfig{256, 2 * time.Second}},
		{"action", r.Action, "book"},
		{"body_as", r.BodyAs, "auto"},
		{"charset", r.Charset, "utf-8"},
		{"key", fmt.Sprint(r.Idempotency.Key), "[header:Idempotency-Key]"},
		{"scope", fmt.Sprint(r.Idempotency.Scope), "[header:Authorization header:Cookie]"},
		{"group", r.Idempotency.Group, "book-lesson"},
		{"ttl", r.Idempotency.TTL, 24 * time.Hour},
		{"in_flight", r.Idempotency.InFlight, "wait"},
		{"wait", r.Idempotency.Wait, 5 * time.Second},
		{"unknown", r.Idempotency.Unknown, "reject"},
		{"store", fmt.Sprint(r.Idempotency.Store), "[booked duplicate]"},
		{"max_response", r.Idempotency.MaxResponse.String(), "256KiB"},
		{"limits.slot", *r.Limits.Slot, LimitConfig{Rate{7, 10 * time.Second}, 7}},
		{"retry", fmt.Sprint(r.Retry), "{[] 3 20ms 200ms}"},
		{"on_store_failure", r.OnStoreFailure, "pass"},
		{"passthrough", r.Passthrough, PassthroughConfig{LimitConfig{Rate{5, time.Second}, 10}, LimitConfig{Rate{200, time.Second}, 200}, 64, 1}},
		{"mode", r.Mode, "enforce"},
	} {
		if row.got != row.want {
			t.Errorf("%s is %v, want %v", row.name, row.got, row.want)
		}
	}
}

func TestUnknownAutoFollowsTheOutcomes(t *testing.T) {
	src := edit(t, "name:", "idempotency: {}\noutcomes: [{ when: { status: 409 }, is: duplicate }]")
	if got := load(t, src, LoadOptions{}).Rules[0].Idempotency.Unknown; got != "retry" {
		t.Errorf("unknown is %s, want retry", got)
	}
}
