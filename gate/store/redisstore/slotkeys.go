package redisstore

import (
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/luascripts"
)

// slotKeys are the KEYS that every script of a slot begins with: the slot's own and
// those of its pool.
type slotKeys struct {
	luascripts.SlotKeys
	index, outbox, looks string
}

func (s *Store) keysOf(pool, slot string, truth store.TruthKind) slotKeys {
	k := slotKeys{SlotKeys: s.keys.Slot(pool, slot), index: s.keys.Index(pool), outbox: s.keys.Outbox(pool), looks: s.keys.None()}
	if truth != store.NoTruth {
		k.looks = s.keys.Looks(pool)
	}
	return k
}

// noSlot stands where a request goes under no slot.
func (s *Store) noSlot() slotKeys {
	none := s.keys.None()
	return slotKeys{SlotKeys: luascripts.SlotKeys{State: none, Due: none, Running: none, Ledger: none, Look: none},
		index: none, outbox: none, looks: none}
}

// with adds a script's other keys.
func (k slotKeys) with(more ...string) []string {
	return append([]string{k.State, k.Due, k.Running, k.Ledger, k.index, k.outbox, k.looks}, more...)
}
