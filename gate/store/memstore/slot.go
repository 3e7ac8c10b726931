package memstore

import (
	"slices"
	"sync"

	"github.com/slotgate/slotgate/gate/decision"
)

type slotName struct{ pool, slot string }

// slot is one thing with limited units. Its deadline is when the sweeper next has
// to look at it.
type slot struct {
	deadline
	name   slotName
	idleAt int64 // when it may be dropped, if nothing happens before
	cost   int64 // of the slot and all that is in it

	own       bool // an operator has set the capacity
	capacity  int64
	closed    bool
	opensAt   int64 // set by an operator; 0 as configured
	confirmed int64 // units
	held      int64 // units of open holds
	releases  int64 // moved by whatever may have freed units at the backend
	version   int64
	mark      mark
	born      int64 // tells this life of the slot from others of its name
	truth     truth
	look      lookTime
	cancels   cancels

	taken    int64              // holds ever taken, to order them
	holds    map[string]*hold   // by the id of each of their attempts
	subjects map[string][]*hold // in the order in which they were taken
	lapsing  queue[*hold]       // open, by hold_ttl
	kept     queue[*hold]       // open, past hold_ttl, kept as unknown
	gone     queue[*hold]       // released and lapsed, until forgotten
	running  queue[*attempt]    // awaited attempts, by their lease
	limits   map[string]int64   // tat of the slot limit, by rule
	ledger   ledger
	dirty    map[string]int64 // until when a gate's mark stands
}

type slotShard struct {
	mu    sync.Mutex
	slots map[slotName]*slot
	due   queue[*slot]

	looks   map[slotName]*lookLease
	looking queue[*lookLease]
}

// inflight is the number of attempts within their lease.
func (s *slot) inflight(now int64) int {
	for {
		a, ok := s.running.due(now)
		if !ok {
			return len(s.running)
		}
		s.running.remove(a)
	}
}

// release notes that units may have come free at the backend: the mark no longer
// tells the truth, nor does a sold_out that was decided before (H12).
func (s *slot) release() {
	s.releases++
	s.mark = mark{}
}

// take enters a new hold, which has no state yet.
func (s *slot) take(h *hold) {
	s.taken++
	s.truth.take(h.units)
	h.order = s.taken
	s.index(h.id, h)
	if h.subject != "" {
		if s.subjects == nil {
			s.subjects = map[string][]*hold{}
		}
		s.subjects[h.subject] = append(s.subjects[h.subject], h)
	}
}

// noStandIn sees to it that no hold of the subject stands in for a booking any more.
func (s *slot) noStandIn(subject string) {
	for _, h := range s.subjects[subject] {
		h.standsIn = false
	}
}

// hold returns the hold of this id, or nil.
func (s *slot) hold(id string) *hold {
	if h := s.holds[id]; h != nil && h.id == id {
		return h
	}
	return nil
}

// index finds a hold by the id of one of its attempts.
func (s *slot) index(id string, h *hold) {
	if s.holds == nil {
		s.holds = map[string]*hold{}
	}
	s.holds[id] = h
}

// start begins an attempt under a hold, awaited until lease.
func (s *slot) start(h *hold, id string, lease int64) *attempt {
	a := h.start(id)
	a.releases = s.releases
	s.index(id, h)
	s.running.put(a, lease)
	return a
}

// queueOf is the queue a hold of this state waits in, nil for none.
func (s *slot) queueOf(h *hold) *queue[*hold] {
	switch {
	case h.gone():
		return &s.gone
	case h.unpaid:
		return nil
	case h.kept:
		return &s.kept
	case h.state.Open():
		return &s.lapsing
	}
	return nil
}

// move brings a hold to a state, and its units with it, and returns by how much
// the units it counts for have changed. An open hold is due at expires, a gone one
// is forgotten then.
func (s *slot) move(h *hold, to decision.HoldState, expires int64) (units int64) {
	if q := s.queueOf(h); q != nil {
		q.remove(h)
	}
	before := s.confirmed + s.held
	s.count(h, -h.units)
	h.state, h.kept, h.unpaid = to, false, false
	h.standsIn = h.standsIn && h.stands()
	s.count(h, h.units)
	if q := s.queueOf(h); q != nil {
		q.put(h, expires)
	}
	return s.confirmed + s.held - before
}

// awaits reports that a hold stands whose booking has not been answered.
func (s *slot) awaits() bool {
	unanswered := func(h *hold) bool { return h.state != decision.Pending }
	return len(s.kept) > 0 || slices.ContainsFunc(s.lapsing, unanswered)
}

func (s *slot) count(h *hold, units int64) {
	switch {
	case h.state == decision.Confirmed:
		s.confirmed += units
	case h.state.Open():
		s.held += units
	}
}

// keep moves a due hold aside that stays unknown for good.
func (s *slot) keep(h *hold) {
	at := h.at
	s.lapsing.remove(h)
	h.kept = true
	s.kept.put(h, at)
}

// shelve moves a hold aside that is unknown until an operator says.
func (s *slot) shelve(h *hold) {
	s.lapsing.remove(h)
	h.unpaid = true
}

// lapses returns the next hold to lapse. What an earlier configuration kept lapses
// too when it no longer keeps.
func (s *slot) lapses(now int64, keepUnknown bool) (*hold, bool) {
	h, ok := s.lapsing.due(now)
	if !ok && !keepUnknown {
		h, ok = s.kept.due(now)
	}
	return h, ok
}

// bookedBy reports whether the subject has a booked hold here.
func (s *slot) bookedBy(subject string) bool {
	return slices.ContainsFunc(s.subjects[subject], (*hold).stands)
}

// forget drops at most n gone holds, and cancels, whose time is over and returns
// what they cost.
func (s *slot) forget(now int64, n int) (freed int64) {
	s.cancelling(now) // ends those whose lease is over
	freed = s.cancels.forget(now, n)
	for ; n > 0; n-- {
		h, ok := s.gone.due(now)
		if !ok {
			break
		}
		s.gone.remove(h)
		delete(s.holds, h.id)
		for _, a := range h.attempts {
			s.running.remove(a)
			delete(s.holds, a.id)
		}
		if others := slices.DeleteFunc(s.subjects[h.subject], func(o *hold) bool { return o == h }); len(others) > 0 {
			s.subjects[h.subject] = others
		} else {
			delete(s.subjects, h.subject)
		}
		freed += h.cost
	}
	s.cost -= freed
	return freed
}

// wakeAt is when the sweeper has to look at the slot.
func (s *slot) wakeAt() int64 {
	return min(s.idleAt, soonest(s.gone), soonest(s.cancels.running), soonest(s.cancels.over))
}
