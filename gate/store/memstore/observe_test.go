package memstore

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

func TestEveryCallIsObserved(t *testing.T) {
	var ops []string
	var failures []error
	s, _ := open(t, Options{Observe: func(op string, d time.Duration, err error) {
		ops = append(ops, op)
		if err != nil {
			failures = append(failures, err)
		}
		if d < 0 {
			t.Errorf("%s took %v", op, d)
		}
	}})
	d := booking(1)
	q := store.SlotQuery{Pool: d.Pool, Slot: d.Slot, Capacity: d.Capacity, Retain: d.Retain}
	got := decide(t, s, d)
	settle(t, s, settlement(d, got.Hold, rules.Booked))
	_, slotErr := s.Slot(background, q)
	_, _, slotsErr := s.Slots(background, q, "", 1)
	_, changeErr := s.Change(background, q, store.SlotChange{})
	_, releaseErr := s.Release(background, q, got.Hold)
	_, ledgerErr := s.Ledger(background, d.Pool, d.Slot, 1)
	if err := errors.Join(slotErr, slotsErr, changeErr, releaseErr, ledgerErr, s.Ping(background)); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(background)
	cancel()
	if _, err := s.Decide(cancelled, d); !errors.Is(err, context.Canceled) {
		t.Errorf("decide with a cancelled context: %v", err)
	}
	if want := []string{"decide", "settle", "slot", "slots", "change", "release", "ledger", "ping", "decide"}; !slices.Equal(ops, want) {
		t.Errorf("observed %v, want %v", ops, want)
	}
	if len(failures) != 1 || !errors.Is(failures[0], context.Canceled) {
		t.Errorf("observed failures %v", failures)
	}
}
