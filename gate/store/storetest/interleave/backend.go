package interleave

import "github.com/slotgate/slotgate/rules"

// job is a request at the backend, which does it, or refuses, when it likes.
type job uint8

const (
	noJob job = iota
	pending
	committed // booked
	cancelled // booked, and cancelled since
	refused
	soldOut
	duplicate
	done       // a cancel that took a booking out
	doneBefore // a cancel of nothing that was told yes
)

// heard is what a gate reads in the backend's answer.
func (j job) heard() rules.Outcome {
	switch j {
	case committed, cancelled:
		return rules.Booked
	case refused:
		return rules.Refused
	case soldOut:
		return rules.SoldOut
	case duplicate:
		return rules.Duplicate
	case done, doneBefore:
		return rules.Done
	}
	return rules.NoOutcome
}

func (j job) String() string {
	return [...]string{"nothing", "pending", "BOOKS", "cancelled", "refuses", "says sold out", "says duplicate", "CANCELS", "says yes to a cancel of nothing"}[j]
}
