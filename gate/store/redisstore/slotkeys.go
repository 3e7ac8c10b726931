package redisstore

import (
	"slices"
	"strings"
	"sync"

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
	k := *s.slots.get(s.keys, pool, slot)
	if s.sharded() {
		k.index, k.outbox = s.none, s.none
	}
	if s.sharded() || truth == store.NoTruth {
		k.looks = s.none
	}
	return k
}

// knownSlots bounds slotNames.
const knownSlots = 1024

// slotNames remembers the keys of slots that were lately asked for: many requests go for
// the same few, and each needs the names twice. It is safe for concurrent use.
type slotNames struct {
	mu    sync.RWMutex
	known map[slotName]*slotKeys
}

// get is for reading only.
func (n *slotNames) get(keys luascripts.Keys, pool, slot string) *slotKeys {
	n.mu.RLock()
	k := n.known[slotName{pool, slot}]
	n.mu.RUnlock()
	if k == nil {
		k = n.add(keys, strings.Clone(pool), strings.Clone(slot)) // which may be parts of a whole request
	}
	return k
}

func (n *slotNames) add(keys luascripts.Keys, pool, slot string) *slotKeys {
	k := new(slotKeys)
	k.SlotKeys = keys.Slot(pool, slot)
	k.index, k.outbox, k.looks = keys.Index(pool), keys.Outbox(pool), keys.Looks(pool)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil || len(n.known) == knownSlots {
		n.known = make(map[slotName]*slotKeys)
	}
	n.known[slotName{pool, slot}] = k
	return k
}

// noSlot stands where a request goes under no slot.
func (s *Store) noSlot() slotKeys {
	none := s.none
	return slotKeys{SlotKeys: luascripts.SlotKeys{State: none, Due: none, Ledger: none, Look: none},
		index: none, outbox: none, looks: none}
}

// with adds a script's other keys.
func (k slotKeys) with(more ...string) []string {
	return append(append(k.first(make([]string, 0, 6+len(more))), k.looks), more...)
}

// first appends those that every script of a slot begins with.
func (k slotKeys) first(keys []string) []string {
	return append(keys, k.State, k.Due, k.Ledger, k.index, k.outbox)
}

// needed drops the keys at the end that play no part.
func (s *Store) needed(keys []string) []string {
	none := s.none
	for len(keys) > 0 && keys[len(keys)-1] == none {
		keys = keys[:len(keys)-1]
	}
	return keys
}

// oneShard puts the first key that plays a part in the place of those that play none:
// on a cluster all keys of a script must have one hash slot.
func (s *Store) oneShard(keys []string) []string {
	none := s.none
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
