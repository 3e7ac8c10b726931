package memstore

import (
	"context"
	"time"

	"github.com/slotgate/slotgate/gate/store"
)

// lookLease keeps other looks off a slot, also one that nobody has seen yet. Its
// deadline is the end of the lease.
type lookLease struct {
	deadline
	name slotName
	id   string
	cost int64
}

// Look begins a look; see the package gate/store.
func (s *Store) Look(ctx context.Context, l *store.Look) (got store.Looked, err error) {
	defer s.observed("look")(&err)
	v, err := s.look(ctx, "look", l.Query)
	if err != nil {
		return store.Looked{}, err
	}
	defer v.leave()
	busy, fits := v.leaseLook(l)
	if !fits {
		return store.Looked{}, s.full("look")
	}
	if busy > 0 {
		return store.Looked{Busy: busy}, nil
	}
	sl := v.slot
	return store.Looked{
		Known: v.seen, Born: sl.born, At: sl.truth.tick(v.now),
		Open: sl.unsettled(v.now, l.Lag), Admitted: sl.truth.admitted, Refunded: sl.truth.refunded,
		Marked: sl.mark.units > 0,
	}, nil
}

// leaseLook takes the slot's look lease, if the look wants one, or tells how long
// another look holds it.
func (v *visit) leaseLook(l *store.Look) (busy time.Duration, fits bool) {
	lease := v.slots.looks[v.slot.name]
	if !l.Force && l.Fresh > 0 && v.isFresh(l.Fresh) {
		return time.Millisecond, true
	}
	if l.Lease == 0 {
		return 0, true
	}
	if lease != nil && lease.at > v.now && lease.id != l.ID && !l.Force {
		return time.Duration(lease.at - v.now), true
	}
	if lease != nil {
		v.endLook(lease)
	}
	name := v.slot.name
	lease = &lookLease{name: name, id: l.ID, cost: lookCost + int64(len(name.pool)+len(name.slot)+len(l.ID))}
	if !v.memory.reserve(lease.cost) {
		return 0, false
	}
	if v.slots.looks == nil {
		v.slots.looks = map[slotName]*lookLease{}
	}
	v.slots.looks[name] = lease
	v.slots.looking.put(lease, v.now+int64(l.Lease))
	return 0, true
}

// isFresh reports that a look that was applied began no longer ago, and speaks still.
func (v *visit) isFresh(age time.Duration) bool {
	_, known := v.slot.left(v.of)
	return (known || v.slot.truth.failed) && !v.slot.truth.old(v.now, age)
}

func (v *visit) endLook(lease *lookLease) { v.slots.endLook(&v.memory, lease) }

func (shard *slotShard) endLook(memory *account, lease *lookLease) {
	shard.looking.remove(lease)
	delete(shard.looks, lease.name)
	memory.free(lease.cost)
}

// sweepLooks drops at most n leases that are over.
func (shard *slotShard) sweepLooks(memory *account, now int64, n int) {
	for range n {
		lease, ok := shard.looking.due(now)
		if !ok {
			return
		}
		shard.endLook(memory, lease)
	}
}
