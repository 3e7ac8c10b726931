package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/memstore"
)

const switchedMemory = 64 << 20 // bytes

// switchedStore is a store that can be taken away: its calls then fail as those of
// a store that nobody can connect to. Its data stay. Watches are hints and go on.
type switchedStore struct {
	*memstore.Store
	away atomic.Bool
}

func newSwitchedStore() *switchedStore {
	return &switchedStore{Store: memstore.New(memstore.Options{MaxMemory: switchedMemory})}
}

var errSwitchedOff = errors.New("connection refused (the demo has taken the store away)")

func (s *switchedStore) reach(op string) error {
	if s.away.Load() {
		return &store.Error{Op: op, Kind: store.KindConnection, Err: errSwitchedOff}
	}
	return nil
}

// reach makes a call of the store, or fails as op if the store is away.
func reach[T any](s *switchedStore, op string, call func() (T, error)) (T, error) {
	if err := s.reach(op); err != nil {
		var none T
		return none, err
	}
	return call()
}

func reach2[T, U any](s *switchedStore, op string, call func() (T, U, error)) (t T, u U, err error) {
	if err = s.reach(op); err == nil {
		t, u, err = call()
	}
	return t, u, err
}

func (s *switchedStore) Secret(ctx context.Context, purpose string) ([32]byte, error) {
	return reach(s, "secret", func() ([32]byte, error) { return s.Store.Secret(ctx, purpose) })
}

func (s *switchedStore) Decide(ctx context.Context, d *store.Decide) (store.Decided, error) {
	return reach(s, "decide", func() (store.Decided, error) { return s.Store.Decide(ctx, d) })
}

func (s *switchedStore) Settle(ctx context.Context, t *store.Settle) (store.Settled, error) {
	return reach(s, "settle", func() (store.Settled, error) { return s.Store.Settle(ctx, t) })
}

func (s *switchedStore) Slot(ctx context.Context, q store.SlotQuery) (store.Slot, error) {
	return reach(s, "slot", func() (store.Slot, error) { return s.Store.Slot(ctx, q) })
}

func (s *switchedStore) Slots(ctx context.Context, q store.SlotQuery, cursor string, limit int) (slots []store.Slot, next string, err error) {
	return reach2(s, "slots", func() ([]store.Slot, string, error) { return s.Store.Slots(ctx, q, cursor, limit) })
}

func (s *switchedStore) Change(ctx context.Context, q store.SlotQuery, c store.SlotChange) (store.Slot, error) {
	return reach(s, "change", func() (store.Slot, error) { return s.Store.Change(ctx, q, c) })
}

func (s *switchedStore) Release(ctx context.Context, q store.SlotQuery, hold string) (decision.HoldState, error) {
	return reach(s, "release", func() (decision.HoldState, error) { return s.Store.Release(ctx, q, hold) })
}

func (s *switchedStore) Ledger(ctx context.Context, pool, slot string, limit int) ([]store.Entry, error) {
	return reach(s, "ledger", func() ([]store.Entry, error) { return s.Store.Ledger(ctx, pool, slot, limit) })
}

func (s *switchedStore) Look(ctx context.Context, l *store.Look) (store.Looked, error) {
	return reach(s, "look", func() (store.Looked, error) { return s.Store.Look(ctx, l) })
}

func (s *switchedStore) Apply(ctx context.Context, r *store.Reading) (store.Applied, error) {
	return reach(s, "apply", func() (store.Applied, error) { return s.Store.Apply(ctx, r) })
}

func (s *switchedStore) Due(ctx context.Context, pool string, most int, lease time.Duration) ([]string, time.Duration, error) {
	return reach2(s, "due", func() ([]string, time.Duration, error) { return s.Store.Due(ctx, pool, most, lease) })
}

func (s *switchedStore) Lead(ctx context.Context, pool, who string, ttl time.Duration) (fence int64, ok bool, err error) {
	return reach2(s, "lead", func() (int64, bool, error) { return s.Store.Lead(ctx, pool, who, ttl) })
}

func (s *switchedStore) Find(ctx context.Context, pool, reference string) (slot, hold string, err error) {
	return reach2(s, "find", func() (string, string, error) { return s.Store.Find(ctx, pool, reference) })
}

// once makes a call that returns nothing but its error.
func (s *switchedStore) once(op string, call func() error) error {
	if err := s.reach(op); err != nil {
		return err
	}
	return call()
}

func (s *switchedStore) Resign(ctx context.Context, pool, who string) error {
	return s.once("resign", func() error { return s.Store.Resign(ctx, pool, who) })
}

func (s *switchedStore) Touch(ctx context.Context, t *store.Touch) error {
	return s.once("touch", func() error { return s.Store.Touch(ctx, t) })
}

func (s *switchedStore) Resume(ctx context.Context, q store.SlotQuery, gate string) error {
	return s.once("resume", func() error { return s.Store.Resume(ctx, q, gate) })
}

func (s *switchedStore) Ping(ctx context.Context) error {
	return s.once("ping", func() error { return s.Store.Ping(ctx) })
}
