package truth

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/truth/source"
)

// observation is what store and truth say of a slot at about one time: the store is
// read before and after the source.
type observation struct {
	before, after store.Slot
	// open is the units of which truth may or may not show a booking. since is when
	// the gate first knew the slot, as far as its ledger goes back; zero: not known.
	// lapsed are the holds that ended without anybody knowing what came of them.
	open   int64
	since  time.Time
	lapsed []span
	// value is the source's; booked counts each subject's bookings where listed.
	value    source.Value
	bookings []source.Booking
	booked   map[string]int
	listed   bool

	now           time.Time
	kind          store.TruthKind
	holdTTL, lag  time.Duration
	onePerSubject bool
}

// atRest reports that nothing moved meanwhile, nor may move in truth by what the
// store knows of: the observation is of one moment.
func (o *observation) atRest() bool {
	return o.open == 0 && o.before.Version == o.after.Version && o.before.Inflight == 0 && o.after.Inflight == 0
}

// whole reports that the holds shown are all that the slot has.
func (o *observation) whole() bool {
	for _, s := range []*store.Slot{&o.before, &o.after} {
		var units int64
		for _, h := range s.Holds {
			units += h.Units
		}
		if units != s.Confirmed+s.Held {
			return false
		}
	}
	return true
}

// glance is an observation from a slot that was read with others some time ago. It is
// good enough to see that nothing is wrong with a slot, and for no more.
func (x *examiner) glance(ctx context.Context, s store.Slot) (*observation, error) {
	o := x.blank()
	o.before, o.after, o.open = s, s, s.Held
	o.since = time.Unix(0, 0) // whatever may be wrong is looked at again
	return o, x.readTruth(ctx, s.Slot, o)
}

// observe reads store, truth and store. It begins a look to learn what is open, without
// a lease, and never applies it.
func (x *examiner) observe(ctx context.Context, slot string) (*observation, error) {
	p, q := x.pool, x.pool.query(slot)
	o := x.blank()
	var err error
	if o.before, err = p.store.Slot(ctx, q); err != nil {
		return nil, err
	}
	looked, err := p.store.Look(ctx, &store.Look{Query: q, ID: newID(), Lag: p.truth.Lag})
	if err != nil {
		return nil, err
	}
	// Another look has the lease: how much is open it did not say. All may be.
	o.open = looked.Open
	if looked.Busy > 0 {
		o.open = o.before.Held + o.before.Confirmed
	}
	if err := x.readTruth(ctx, slot, o); err != nil {
		return nil, err
	}
	if x.dated {
		entries, err := x.pool.store.Ledger(ctx, x.pool.name, slot, wholeLedger)
		if err != nil {
			return nil, err
		}
		o.readLedger(entries)
	}
	o.after, err = p.store.Slot(ctx, q)
	return o, err
}

// span is when a hold's booking may have been made: since it was taken, as far as the
// ledger goes back, and no longer than hold_ttl after its latest attempt (A1).
type span struct{ from, to time.Time }

// readLedger takes from a slot's entries, newest first, what tells admissions that no
// hold shows any more.
func (o *observation) readLedger(entries []store.Entry) {
	if len(entries) == 0 {
		return
	}
	o.since = entries[len(entries)-1].Time
	taken, lapsed := map[string]span{}, map[string]span{}
	for _, e := range slices.Backward(entries) {
		s, seen := taken[e.Hold]
		if !seen {
			s.from = e.Time
		}
		if !seen || e.To == decision.Held {
			s.to = e.Time.Add(o.holdTTL)
		}
		taken[e.Hold] = s
		if delete(lapsed, e.Hold); e.To == decision.Lapsed { // what was settled after it shows as a hold
			lapsed[e.Hold] = s
		}
	}
	o.lapsed = slices.SortedFunc(maps.Values(lapsed), func(a, b span) int { return b.from.Compare(a.from) })
}

// coveredByLapse reports that a booking made at that time may be of a hold that lapsed:
// of an order paid late, or of an answer that never came. Such a hold stands for one
// booking; it is found for as many as can be when asked for the latest first. The
// clocks of database and store may differ by lag.
func (o *observation) coveredByLapse(made time.Time) bool {
	i := slices.IndexFunc(o.lapsed, func(s span) bool {
		return !made.Before(s.from.Add(-o.lag)) && !made.After(s.to.Add(o.lag))
	})
	if i < 0 {
		return false
	}
	o.lapsed = slices.Delete(o.lapsed, i, i+1)
	return true
}

func (x *examiner) blank() *observation {
	p := x.pool
	return &observation{
		now: time.Now(), kind: p.kind, holdTTL: p.config.HoldTTL, lag: p.truth.Lag,
		onePerSubject: p.config.OnePerSubject,
	}
}

func (x *examiner) readTruth(ctx context.Context, slot string, o *observation) (err error) {
	p := x.pool
	if err := x.take(ctx); err != nil {
		return err
	}
	defer x.give()
	if o.value, err = p.read(ctx, slot); err != nil {
		return err
	}
	if p.lister == nil || o.value.Missing {
		return nil
	}
	if o.bookings, err = p.bookings(ctx, slot); err != nil {
		return err
	}
	o.listed, o.booked = true, countSubjects(o.bookings)
	p.noteSubjects(o.before.Holds, o.booked)
	return nil
}

// gone reports that the slot is not in the store any more.
func gone(err error) bool { return errors.Is(err, store.ErrNoSlot) }
