package memstore

import (
	"context"
	"time"

	"github.com/slotgate/slotgate/gate/store"
)

// moving is how long after its last movement a slot is still looked at, if not ten
// times Refresh.
const moving = time.Hour

// Apply ends a look with what the source said; see the package gate/store.
func (s *Store) Apply(ctx context.Context, r *store.Reading) (got store.Applied, err error) {
	defer s.observed("apply")(&err)
	v, err := s.look(ctx, "apply", r.Look.Query)
	if err != nil {
		return store.Applied{}, err
	}
	defer v.leave()
	if lease := v.slots.looks[v.slot.name]; lease != nil && lease.id == r.Look.ID {
		v.endLook(lease)
	}
	switch {
	case v.overtaken(r):
		return store.Applied{}, nil
	case r.Missing:
		return v.forgetTruth(r), nil
	case !v.memory.reserve(v.slotSize()):
		return store.Applied{}, s.full("apply")
	}
	v.see()
	got = v.apply(r)
	v.keepUntil(v.now + int64(r.Look.Query.Retain))
	v.planLook(r, got.Again)
	return got, nil
}

// overtaken reports that the reading is of no use any more.
func (v *visit) overtaken(r *store.Reading) bool {
	t, l := &v.slot.truth, &r.Looked
	switch {
	case v.seen != l.Known, v.slot.born != l.Born:
		return true
	case l.At <= t.applied, l.At < t.touched: // H18
		return true
	}
	return r.Fence > 0 && r.Fence < t.fence
}

// note puts down whose look has been applied.
func (t *truth) note(r *store.Reading) {
	t.applied, t.hot = r.Looked.At, r.Hot
	t.last = max(t.last, t.applied)
	t.fence = max(t.fence, r.Fence)
	t.failed = !r.Found && !r.Missing
}

// forgetTruth drops what is known of a slot that the source has not.
func (v *visit) forgetTruth(r *store.Reading) store.Applied {
	if v.seen {
		t := &v.slot.truth
		t.note(r)
		t.verified, t.told, t.total = false, false, 0
		v.unplan(v.slot)
		v.touched()
	}
	return store.Applied{Applied: true}
}

// apply brings the counters to what the source said, up or down.
func (v *visit) apply(r *store.Reading) (got store.Applied) {
	s, t := v.slot, &v.slot.truth
	of := terms{capacity: r.Look.Query.Capacity, truth: r.Look.Query.Truth}
	got.Applied = true
	if before, known := s.left(of); known {
		got.Known, got.Before = true, before
	}
	t.note(r)
	if r.Found {
		if of.truth == store.TruthRemaining {
			got.Again = v.follow(r)
		} else {
			t.told, t.total = true, r.Value
		}
	}
	if after, known := s.left(of); known {
		got.After = after
	}
	if r.Found && r.Looked.Marked && got.After >= s.mark.units {
		s.release()
	}
	v.touched()
	return got
}

// follow computes the units available from those that truth has left, and reports
// whether some were open, or admitted, at the read.
func (v *visit) follow(r *store.Reading) (again bool) {
	s, t, l := v.slot, &v.slot.truth, &r.Looked
	admitted, refunded := t.admitted-l.Admitted, t.refunded-l.Refunded
	t.free = r.Value - (l.Open + admitted - refunded) - s.beingFreed(v.now)
	t.verified = true
	t.told, t.total = r.Total != store.Learned, r.Total
	return l.Open > 0 || admitted > 0
}

// planLook says when the slot is next due.
func (v *visit) planLook(r *store.Reading, again bool) {
	s := v.slot
	at := int64(never)
	quiet := v.now - s.truth.moved*int64(time.Microsecond)
	switch {
	case s.truth.asked > r.Looked.At:
		at = v.now
	case again || s.truth.moved > r.Looked.At:
		at = v.now + int64(r.Hot)
	case s.truth.moved > 0 && quiet < int64(max(moving, 10*r.Refresh)):
		at = v.now + int64(r.Refresh)
	}
	if len(s.lapsing) > 0 {
		at = min(at, s.lapsing[0].at)
	}
	v.plan(s, at)
}
