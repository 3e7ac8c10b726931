package main

import (
	"errors"
	"fmt"
	"strings"
)

// demoFault is nil if every row with the gate shows what the gate promises, else
// it says on one line which does not.
func demoFault(rows []*demoRow) error {
	var wrong []string
	for _, row := range rows {
		if faults := row.faults(); len(faults) > 0 {
			wrong = append(wrong, fmt.Sprintf("%s: %s", row.act, strings.Join(faults, ", ")))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return errors.New("the gate did not hold: " + strings.Join(wrong, "; "))
}

func (r *demoRow) faults() (faults []string) {
	if !r.act.gate {
		return nil
	}
	if r.Bookings != r.Seats {
		faults = append(faults, fmt.Sprintf("%d bookings of %d seats", r.Bookings, r.Seats))
	}
	if r.Oversold > 0 {
		faults = append(faults, fmt.Sprintf("%d oversold", r.Oversold))
	}
	if r.Duplicates > 0 {
		faults = append(faults, fmt.Sprintf("%d duplicate bookings", r.Duplicates))
	}
	if r.Outage != nil && r.Outage.total("passthrough") == 0 {
		faults = append(faults, "no request met the lost store")
	}
	return faults
}

// total is the number of answers with that decision in all phases.
func (c *outageCounts) total(decision string) int {
	n := 0
	for _, counts := range c.Decisions {
		n += counts[decision]
	}
	return n
}
