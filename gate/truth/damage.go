package truth

import (
	"cmp"
	"slices"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/truth/source"
)

// Damage is a fixed word for what is wrong in truth itself.
type Damage string

const (
	// Overbooked: more bookings than the slot has units in all.
	Overbooked Damage = "overbooked"
	// NegativeRemainder: the backend's own remainder is below zero.
	NegativeRemainder Damage = "negative-remainder"
	// SubjectTwice: a subject has more bookings than it was admitted for, or under
	// one_per_subject more than one.
	SubjectTwice Damage = "subject-twice"
	// BookedWithoutAdmission: a booking made since the gate has known the slot, and
	// older than lag, of a subject without a hold, and that no lapsed hold explains.
	BookedWithoutAdmission Damage = "booked-without-admission"
	// AdmittedWithoutBooking: a confirmed hold whose subject has no booking.
	AdmittedWithoutBooking Damage = "admitted-without-booking"
)

// Damages lists every word.
func Damages() []Damage {
	return []Damage{Overbooked, NegativeRemainder, SubjectTwice, BookedWithoutAdmission, AdmittedWithoutBooking}
}

// Finding is one damage of one slot.
type Finding struct {
	Pool string `json:"pool"`
	Slot string `json:"slot"`
	Kind Damage `json:"kind"`
	// Units is how many: over the total, below zero, surplus bookings, held.
	Units int64 `json:"units"`
	// Subject is whose; Hold is the hold without a booking.
	Subject string `json:"subject,omitempty"`
	Hold    string `json:"hold,omitempty"`
	// Bookings are those to look into, latest first: the ones over the total or
	// below zero, a subject's beyond its first, those without admission.
	Bookings []Booking `json:"bookings"`
	// SQL shows them, and may suggest how to delete them, for a person to review.
	// It is never executed. "" where it cannot be written.
	SQL string `json:"sql,omitempty"`

	dated bool // bookings.query has a third column
}

// Booking is a row of bookings.query.
type Booking struct {
	ID      string    `json:"id"`
	Subject string    `json:"subject"`
	At      time.Time `json:"at,omitzero"`
}

// id tells a finding from others of its slot. Findings of single bookings are told
// apart, until they are put together.
func (f Finding) id() string {
	id := string(f.Kind) + " " + f.Hold + " " + f.Subject
	if f.Kind == BookedWithoutAdmission {
		id += " " + f.Bookings[0].ID
	}
	return id
}

// damage is what is wrong in truth by one observation.
func (o *observation) damage() []Finding {
	if o.value.Missing || !o.listed {
		return nil
	}
	latest := latestFirst(o.bookings)
	var found []Finding
	dated := slices.ContainsFunc(o.bookings, func(b source.Booking) bool { return !b.At.IsZero() })
	add := func(f Finding) {
		f.dated = dated
		f.Pool, f.Slot = o.after.Pool, o.after.Slot
		found = append(found, f)
	}
	over := int64(0)
	if o.value.Total != store.Learned && !o.value.None {
		over = int64(len(latest)) - o.value.Total
	}
	switch {
	case over > 0:
		add(Finding{Kind: Overbooked, Units: over, Bookings: latest[:over]})
	case !o.value.None && o.value.N < 0:
		add(Finding{Kind: NegativeRemainder, Units: -o.value.N, Bookings: latest[:min(-o.value.N, int64(len(latest)))]})
	}
	admitted := o.admitted()
	for _, f := range o.bookedTwice(latest, admitted) {
		add(f)
	}
	for _, b := range latest {
		if admitted[b.Subject] == 0 && o.booked[b.Subject] == 1 && o.tellsAdmission(&b) && !o.coveredByLapse(b.At) {
			add(Finding{Kind: BookedWithoutAdmission, Units: 1, Subject: b.Subject, Bookings: []Booking{b}})
		}
	}
	for _, h := range returnedHolds(o.before.Holds, o.booked) {
		if o.stands(h.ID, decision.Confirmed) {
			add(Finding{Kind: AdmittedWithoutBooking, Units: h.Units, Subject: h.Subject, Hold: h.ID})
		}
	}
	return found
}

// admitted counts the holds of each subject, in whatever state, before or after the
// read.
func (o *observation) admitted() map[string]int {
	seen, admitted := map[string]bool{}, map[string]int{}
	for _, s := range []*store.Slot{&o.before, &o.after} {
		for _, h := range s.Holds {
			if !seen[h.ID] {
				seen[h.ID] = true
				admitted[h.Subject]++
			}
		}
	}
	return admitted
}

// bookedTwice are the subjects with a booking too many, each with all but its first.
func (o *observation) bookedTwice(latest []Booking, admitted map[string]int) (found []Finding) {
	surplus := map[string][]Booking{}
	for _, b := range latest {
		if b.Subject != "" && o.booked[b.Subject] > 1 {
			surplus[b.Subject] = append(surplus[b.Subject], b)
		}
	}
	for subject, rows := range surplus {
		allowed := 1
		if !o.onePerSubject {
			if allowed = max(1, admitted[subject]); len(rows) <= allowed || !o.tellsAdmission(&rows[0]) {
				continue
			}
		}
		rows = rows[:len(rows)-allowed]
		if !o.onePerSubject { // a hold that lapsed may have been booked after all
			rows = slices.DeleteFunc(rows, func(b Booking) bool { return o.coveredByLapse(b.At) })
		}
		if len(rows) == 0 {
			continue
		}
		found = append(found, Finding{Kind: SubjectTwice, Units: int64(len(rows)), Subject: subject, Bookings: rows})
	}
	slices.SortFunc(found, func(a, b Finding) int { return cmp.Compare(a.Subject, b.Subject) })
	return found
}

// tellsAdmission reports whether a booking without a hold was made without admission:
// the gate knew the slot when it was made, has had the time to hear of it, and shows
// all its holds. A booking of unknown time tells nothing.
func (o *observation) tellsAdmission(b *Booking) bool {
	return b.Subject != "" && !b.At.IsZero() && !o.since.IsZero() && b.At.After(o.since) && o.now.Sub(b.At) > o.lag && o.whole()
}

// latestFirst orders bookings by when they were made, then by id as databases count:
// a longer number is a later one.
func latestFirst(list []source.Booking) []Booking {
	latest := make([]Booking, len(list))
	for i, b := range list {
		latest[i] = Booking(b)
	}
	slices.SortStableFunc(latest, func(a, b Booking) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(len(b.ID), len(a.ID)), cmp.Compare(b.ID, a.ID))
	})
	return latest
}
