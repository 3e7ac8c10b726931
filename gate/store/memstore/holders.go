package memstore

import (
	"slices"

	"github.com/slotgate/slotgate/gate/store"
)

// holders looks at the slot itself: what it says is never old.
type holders struct {
	of   *Store
	slot slotName
}

// offerHolders says who may be told "sold out" without being asked here, where nothing is
// left and the counters are not in doubt.
func (q *question) offerHolders() {
	left, known := q.slot.left(q.of)
	if q.d.Truth != store.NoTruth && q.slot.truth.old(q.now+int64(q.d.Repeat), q.d.Hot) {
		return // it would be stale before that
	}
	if q.d.Repeat > 0 && !q.d.Blind && known && left <= 0 && !q.slot.doubted(q.of) && !q.isDirty() {
		q.got.Holders = holders{q.Store, q.slot.name}
	}
}

// Know is part of store.Holders.
func (h holders) Know(d *store.Decide) bool {
	v := visit{Store: h.of, now: h.of.now()}
	v.enterKey(keyOf(d))
	v.enterSlot(h.slot)
	defer v.leave()
	if v.key != nil {
		return true
	}
	has := func(h *hold) bool { return !h.gone() || h.unanswered() }
	return d.Subject != "" && (slices.ContainsFunc(v.slot.subjects[d.Subject], has) || len(v.slot.cancels.running) > 0)
}
