package truth

import (
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

// Kind is a fixed word for how store and truth differ.
type Kind string

const (
	// AvailableTooHigh: the store would sell units that truth does not have.
	AvailableTooHigh Kind = "available-too-high"
	// AvailableTooLow: the store refuses units that truth has.
	AvailableTooLow Kind = "available-too-low"
	// CapacityDiffers (means: capacity): the store counts against another total.
	CapacityDiffers Kind = "capacity-differs"
	// MarkedFull: the slot is marked full for units that truth has.
	MarkedFull Kind = "marked-full"
	// Unverified: truth has a value, and the store does not trust its counters: the
	// last look failed, or the store came back with other data.
	Unverified Kind = "unverified"
	// SlotMissing: truth does not have the slot, and the store counts on it.
	SlotMissing Kind = "slot-missing"
	// Oversold: truth has less than nothing left. Only the backend's side can be
	// repaired; Audit lists the bookings.
	Oversold Kind = "oversold"
	// HoldWithoutBooking: a confirmed hold whose subject has no booking.
	HoldWithoutBooking Kind = "hold-without-booking"
	// UnknownWithoutBooking: a hold kept as unknown beyond hold_ttl whose subject has
	// no booking.
	UnknownWithoutBooking Kind = "unknown-without-booking"
	// HeldTwice (one_per_subject): a subject with more than one confirmed hold.
	HeldTwice Kind = "held-twice"
)

// Kinds lists every word.
func Kinds() []Kind {
	return []Kind{AvailableTooHigh, AvailableTooLow, CapacityDiffers, MarkedFull, Unverified,
		SlotMissing, Oversold, HoldWithoutBooking, UnknownWithoutBooking, HeldTwice}
}

// Difference is one row of a reconcile report. Store and Truth are units, nil where
// there is no value; Difference is Store − Truth, of holds the units of the hold.
type Difference struct {
	Pool       string `json:"pool"`
	Slot       string `json:"slot"`
	Kind       Kind   `json:"kind"`
	Store      *int64 `json:"store"`
	Truth      *int64 `json:"truth"`
	Difference int64  `json:"difference"`
	Hold       string `json:"hold,omitempty"`
	Subject    string `json:"subject,omitempty"`
	Repaired   bool   `json:"repaired"`
}

// id tells a difference from others of its slot.
func (d Difference) id() string { return string(d.Kind) + " " + d.Hold }

// differences are those of one observation. While units move it takes what they may
// be: the truth must lie outside all of it.
func (o *observation) differences() []Difference {
	s := &o.after
	var found []Difference
	add := func(kind Kind, inStore, inTruth *int64) {
		d := Difference{Pool: s.Pool, Slot: s.Slot, Kind: kind, Store: inStore, Truth: inTruth}
		if inStore != nil && inTruth != nil {
			d.Difference = *inStore - *inTruth
		}
		found = append(found, d)
	}
	known := s.Capacity != store.Learned
	switch {
	case o.value.Missing:
		if known {
			left := available(s)
			add(SlotMissing, &left, nil)
		}
	case o.value.None:
	case o.kind == store.TruthTotal:
		if inTruth := o.value.N; s.Capacity != inTruth {
			var inStore *int64
			if known {
				inStore = &s.Capacity
			}
			add(CapacityDiffers, inStore, &inTruth)
		}
	case !known || !s.Verified || s.LookFailed:
		add(Unverified, nil, &o.value.N)
	default:
		least, most := o.span()
		switch {
		case least > o.value.N:
			add(AvailableTooHigh, &least, &o.value.N)
		case most < o.value.N:
			add(AvailableTooLow, &most, &o.value.N)
		}
	}
	if left := o.value.N; o.kind == store.TruthRemaining && !o.value.Missing && !o.value.None {
		if left < 0 {
			add(Oversold, nil, &left)
		}
		if s.Full > 0 && left >= s.Full+o.open {
			none := s.Full - 1
			add(MarkedFull, &none, &left)
		}
	}
	return append(found, o.holdDifferences()...)
}

// span is the least and the most units that the store may rightly count as free,
// going by what it counted before and after the read and by what is open: truth may
// show each open unit or not.
func (o *observation) span() (least, most int64) {
	before, after := available(&o.before), available(&o.after)
	return min(before, after), max(before, after) + o.open
}

// available is signed: debt is below zero.
func available(s *store.Slot) int64 {
	left, _ := s.Available()
	return left - s.Debt
}

func (o *observation) holdDifferences() (found []Difference) {
	confirmed := map[string]int{}
	// Newest first: of several holds of a subject the newest is the one to stay.
	for _, h := range o.before.Holds {
		d := Difference{
			Pool: o.after.Pool, Slot: o.after.Slot, Hold: h.ID, Subject: h.Subject, Difference: h.Units,
		}
		switch {
		case h.Subject == "":
			continue
		case h.State == decision.HoldUnknown:
			if o.listed && o.booked[h.Subject] == 0 && overdue(&h, o.holdTTL, o.now) {
				d.Kind = UnknownWithoutBooking
			}
		case h.State == decision.Confirmed:
			confirmed[h.Subject]++
			switch {
			case o.listed && o.booked[h.Subject] == 0:
				d.Kind = HoldWithoutBooking
			case o.onePerSubject && confirmed[h.Subject] > 1:
				d.Kind = HeldTwice
			}
		}
		if d.Kind != "" && o.stands(h.ID, h.State) {
			found = append(found, d)
		}
	}
	return found
}

// stands reports whether the hold was still in this state after the read.
func (o *observation) stands(id string, state decision.HoldState) bool {
	for _, h := range o.after.Holds {
		if h.ID == id {
			return h.State == state
		}
	}
	return false
}

// overdue reports that no booking of the hold can be committed any more (A1): it is
// kept though its hold_ttl is over.
func overdue(h *store.Hold, ttl time.Duration, now time.Time) bool {
	return h.ExpiresAt.IsZero() && now.Sub(h.TakenAt) > (store.MaxAdoptions+1)*ttl
}
