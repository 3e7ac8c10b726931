package admin

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

// TimeStore returns s with every call timed in slotgate_store_seconds{op}.
func (m *Metrics) TimeStore(s store.Store) store.Store {
	op := func(name string) prometheus.Observer { return m.store.WithLabelValues(name) }
	return &timedStore{
		Store:  s,
		decide: op("decide"), settle: op("settle"), slot: op("slot"), slots: op("slots"),
		change: op("change"), release: op("release"), ledger: op("ledger"), ping: op("ping"),
	}
}

type timedStore struct {
	store.Store // WatchKey, WatchSlot and Close, which wait for nothing

	decide, settle, slot, slots, change, release, ledger, ping prometheus.Observer
}

func since(o prometheus.Observer, start time.Time) { o.Observe(time.Since(start).Seconds()) }

func (t *timedStore) Decide(ctx context.Context, d *store.Decide) (store.Decided, error) {
	defer since(t.decide, time.Now())
	return t.Store.Decide(ctx, d)
}

func (t *timedStore) Settle(ctx context.Context, s *store.Settle) (store.Settled, error) {
	defer since(t.settle, time.Now())
	return t.Store.Settle(ctx, s)
}

func (t *timedStore) Slot(ctx context.Context, q store.SlotQuery) (store.Slot, error) {
	defer since(t.slot, time.Now())
	return t.Store.Slot(ctx, q)
}

func (t *timedStore) Slots(ctx context.Context, q store.SlotQuery, cursor string, limit int) ([]store.Slot, string, error) {
	defer since(t.slots, time.Now())
	return t.Store.Slots(ctx, q, cursor, limit)
}

func (t *timedStore) Change(ctx context.Context, q store.SlotQuery, c store.SlotChange) (store.Slot, error) {
	defer since(t.change, time.Now())
	return t.Store.Change(ctx, q, c)
}

func (t *timedStore) Release(ctx context.Context, q store.SlotQuery, hold string) (decision.HoldState, error) {
	defer since(t.release, time.Now())
	return t.Store.Release(ctx, q, hold)
}

func (t *timedStore) Ledger(ctx context.Context, pool, slot string, limit int) ([]store.Entry, error) {
	defer since(t.ledger, time.Now())
	return t.Store.Ledger(ctx, pool, slot, limit)
}

func (t *timedStore) Ping(ctx context.Context) error {
	defer since(t.ping, time.Now())
	return t.Store.Ping(ctx)
}
