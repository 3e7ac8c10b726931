package storm

import (
	"cmp"
	"slices"
)

// PerSlot counts the successes of each slot that has any.
func (r *Report) PerSlot() map[int64]int {
	counts := make(map[int64]int)
	for _, b := range r.Successes {
		counts[b.Slot]++
	}
	return counts
}

// Duplicates are the successes beyond the first of the same subject in the same
// slot.
func (r *Report) Duplicates() []Booking {
	type place struct {
		subject int
		slot    int64
	}
	seen := make(map[place]bool, len(r.Successes))
	var duplicates []Booking
	for _, b := range r.Successes {
		if at := (place{b.Subject, b.Slot}); seen[at] {
			duplicates = append(duplicates, b)
		} else {
			seen[at] = true
		}
	}
	return duplicates
}

// Sale is what one slot sold.
type Sale struct {
	Slot     int64 // -1 when the templates name none
	Sold     int   // distinct successes
	Oversold int   // of them beyond Report.Capacity, where that is known
	Twice    int   // of them of a subject that already had one
}

// Sales are the sales of all slots that had a success, by slot.
func (r *Report) Sales() []Sale {
	twice := make(map[int64]int)
	for _, b := range r.Duplicates() {
		twice[b.Slot]++
	}
	var sales []Sale
	for slot, sold := range r.PerSlot() {
		s := Sale{Slot: slot, Sold: sold, Twice: twice[slot]}
		if r.Capacity > 0 {
			s.Oversold = max(0, sold-r.Capacity)
		}
		sales = append(sales, s)
	}
	slices.SortFunc(sales, func(a, b Sale) int { return cmp.Compare(a.Slot, b.Slot) })
	return sales
}
