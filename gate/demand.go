package gate

import (
	"strings"
	"sync"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

// Demand is what this process has seen of one slot's bookings.
type Demand struct {
	Waiting  int   // in its queue at the moment
	Rejected int64 // answered by the gate itself; a slot that has not been refused for long is counted anew
}

// Demand of a slot; zero for one that nobody has asked for.
func (g *Gate) Demand(pool, slot string) Demand {
	d := Demand{Rejected: g.refused.of(slotName{pool, slot})}
	if q, ok := g.book.Load().queues[pool]; ok {
		d.Waiting = q.inLine(slot)
	}
	return d
}

// maxRefusedSlots bounds what is counted: twice so many slots at most.
const maxRefusedSlots = 8192

// refusals counts refused bookings by slot. Whoever fills the young ones up makes them
// the old ones, and the old ones are forgotten; a slot that is refused again is young.
type refusals struct {
	mu         sync.Mutex
	young, old map[slotName]int64
}

func newRefusals() *refusals { return &refusals{young: make(map[slotName]int64)} }

// note counts a reply, if it refuses a booking of a slot.
func (r *refusals) note(j *journey, d decision.Decision) {
	if d.Status() == 0 || ofBackend(d) || j.route == nil || j.route.decide.Action != store.Book || j.facts.Slot == "" {
		return
	}
	r.add(slotName{j.route.decide.Pool, j.facts.Slot})
}

func (r *refusals) add(name slotName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, found := r.young[name]
	if !found {
		n = r.old[name]
		if len(r.young) == maxRefusedSlots {
			r.young, r.old = make(map[slotName]int64), r.young
		}
		name.slot = strings.Clone(name.slot) // it is part of a request
	}
	r.young[name] = n + 1
}

func (r *refusals) of(name slotName) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n, found := r.young[name]; found {
		return n
	}
	return r.old[name]
}
