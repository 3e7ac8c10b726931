package memstore

import (
	"github.com/slotgate/slotgate/gate/decision"
)

// admit: step 12.
func (q *question) admit() {
	d := q.d
	if q.slot == nil {
		if q.keys == nil || q.reserve(q.keySize()) {
			q.claim("")
			q.say(decision.Admitted, 0)
		}
		return
	}
	h := &hold{
		id: d.ID, subject: d.Subject, units: d.Units, taken: q.now,
		scope: d.Scope, fingerprint: d.Fingerprint, quota: q.quota != nil,
		cost: holdSize(d.ID, d.Subject, d.Scope),
	}
	if !q.reserve(q.slotSize() + h.cost + q.keySize()) {
		return
	}
	q.see()
	q.slot.cost += h.cost
	q.slot.noStandIn(d.Subject)
	q.slot.take(h)
	a := q.slot.start(h, d.ID, q.now+int64(d.Lease))
	if q.got.Probe {
		a.probe = true
		q.slot.mark.elect(d.ID, a.at)
	}
	q.move(h, decision.Held, q.now+int64(d.HoldTTL), "decide")
	q.chargeSlotLimit()
	q.claim(h.id)
	q.got.Hold = h.id
	q.say(decision.Admitted, 0)
}

func (q *question) chargeSlotLimit() {
	l := q.d.SlotLimit
	if l.IsZero() {
		return
	}
	next, _ := pass(l, q.slot.limits[q.d.Rule], q.now)
	if q.slot.limits == nil {
		q.slot.limits = map[string]int64{}
	}
	q.slot.limits[q.d.Rule] = next
	q.got.Limits[len(q.got.Limits)-1] = limitState("slot", l, next, q.now)
}

// keySize is what the record costs that claim is about to make, 0 if it is there.
func (q *question) keySize() int64 {
	if q.keys == nil || q.key != nil {
		return 0
	}
	return keySize(q.keyName, q.d.Scope)
}

// claim makes this request the key's owner. A record that has to be made has been
// paid for with keySize.
func (q *question) claim(hold string) {
	if q.keys == nil {
		return
	}
	d, k := q.d, q.key
	if k == nil {
		k = &key{name: q.keyName, cost: q.keySize()}
		q.keys.enter(&q.memory, k, max(d.KeyTTL, d.Lease), q.now)
		q.key = k
	}
	k.state, k.owner, k.hold = keyRunning, d.ID, hold
	k.scope, k.fingerprint = d.Scope, d.Fingerprint
	k.lease = q.now + int64(d.Lease)
	q.keys.prolong(k, d.Lease, q.now)
}

// reserve pays for what the call is about to write.
func (q *question) reserve(n int64) bool {
	q.full = !q.memory.reserve(n)
	return !q.full
}

func holdSize(id, subject, scope string) int64 {
	return holdCost + int64(len(id)+len(subject)+len(scope))
}
