package memstore

import (
	"context"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

// Touch marks a slot dirty for a gate and registers the requests that it has at
// the backend. This store lives and dies with its process, so that it serves only
// tests and the demo, where a gate is kept from its store for a while.
func (s *Store) Touch(ctx context.Context, t *store.Touch) (err error) {
	defer s.observed("touch")(&err)
	if err := s.ready(ctx, "touch"); err != nil {
		return err
	}
	if !s.mark(t) {
		return s.full("touch")
	}
	// A hold is taken by its own request before retries go on under it.
	for _, retries := range []bool{false, true} {
		for i := range t.Forced {
			f := forcing{visit: visit{Store: s, now: s.now(), of: terms{t.Query.Capacity, t.Query.Truth}}, f: &t.Forced[i]}
			if retries == (f.f.ID != f.f.Hold) && !f.register(t.Query) {
				return s.full("touch")
			}
		}
	}
	return nil
}

// mark comes before the first forced hold: few are admitted in between.
func (s *Store) mark(t *store.Touch) bool {
	v := visit{Store: s, now: s.now(), of: terms{t.Query.Capacity, t.Query.Truth}}
	v.enterSlot(slotName{t.Query.Pool, t.Query.Slot})
	defer v.leave()
	v.isDirty() // a mark that has run out leaves counters that are not believed
	cost := int64(0)
	if _, marked := v.slot.dirty[t.Gate]; !marked {
		cost = markSize(t.Gate)
	}
	if !v.memory.reserve(v.slotSize() + cost) {
		return false
	}
	v.see()
	v.slot.cost += cost
	if v.slot.dirty == nil {
		v.slot.dirty = map[string]int64{}
	}
	v.slot.dirty[t.Gate] = v.now + int64(t.Lease)
	v.slot.truth.touched = v.slot.truth.tick(v.now)
	v.dueBy(v.now + int64(v.slot.truth.hot))
	v.touched()
	v.keepUntil(v.now + int64(max(t.Query.Retain, t.Lease)))
	return true
}

// Resume ends a gate's mark, if it stands.
func (s *Store) Resume(ctx context.Context, q store.SlotQuery, gate string) (err error) {
	defer s.observed("resume")(&err)
	v, err := s.look(ctx, "resume", q)
	if err != nil {
		return err
	}
	defer v.leave()
	if _, marked := v.slot.dirty[gate]; marked {
		v.unmark(gate)
		v.touched()
	}
	return nil
}

func (v *visit) unmark(gate string) {
	delete(v.slot.dirty, gate)
	v.slot.truth.verified = false // what the gate passed by is in truth by now
	v.slot.cost -= markSize(gate)
	v.memory.free(markSize(gate))
}

func markSize(gate string) int64 { return dirtyCost + int64(len(gate)) }

// isDirty drops the marks of gates that have not renewed them.
func (v *visit) isDirty() bool {
	for gate, until := range v.slot.dirty {
		if until <= v.now {
			v.unmark(gate)
		}
	}
	return len(v.slot.dirty) > 0
}

// forcing is one request being registered.
type forcing struct {
	visit
	f *store.Forced
}

// register makes the request an unanswered attempt, unless it is known. It returns
// false where there is no memory for it.
func (f *forcing) register(q store.SlotQuery) bool {
	f.enterKey(keyName{f.f.Group, f.f.Partition, f.f.Key})
	f.enterSlot(slotName{q.Pool, q.Slot})
	defer f.leave()
	h := f.slot.holds[f.f.Hold]
	known := f.slot.holds[f.f.ID] != nil
	if booked := h != nil && (h.stands() || h.unpaid); known || booked {
		return true
	}
	cost := int64(0)
	if h == nil {
		cost = holdSize(f.f.Hold, f.f.Subject, f.f.Scope)
	}
	if h != nil || f.f.ID != f.f.Hold {
		cost += attemptCost + int64(len(f.f.ID))
	}
	if !f.memory.reserve(f.slotSize() + cost + f.keySize()) {
		return false
	}
	f.see()
	f.slot.cost += cost
	if h == nil {
		h = &hold{
			id: f.f.Hold, subject: f.f.Subject, units: f.f.Units, taken: f.now,
			scope: f.f.Scope, fingerprint: f.f.Fingerprint,
			quota: f.f.MaxPerSubject > 0 && f.f.Subject != "",
		}
		f.slot.take(h)
	} else if h.gone() {
		f.slot.truth.take(h.units)
	}
	h.cost += cost
	f.slot.start(h, f.f.ID, f.now+int64(f.f.Lease))
	f.move(h, decision.Held, f.now+int64(f.f.HoldTTL), "forced") // also one that was gone: its units are at the backend
	f.claim(h.id)
	f.keepUntil(f.now + int64(max(q.Retain, f.f.HoldTTL, f.f.Lease)))
	return true
}

// keySize is what the record costs that claim is about to make, 0 if it is there.
func (f *forcing) keySize() int64 {
	if f.keys == nil || f.key != nil {
		return 0
	}
	return keySize(f.keyName, f.f.Scope)
}

// claim takes the key where nobody has it or its outcome is not known.
func (f *forcing) claim(hold string) {
	if f.keys == nil {
		return
	}
	k := f.key
	switch {
	case k == nil:
		k = &key{name: f.keyName, cost: f.keySize()}
		f.keys.enter(&f.memory, k, max(f.f.KeyTTL, f.f.Lease), f.now)
	case !k.unanswered(f.now) || k.fingerprint != f.f.Fingerprint:
		return
	}
	k.state, k.owner, k.hold = keyRunning, f.f.ID, hold
	k.scope, k.fingerprint = f.f.Scope, f.f.Fingerprint
	k.lease = f.now + int64(f.f.Lease)
	f.keys.prolong(k, f.f.Lease, f.now)
}
