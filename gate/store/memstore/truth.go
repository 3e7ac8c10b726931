package memstore

import (
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

// terms is what a call says of how the units of its slot are counted.
type terms struct {
	capacity int64 // configured
	truth    store.TruthKind
}

// truth is where a slot stands to the backend's own data (design section 5). Its
// times are microseconds of the store's clock.
type truth struct {
	free     int64 // units available, signed
	admitted int64 // units of all holds taken
	refunded int64 // units of holds released by definite failures
	verified bool  // free is what a look left, moved since
	failed   bool  // the last look found no value
	told     bool  // the source has told total
	total    int64

	last    int64 // the latest of the times below
	moved   int64 // when a hold last moved
	touched int64 // when a gate last came back from an outage
	asked   int64 // when a settlement last asked for a look
	applied int64 // when the last look that was applied began
	fence   int64 // of the newest leader that applied one
	hot     time.Duration
}

// tick is now, later than any time that the slot has noted: it orders looks and
// what they could have missed.
func (t *truth) tick(now int64) int64 {
	t.last = max(now/int64(time.Microsecond), t.last+1)
	return t.last
}

// take counts units that may be booked from now on.
func (t *truth) take(units int64) {
	t.free -= units
	t.admitted += units
}

// refund counts units that were taken and are definitely not booked.
func (t *truth) refund(units int64) {
	t.free += units
	t.refunded += units
}

// old reports whether the last look that was applied began longer ago than age.
func (t *truth) old(now int64, age time.Duration) bool {
	return now-t.applied*int64(time.Microsecond) > int64(age)
}

// inAll is the units of the slot in all, or Learned.
func (s *slot) inAll(t terms) int64 {
	switch {
	case t.truth != store.NoTruth:
		if s.truth.told && (t.truth == store.TruthTotal || s.truth.verified) {
			return s.truth.total
		}
		return store.Learned
	case s.own:
		return s.capacity
	}
	return t.capacity
}

// left is the units that are not taken, negative where more are than there are;
// false where that is not known.
func (s *slot) left(t terms) (units int64, known bool) {
	if t.truth == store.TruthRemaining {
		return s.truth.free, s.truth.verified
	}
	capacity := s.inAll(t)
	return capacity - s.confirmed - s.held, capacity != store.Learned
}

// leftToTell is left as a decide tells it.
func (s *slot) leftToTell(t terms) int64 {
	if units, known := s.left(t); known {
		return max(0, units)
	}
	return -1
}

// over is by how many units more are taken than there are, as far as is known.
func (s *slot) over(t terms) int64 {
	units, known := s.left(t)
	if !known {
		return 0
	}
	return max(0, -units)
}

// doubted reports that the last look failed: counters only refuse.
func (s *slot) doubted(t terms) bool { return t.truth != store.NoTruth && s.truth.failed }

// showTruth fills in how the slot stands to truth.
func (s *slot) showTruth(got *store.Slot, t terms) {
	got.Capacity = s.inAll(t)
	if t.truth == store.NoTruth {
		return
	}
	got.LookFailed = s.truth.failed
	if s.truth.verified || s.truth.told || s.truth.failed {
		got.CheckedAt = time.UnixMicro(s.truth.applied)
	}
	got.Debt = s.over(t)
	if t.truth == store.TruthTotal {
		return
	}
	got.Verified = s.truth.verified
	got.Dirty = got.Dirty || !got.Verified
	if !s.truth.verified {
		return
	}
	if taken := s.confirmed + s.held; s.truth.told {
		got.Outside = s.truth.total - taken - s.truth.free
	} else {
		got.Capacity = max(0, taken+s.truth.free)
	}
}

// moved notes that a hold has moved: truth is to be looked at soon, and when the
// next one lapses.
func (v *visit) moved() {
	t := &v.slot.truth
	t.moved = t.tick(v.now)
	v.dueBy(min(v.now+int64(t.hot), soonest(v.slot.lapsing)))
}

// unsettled is the units that truth may not show yet: of open holds whose answer
// is not known, of bookings younger than lag, and of those with an attempt that may
// still be booked: were the booking cancelled behind our back, it could be again.
func (s *slot) unsettled(now int64, lag time.Duration) (units int64) {
	for id, h := range s.holds {
		if h.id != id {
			continue // found by another attempt of it
		}
		switch h.state {
		case decision.Held, decision.HoldUnknown:
			units += h.units
		case decision.Confirmed, decision.Pending:
			if now-h.booked < int64(lag) || now < h.doubted && h.unanswered() {
				units += h.units
			}
		}
	}
	return units
}
