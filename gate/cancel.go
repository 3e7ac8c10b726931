package gate

import (
	"context"
	"errors"

	"github.com/slotgate/slotgate/gate/store"
)

// findHold names the hold that a cancel or confirm means by its reference. A
// reference that is not known leaves the slot and the subject, if the request has
// them; else the request takes and frees nothing.
func (j *journey) findHold(d *store.Decide) error {
	if j.facts.HoldRef == "" {
		return j.knowSlot(d)
	}
	slot, hold, err := j.gate.store.Find(context.Background(), d.Pool, j.facts.HoldRef)
	switch {
	case err == nil:
		d.Slot, d.Target = slot, hold
		j.facts.Slot = slot
	case !errors.Is(err, store.ErrNoHold):
		return err
	case d.Slot == "":
		d.Pool = ""
	default:
		d.Unreferenced = true
		return j.knowSlot(d)
	}
	return nil
}

// knowSlot looks the slot of a cancel or confirm up where the store does not know it:
// one that truth does not have leaves no trace, whatever names clients make up.
func (j *journey) knowSlot(d *store.Decide) error {
	if d.Action == store.Book || d.Truth == store.NoTruth {
		return nil
	}
	q, _ := j.gate.Query(d.Pool, d.Slot)
	_, err := j.gate.store.Slot(context.Background(), q)
	if errors.Is(err, store.ErrNoSlot) {
		j.load(d)
		return nil
	}
	return err
}
