package memstore

import (
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

// visit is one call's look at a key and a slot, with the shards of both locked. A
// call without a key, or without a slot (a guard), leaves that side nil.
type visit struct {
	*Store
	now int64
	of  terms

	keys    *keyShard
	keyName keyName
	key     *key // nil: no record

	slots *slotShard
	slot  *slot // one that nobody has seen is not in the shard (seen)
	seen  bool

	quota *quotaShard // locked from the check of max_per_subject on

	wakeKey, wakeSlot bool
}

func keyOf(d *store.Decide) keyName { return keyName{d.Group, d.Partition, d.Key} }

// enterKey locks the key's side; it comes before enterSlot.
func (v *visit) enterKey(name keyName) {
	if name.key == "" {
		return
	}
	v.keyName = name
	v.keys = &v.Store.keys[shardOf(v.seed, name)]
	v.keys.mu.Lock()
	v.keys.sweep(&v.memory, v.now, sweepBatch)
	v.key = v.keys.find(name, v.now)
}

// enterSlot locks the slot's side; pool "" has none.
func (v *visit) enterSlot(name slotName) {
	if name.pool == "" {
		return
	}
	v.slots = &v.Store.slots[shardOf(v.seed, name)]
	v.slots.mu.Lock()
	v.sweepSlots(v.slots, v.now, sweepBatch)
	v.slots.sweepLooks(&v.memory, v.now, sweepBatch)
	v.slot, v.seen = v.slots.slots[name], true
	if v.slot != nil && v.slot.idleAt <= v.now {
		v.dropSlot(v.slots, v.slot) // the sweeper has more to do
		v.slot = nil
	}
	if v.slot == nil {
		v.slot, v.seen = &slot{name: name}, false
	}
}

// leave unlocks and then wakes those who watch.
func (v *visit) leave() {
	if v.quota != nil {
		v.quota.mu.Unlock()
	}
	if v.slots != nil {
		v.slots.mu.Unlock()
	}
	if v.keys != nil {
		v.keys.mu.Unlock()
	}
	if v.wakeKey {
		v.keyWatches.fire(v.keyName)
	}
	if v.wakeSlot {
		v.slotWatches.fire(v.slot.name)
	}
}

// keepUntil keeps the slot alive for so long, and plans the sweeper's next look.
func (v *visit) keepUntil(at int64) {
	if !v.seen {
		return
	}
	s := v.slot
	s.idleAt = max(s.idleAt, at)
	if next := s.wakeAt(); s.place == 0 || next < s.at {
		v.slots.due.put(s, next)
	}
}

// slotSize is what the slot costs that a call is about to make, 0 if it is there.
func (v *visit) slotSize() int64 {
	if v.seen {
		return 0
	}
	return slotCost + int64(len(v.slot.name.pool)+len(v.slot.name.slot))
}

// see puts a slot into its shard, paid for by the caller with slotSize.
func (v *visit) see() {
	if v.seen {
		return
	}
	v.slot.cost += v.slotSize()
	if v.slots.slots == nil {
		v.slots.slots = map[slotName]*slot{}
	}
	v.slots.slots[v.slot.name] = v.slot
	v.slot.born = v.births.Add(1)
	v.seen = true
}

// move brings a hold to a state, with its units, its subject's and the ledger. An
// open hold is due at expires.
func (v *visit) move(h *hold, to decision.HoldState, expires int64, cause string) {
	from, wasGone := h.state, h.gone()
	if to == decision.Released || to == decision.Lapsed {
		expires = h.forgetAt(v.now)
	}
	if units := v.slot.move(h, to, expires); units != 0 && h.quota {
		name := quotaName{v.slot.name.pool, h.subject}
		if v.quota != nil {
			v.quota.add(&v.memory, name, units)
		} else {
			v.addQuota(name, units)
		}
	}
	switch {
	case h.gone():
		v.unrefer(h)
	case wasGone && h.reference != "":
		v.enterRef(h)
	}
	v.record(entry{time: v.now, hold: h.id, subject: h.subject, units: h.units, from: from, to: to, cause: cause})
	v.touched()
	v.moved()
}

// record writes a ledger entry, in the oldest one's place where there is no room.
func (v *visit) record(e entry) {
	room := !v.slot.ledger.full() && v.memory.reserve(entryCost)
	if room {
		v.slot.cost += entryCost
	}
	v.slot.ledger.add(e, room)
}

// touched notes that the slot has changed.
func (v *visit) touched() {
	v.slot.version++
	v.wakeSlot = true
}

// lapse ends the slot's due holds, a bounded number at a time, and returns how many
// gave up their units.
func (v *visit) lapse(keepUnknown bool) (lapsed int) {
	v.memory.free(v.slot.forget(v.now, store.LapseBatch))
	for range store.LapseBatch {
		h, ok := v.slot.lapses(v.now, keepUnknown)
		switch {
		case !ok:
			return lapsed
		case h.state == decision.Pending:
			lapsed += v.expire(h)
		case !keepUnknown:
			v.move(h, decision.Lapsed, 0, "lapse")
			lapsed++
		default:
			if h.state != decision.HoldUnknown {
				v.move(h, decision.HoldUnknown, h.at, "lapse")
			}
			v.slot.keep(h)
		}
	}
	return lapsed
}

// expire ends a booking that was not confirmed in time. Its units are the backend's
// to give back: a look finds them, or else an operator says.
func (v *visit) expire(h *hold) (lapsed int) {
	if v.of.truth != store.TruthRemaining {
		v.move(h, decision.HoldUnknown, 0, "lapse")
		v.slot.shelve(h)
		return 0
	}
	v.move(h, decision.Lapsed, 0, "lapse")
	return 1
}
