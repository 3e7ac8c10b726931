package storetest

import (
	"context"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

const (
	hot     = 40 * time.Second
	refresh = 10 * time.Minute
	// lookLease is how long a look of these tests keeps others off.
	lookLease = 30 * time.Second
)

// truthful makes a slot's counters follow what the source says is left.
func truthful(d *store.Decide) {
	d.Capacity, d.Truth, d.Hot, d.Refresh = store.Learned, store.TruthRemaining, hot, refresh
}

func blind(d *store.Decide) { d.Blind = true }

// truth is the next gate's store, for looks.
func (f *fixture) truth() store.Truth { return f.gate() }

// look begins a look of the slot of d and fails unless it may go on.
func (f *fixture) look(d *store.Decide, change ...func(*store.Look)) *store.Reading {
	f.Helper()
	r := f.tryLook(d, change...)
	if r.Looked.Busy != 0 {
		f.Fatalf("look %s: busy for %v", r.Look.ID, r.Looked.Busy)
	}
	return r
}

func (f *fixture) tryLook(d *store.Decide, change ...func(*store.Look)) *store.Reading {
	f.Helper()
	l := &store.Look{Query: query(d), ID: newID(), Lease: lookLease}
	for _, c := range change {
		c(l)
	}
	got, err := f.truth().Look(context.Background(), l)
	if err != nil {
		f.Fatalf("look %s: %v", l.ID, err)
	}
	return &store.Reading{Look: l, Looked: got, Total: store.Learned, Hot: hot, Refresh: refresh}
}

func forced(l *store.Look) { l.Force = true }

// says is what the source told: the units that are left, or in all.
func says(r *store.Reading, value int64) *store.Reading {
	r.Found, r.Value = true, value
	return r
}

// apply ends a look and fails unless it counts.
func (f *fixture) apply(r *store.Reading) store.Applied {
	f.Helper()
	got := f.tryApply(r)
	if !got.Applied {
		f.Fatalf("apply %s: refused", r.Look.ID)
	}
	return got
}

func (f *fixture) tryApply(r *store.Reading) store.Applied {
	f.Helper()
	got, err := f.truth().Apply(context.Background(), r)
	if err != nil {
		f.Fatalf("apply %s: %v", r.Look.ID, err)
	}
	return got
}

// refused fails unless a reading is of no use any more and changes nothing.
func (f *fixture) refused(d *store.Decide, r *store.Reading) {
	f.Helper()
	before := f.slot(d)
	if got := f.tryApply(r); got != (store.Applied{}) {
		f.Fatalf("apply %s: %+v, want it refused", r.Look.ID, got)
	}
	after := f.slot(d)
	if after.Capacity != before.Capacity || after.Debt != before.Debt || after.Verified != before.Verified || !after.CheckedAt.Equal(before.CheckedAt) || after.LookFailed != before.LookFailed {
		f.Fatalf("slot %+v became %+v", before, after)
	}
}

// sync looks at the slot of d, whose source says value.
func (f *fixture) sync(d *store.Decide, value int64) store.Applied {
	f.Helper()
	return f.apply(says(f.look(d), value))
}

// free fails unless so many units are available on the slot of d, signed.
func (f *fixture) free(d *store.Decide, want int64) {
	f.Helper()
	got := f.slot(d)
	n, known := got.Available()
	if !known || n-got.Debt != want {
		f.Fatalf("%d units available (known %t), debt %d; want %d", n, known, got.Debt, want)
	}
}

// loads fails unless a request of the slot of d is told to look at truth first.
func (f *fixture) loads(d *store.Decide) {
	f.Helper()
	f.expect(decision.Load, again(d))
}
