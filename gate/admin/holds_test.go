package admin

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

func TestHoldsAreCountedByState(t *testing.T) {
	b := newBench(t, "",
		store.Slot{Slot: "1", Confirmed: 3},
		store.Slot{Slot: "2", Confirmed: 1, Held: 9, Holds: []store.Hold{
			{Units: 2, State: decision.Held}, {Units: 3, State: decision.HoldUnknown}, {Units: 1, State: decision.Pending},
			{Units: 1, State: decision.Confirmed}, // 3 more open units are beyond the holds that the store shows
		}},
	)
	b.metrics.countPool(t.Context(), b.gate, b.slots, "lessons")
	families := b.scrape()
	for state, want := range map[string]float64{"held": 5, "pending": 1, "unknown": 3, "confirmed": 4} {
		if got := value(t, families, "slotgate_holds", "lessons", state); got != want {
			t.Errorf("%s: %v units, want %v", state, got, want)
		}
	}

	b.slots.fail(errors.New("away"))
	b.metrics.countPool(t.Context(), b.gate, b.slots, "lessons")
	if family := b.scrape()["slotgate_holds"]; family != nil {
		t.Errorf("old numbers are shown while the store is away: %v", family)
	}
}

func TestCountingHoldsIsBounded(t *testing.T) {
	slots := make([]store.Slot, holdsListed+2*holdsPage)
	for i := range slots {
		slots[i] = store.Slot{Slot: fmt.Sprintf("%05d", i), Held: 1, Holds: []store.Hold{{Units: 1, State: decision.HoldUnknown}}}
	}
	b := newBench(t, "", slots...)
	b.metrics.countPool(t.Context(), b.gate, b.slots, "lessons")
	if b.slots.reads != holdsReads {
		t.Errorf("%d slots were read, want %d", b.slots.reads, holdsReads)
	}
	families := b.scrape()
	held, unknown := value(t, families, "slotgate_holds", "lessons", "held"), value(t, families, "slotgate_holds", "lessons", "unknown")
	if unknown != holdsReads || held+unknown != holdsListed {
		t.Errorf("held %v, unknown %v; want %d unknown and %d in all", held, unknown, holdsReads, holdsListed)
	}
}

func TestCountingHoldsEndsWithItsContext(t *testing.T) {
	b := newBench(t, "", store.Slot{Slot: "1", Confirmed: 3})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		b.metrics.CountHolds(ctx, b.gate, b.slots)
		close(done)
	}()
	cancel()
	<-done
}
