package main

import (
	"context"
	"errors"
	"sync/atomic"

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

func (s *switchedStore) Decide(ctx context.Context, d *store.Decide) (store.Decided, error) {
	if err := s.reach("decide"); err != nil {
		return store.Decided{}, err
	}
	return s.Store.Decide(ctx, d)
}

func (s *switchedStore) Settle(ctx context.Context, t *store.Settle) (store.Settled, error) {
	if err := s.reach("settle"); err != nil {
		return store.Settled{}, err
	}
	return s.Store.Settle(ctx, t)
}

func (s *switchedStore) Slot(ctx context.Context, q store.SlotQuery) (store.Slot, error) {
	if err := s.reach("slot"); err != nil {
		return store.Slot{}, err
	}
	return s.Store.Slot(ctx, q)
}

func (s *switchedStore) Slots(ctx context.Context, q store.SlotQuery, cursor string, limit int) ([]store.Slot, string, error) {
	if err := s.reach("slots"); err != nil {
		return nil, "", err
	}
	return s.Store.Slots(ctx, q, cursor, limit)
}

func (s *switchedStore) Change(ctx context.Context, q store.SlotQuery, c store.SlotChange) (store.Slot, error) {
	if err := s.reach("change"); err != nil {
		return store.Slot{}, err
	}
	return s.Store.Change(ctx, q, c)
}

func (s *switchedStore) Release(ctx context.Context, q store.SlotQuery, hold string) (decision.HoldState, error) {
	if err := s.reach("release"); err != nil {
		return 0, err
	}
	return s.Store.Release(ctx, q, hold)
}

func (s *switchedStore) Ledger(ctx context.Context, pool, slot string, limit int) ([]store.Entry, error) {
	if err := s.reach("ledger"); err != nil {
		return nil, err
	}
	return s.Store.Ledger(ctx, pool, slot, limit)
}

func (s *switchedStore) Touch(ctx context.Context, t *store.Touch) error {
	if err := s.reach("touch"); err != nil {
		return err
	}
	return s.Store.Touch(ctx, t)
}

func (s *switchedStore) Resume(ctx context.Context, q store.SlotQuery, gate string) error {
	if err := s.reach("resume"); err != nil {
		return err
	}
	return s.Store.Resume(ctx, q, gate)
}

func (s *switchedStore) Ping(ctx context.Context) error {
	if err := s.reach("ping"); err != nil {
		return err
	}
	return s.Store.Ping(ctx)
}
