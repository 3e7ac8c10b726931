package redisstore

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/luascripts"
	"github.com/slotgate/slotgate/rules"
)

// wire is a store behind a proxy that can lose replies, and one beside it with a
// clear view of the same data.
type wire struct {
	*testing.T
	server *testbed.RedisServer
	proxy  *testbed.RedisProxy
	store  *Store
	clear  *Store
}

func newWire(t *testing.T, change ...func(*Options)) *wire {
	server := testbed.Redis(t)
	proxy := testbed.Proxy(t, server.Addr())
	w := &wire{T: t, server: server, proxy: proxy, store: openStore(t, proxy.Addr(), change...), clear: openStore(t, server.Addr(), change...)}
	w.knowScripts()
	return w
}

// knowScripts has Redis know all scripts, so that the next EVALSHA is the one that
// runs.
func (w *wire) knowScripts() {
	w.Helper()
	for _, script := range luascripts.All() {
		if err := w.clear.client.ScriptLoad(context.Background(), script.Source).Err(); err != nil {
			w.Fatal(err)
		}
	}
	if _, err := w.store.current(context.Background()); err != nil {
		w.Fatal(err)
	}
}

func (w *wire) decide(d *store.Decide, want decision.Verdict) store.Decided {
	w.Helper()
	got, err := w.store.Decide(context.Background(), d)
	if err != nil {
		w.Fatalf("decide %s: %v", d.ID, err)
	}
	if got.Verdict != want {
		w.Fatalf("decide %s: %s, want %s", d.ID, got.Verdict, want)
	}
	return got
}

func (w *wire) settle(d *store.Decide, got store.Decided, outcome rules.Outcome) store.Settled {
	w.Helper()
	settled, err := w.store.Settle(context.Background(), settling(d, got, outcome))
	if err != nil {
		w.Fatalf("settle %s: %v", d.ID, err)
	}
	return settled
}

func query(d *store.Decide) store.SlotQuery {
	return store.SlotQuery{Pool: d.Pool, Slot: d.Slot, Capacity: d.Capacity, Truth: d.Truth, HoldTTL: d.HoldTTL, Retain: d.Retain, KeepUnknown: d.KeepUnknown, MaxPerSubject: d.MaxPerSubject, OpensAt: d.OpensAt}
}

// data is all that stands in Redis, but for what tells how long it has been there.
func (w *wire) data() map[string]string {
	w.Helper()
	ctx := context.Background()
	keys, err := w.clear.client.Keys(ctx, "*").Result()
	if err != nil {
		w.Fatal(err)
	}
	data := map[string]string{}
	for _, key := range keys {
		// A hash is dumped in an order that changes while Redis resizes its table.
		if fields, err := w.clear.client.HGetAll(ctx, key).Result(); err == nil && len(fields) > 0 {
			data[key] = fmt.Sprint(fields)
			continue
		}
		dump, err := w.clear.client.Dump(ctx, key).Result()
		if errors.Is(err, redis.Nil) {
			continue // it has expired meanwhile
		}
		if err != nil {
			w.Fatal(err)
		}
		data[key] = dump
	}
	return data
}

func (w *wire) sameData(what string, before, after map[string]string) {
	w.Helper()
	for key := range after {
		if before[key] != after[key] {
			w.Errorf("%s changed %q", what, key)
		}
	}
	for key := range before {
		if _, ok := after[key]; !ok {
			w.Errorf("%s removed %q", what, key)
		}
	}
}
