package redisstore

import (
	"slices"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/luascripts"
)

// slotKeys are the KEYS that every script of a slot begins with: the slot's own and
// those of its pool, which on a cluster are on another shard.
type slotKeys struct {
	luascripts.SlotKeys
	index, outbox, looks string
}

func (s *Store) keysOf(pool, slot string, truth store.TruthKind) slotKeys {
	none := s.keys.None()
	k := slotKeys{SlotKeys: s.keys.Slot(pool, slot), index: none, outbox: none, looks: none}
	if !s.sharded() {
		k.index, k.outbox = s.keys.Index(pool), s.keys.Outbox(pool)
		if truth != store.NoTruth {
			k.looks = s.keys.Looks(pool)
		}
	}
	return k
}

// noSlot stands where a request goes under no slot.
func (s *Store) noSlot() slotKeys {
	none := s.keys.None()
	return slotKeys{SlotKeys: luascripts.SlotKeys{State: none, Due: none, Ledger: none, Look: none},
		index: none, outbox: none, looks: none}
}

// with adds a script's other keys.
func (k slotKeys) with(more ...string) []string {
	return k.before(append([]string{k.looks}, more...)...)
}

// before is with for a script that has the pool's looks further back.
func (k slotKeys) before(more ...string) []string {
	return append([]string{k.State, k.Due, k.Ledger, k.index, k.outbox}, more...)
}

// needed drops the keys at the end that play no part.
func (s *Store) needed(keys []string) []string {
	none := s.keys.None()
	for len(keys) > 0 && keys[len(keys)-1] == none {
		keys = keys[:len(keys)-1]
	}
	return keys
}

// oneShard puts the first key that plays a part in the place of those that play none:
// on a cluster all keys of a script must have one hash slot.
func (s *Store) oneShard(keys []string) []string {
	none := s.keys.None()
	first := slices.IndexFunc(keys, func(key string) bool { return key != none })
	if !s.sharded() || first < 0 {
		return keys
	}
	for i, key := range keys {
		if key == none {
			keys[i] = keys[first]
		}
	}
	return keys
}
