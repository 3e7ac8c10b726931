package memstore

import (
	"context"
	"sync"

	"github.com/slotgate/slotgate/gate/store"
)

// refName is a booking's id in the backend's answers of one pool.
type refName struct{ pool, reference string }

// named is the hold that a reference stands for.
type named struct{ slot, hold string }

// refShard finds holds by their references. One stands only as long as its hold is
// open or confirmed; where two holds have the same one, the later counts.
type refShard struct {
	mu    sync.Mutex
	holds map[refName]named
}

// Find tells the slot and the hold that a booking's reference stands for.
func (s *Store) Find(ctx context.Context, pool, reference string) (slot, hold string, err error) {
	defer s.observed("find")(&err)
	if err := s.ready(ctx, "find"); err != nil {
		return "", "", err
	}
	shard := s.refShard(refName{pool, reference})
	shard.mu.Lock()
	defer shard.mu.Unlock()
	found, ok := shard.holds[refName{pool, reference}]
	if !ok {
		return "", "", store.ErrNoHold
	}
	return found.slot, found.hold, nil
}

func (s *Store) refShard(name refName) *refShard { return &s.refs[shardOf(s.seed, name)] }

// refer names a hold. Where there is no memory for it, it stays without a name: it
// is then found by its subject.
func (v *visit) refer(h *hold, reference string) {
	if reference == "" || reference == h.reference {
		return
	}
	v.unrefer(h)
	h.reference = reference
	if !v.enterRef(h) {
		h.reference = ""
	}
}

func (v *visit) enterRef(h *hold) bool {
	name := refName{v.slot.name.pool, h.reference}
	shard := v.refShard(name)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if _, there := shard.holds[name]; !there && !v.memory.reserve(refSize(name)) {
		return false
	}
	if shard.holds == nil {
		shard.holds = map[refName]named{}
	}
	shard.holds[name] = named{v.slot.name.slot, h.id}
	return true
}

func (v *visit) unrefer(h *hold) { v.Store.unrefer(v.slot.name, h) }

// unrefer takes a hold's name away, unless another hold has it by now.
func (s *Store) unrefer(at slotName, h *hold) {
	if h.reference == "" {
		return
	}
	name := refName{at.pool, h.reference}
	shard := s.refShard(name)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if shard.holds[name] == (named{at.slot, h.id}) {
		delete(shard.holds, name)
		s.memory.free(refSize(name))
	}
}

func refSize(name refName) int64 { return refCost + int64(len(name.pool)+2*len(name.reference)) }
