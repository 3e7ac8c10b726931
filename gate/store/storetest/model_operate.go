package storetest

import (
	"context"
	"errors"
	"fmt"

	"pgregory.net/rapid"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

// operate draws what an operator does to a slot. Its due lapses are applied first,
// by reading it.
func (r *history) operate() {
	r.compareSlots()
	name := rapid.SampledFrom([]string{"x", "y"}).Draw(r.T, "slot")
	q := r.query(name)
	switch op := rapid.SampledFrom([]string{"open", "release", "open", "set", "unset", "close"}).Draw(r.T, "operator"); op {
	case "release":
		r.release(q)
	default:
		var c store.SlotChange
		switch op {
		case "set":
			c.Capacity = ptr(rapid.Int64Range(1, 4).Draw(r.T, "own capacity"))
		case "unset":
			c.ClearCapacity = true
		case "close":
			c.Closed = ptr(true)
		case "open":
			c.Closed = ptr(false)
		}
		r.Logf("operator: %s %s", op, name)
		if _, err := r.gate().Change(context.Background(), q, c); err != nil {
			r.Fatalf("%s: %v", op, err)
		}
		s := r.model.see(name)
		switch op {
		case "set", "unset":
			s.own = c.Capacity
		default:
			s.closed = *c.Closed
		}
		if op != "close" {
			r.model.release(name)
		}
	}
}

func (r *history) release(q store.SlotQuery) {
	var ids []string
	for _, h := range r.model.holds {
		if h.slot == q.Slot {
			ids = append(ids, h.id)
		}
	}
	if len(ids) == 0 {
		return
	}
	h := r.model.hold(rapid.SampledFrom(ids).Draw(r.T, "hold"))
	r.Logf("operator: release %s", h.id)
	was, err := r.gate().Release(context.Background(), q, h.id)
	if h.gone() {
		if !errors.Is(err, store.ErrNoHold) {
			r.Fatalf("release of a hold that is gone: %q, %v", was, err)
		}
		return
	}
	if err != nil || was != h.state {
		r.Fatalf("release: was %q, %v; want %q", was, err, h.state)
	}
	r.model.move(h, decision.Released)
	r.model.release(q.Slot)
}

func (r *history) query(slot string) store.SlotQuery {
	return store.SlotQuery{
		Pool: r.pool, Slot: slot, Capacity: r.config.Capacity, Truth: r.config.Truth,
		HoldTTL: r.config.HoldTTL, Retain: r.config.Retain, KeepUnknown: r.config.KeepUnknown, MaxPerSubject: r.config.MaxPerSubject,
	}
}

// compareSlots reads both slots, which lapses what is due.
func (r *history) compareSlots() {
	m := r.model
	for _, name := range []string{"x", "y"} {
		got, err := r.gate().Slot(context.Background(), r.query(name))
		if m.slots[name] == nil {
			if !errors.Is(err, store.ErrNoSlot) {
				r.Fatalf("slot %s: %+v, %v; want none", name, got, err)
			}
			continue
		}
		if err != nil {
			r.Fatalf("slot %s: %v", name, err)
		}
		m.dirty(name)
		m.lapse(name, r.config.KeepUnknown)
		want := store.Slot{
			Capacity: m.shownCapacity(name, r.config.Capacity), Debt: m.debt(name), LookFailed: m.slot(name).counters.failed,
			Confirmed: m.units(name, "", isConfirmed), Held: m.units(name, "", isOpen),
			Closed: m.slot(name).closed, Full: m.slot(name).full, Inflight: m.awaited(name) + m.cancelling(name),
			Dirty: m.dirty(name) || !m.verified(name), Verified: m.verified(name),
		}
		seen := store.Slot{Capacity: got.Capacity, Confirmed: got.Confirmed, Held: got.Held, Closed: got.Closed, Full: got.Full, Inflight: got.Inflight, Dirty: got.Dirty, Verified: got.Verified, Debt: got.Debt, LookFailed: got.LookFailed}
		if fmt.Sprint(seen) != fmt.Sprint(want) {
			r.Fatalf("slot %s is %+v, want %+v", name, seen, want)
		}
		states := map[string]decision.HoldState{}
		for _, h := range got.Holds {
			states[h.ID] = h.State
			if want := m.hold(h.ID); want != nil && h.Reference != want.reference {
				r.Fatalf("hold %s has reference %q, want %q", h.ID, h.Reference, want.reference)
			}
		}
		for _, h := range m.holds {
			if want := h.state; h.slot == name {
				if h.gone() {
					want = decision.NoHold // not shown
				}
				if states[h.id] != want {
					r.Fatalf("hold %s is %q, want %q", h.id, states[h.id], want)
				}
				delete(states, h.id)
			}
		}
		if len(states) > 0 {
			r.Fatalf("slot %s shows holds that nobody took: %v", name, states)
		}
	}
}
