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
	for i := range t.Forced {
		f := forcing{visit: visit{Store: s, now: s.now()}, f: &t.Forced[i]}
		if !f.register(t.Query) {
			return s.full("touch")
		}
	}
	return nil
}

// mark comes before the first forced hold: nobody is admitted in between.
func (s *Store) mark(t *store.Touch) bool {
	v := visit{Store: s, now: s.now()}
	v.enterSlot(slotName{t.Query.Pool, t.Query.Slot})
	defer v.leave()
	_, marked := v.slot.dirty[t.Gate]
	cost := v.slotSize()
	if !marked {
		cost += attemptCost + int64(len(t.Gate))
	}
	if !v.memory.reserve(cost) {
		return false
	}
	v.see()
	if v.slot.dirty == nil {
		v.slot.dirty = map[string]int64{}
	}
	if !marked {
		v.slot.cost += attemptCost + int64(len(t.Gate))
	}
	v.slot.dirty[t.Gate] = v.now + int64(t.Lease)
	v.touched()
	v.keepUntil(v.now + int64(t.Query.Retain))
	return true
}

// Resume ends a gate's mark.
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
	cost := attemptCost + int64(len(gate))
	v.slot.cost -= cost
	v.memory.free(cost)
}

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

func (f *forcing) register(q store.SlotQuery) bool {
	f.enterKey(keyName{f.f.Group, f.f.Partition, f.f.Key})
	f.enterSlot(slotName{q.Pool, q.Slot})
	defer f.leave()
	if f.slot.holds[f.f.ID] != nil {
		return true
	}
	cost := attemptCost + holdSize(f.f.Hold, f.f.Subject, f.f.Scope) + int64(len(f.f.ID)) + f.slotSize()
	if f.keys != nil && f.key == nil {
		cost += keySize(f.keyName, f.f.Scope)
	}
	if !f.memory.reserve(cost) {
		return false
	}
	f.see()
	h := f.slot.holds[f.f.Hold]
	switch {
	case h == nil:
		h = &hold{
			id: f.f.Hold, subject: f.f.Subject, units: f.f.Units, taken: f.now, scope: f.f.Scope, fingerprint: f.f.Fingerprint,
			quota: f.f.MaxPerSubject > 0 && f.f.Subject != "",
			cost:  attemptCost + holdSize(f.f.Hold, f.f.Subject, f.f.Scope) + int64(len(f.f.ID)),
		}
		f.slot.cost += h.cost
		f.slot.take(h)
	case h.state.Open():
		extra := attemptCost + int64(len(f.f.ID))
		h.cost += extra
		f.slot.cost += extra
		f.memory.free(holdSize(f.f.Hold, f.f.Subject, f.f.Scope))
	default:
		f.memory.free(cost - f.slotSize())
		return true
	}
	f.slot.start(h, f.f.ID, f.now+int64(f.f.Lease))
	f.move(h, decision.Held, f.now+int64(f.f.HoldTTL), "forced")
	f.claim(h.id)
	f.keepUntil(f.now + int64(max(q.Retain, f.f.HoldTTL)))
	return true
}

// claim takes the key where nobody has it or its outcome is not known.
func (f *forcing) claim(hold string) {
	if f.keys == nil {
		return
	}
	k := f.key
	switch {
	case k == nil:
		k = &key{name: f.keyName, cost: keySize(f.keyName, f.f.Scope)}
		f.keys.enter(&f.memory, k, max(f.f.KeyTTL, f.f.Lease), f.now)
	case k.state == keyDone, k.state == keyRunning && k.lease > f.now, k.fingerprint != f.f.Fingerprint:
		return
	}
	k.state, k.owner, k.hold = keyRunning, f.f.ID, hold
	k.scope, k.fingerprint = f.f.Scope, f.f.Fingerprint
	k.lease = f.now + int64(f.f.Lease)
	f.keys.prolong(k, f.f.Lease, f.now)
}
