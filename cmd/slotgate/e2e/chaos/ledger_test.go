package chaos

import "fmt"

// ledgerFaults are bookings that the database should not have had at once.
func ledgerFaults(ledger []entry, t terms) (faults []string) {
	type place struct {
		lesson  int
		student string
	}
	sold, has := map[int]int{}, map[place]int{}
	for _, e := range ledger {
		at := place{e.lesson, e.student}
		sold[e.lesson] += e.change
		has[at] += e.change
		switch {
		case e.change > 0 && sold[e.lesson] > t.most:
			faults = append(faults, fmt.Sprintf("oversold: lesson %d has %d bookings: %v", e.lesson, sold[e.lesson], e))
		case e.change > 0 && has[at] > 1 && !t.twice:
			faults = append(faults, fmt.Sprintf("a student twice: %v", e))
		}
	}
	return faults
}

// toldFaults are where clients and database differ: an answer that was made up, and a
// booking or cancellation that nobody asked for or heard of.
func toldFaults(calls []call, ledger []entry) (faults []string) {
	type change struct {
		booking int64
		change  int
	}
	made := map[change]entry{}
	for _, e := range ledger {
		made[change{e.booking, e.change}] = e
	}
	heard := map[int64]bool{}
	for _, c := range calls {
		if c.booking == 0 || c.status != 201 {
			continue
		}
		heard[c.booking] = true
		if e, found := made[change{c.booking, 1}]; !found || e.student != c.student || e.lesson != c.lesson {
			faults = append(faults, fmt.Sprintf("a booking that the database does not have: %v", c))
		}
	}
	for _, e := range ledger {
		if e.change > 0 && !heard[e.booking] && !anyUnknown(calls, e, book) {
			faults = append(faults, fmt.Sprintf("a booking that nobody was told of: %v", e))
		}
	}
	return faults
}

// anyUnknown reports that a call without an answer may have been this change.
func anyUnknown(calls []call, e entry, a action) bool {
	for _, c := range calls {
		if c.action == a && c.lesson == e.lesson && c.student == e.student && c.verdict() == unknown && c.began <= e.at {
			return true
		}
	}
	return false
}
