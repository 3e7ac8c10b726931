package interleave

import (
	"os"
	"testing"
)

// Run explores the cases: those that take seconds, or with SLOTGATE_MODEL=full all.
func Run(t *testing.T, open Open) {
	runCases(t, open, Cases(), LargeCases())
}

// RunFragile does the same with cases of a store that is Fragile.
func RunFragile(t *testing.T, open Open) {
	runCases(t, open, Fragiles(), LargeFragiles())
}

// RunStepwise does the same with cases of a store that is Stepped.
func RunStepwise(t *testing.T, open Open) {
	runCases(t, open, Stepwise(), LargeStepwise())
}

func runCases(t *testing.T, open Open, cases, large []Case) {
	if os.Getenv("SLOTGATE_MODEL") == "full" {
		cases = append(cases, large...)
	}
	for _, c := range cases {
		t.Run(c.String(), func(t *testing.T) {
			for _, broken := range Explore(t, open, c).Broken {
				t.Error(&broken)
			}
		})
	}
}

func book(key, subject string) Request { return Request{Key: key, Subject: subject, Units: 1} }

func cancel(subject string) Request { return Request{Cancels: true, Subject: subject, Units: 1} }

// two is units that one request takes.
func two(q Request) Request {
	q.Units = 2
	return q
}

// Cases are small ones.
func Cases() []Case {
	retry := []Request{book("a", "ann"), book("a", "ann")}
	other := append(retry, book("b", "bob"))
	return []Case{
		&Bookings{Name: "retry", Requests: retry, Capacity: 1,
			OnePerSubject: true, Unique: true, Refuses: true, Dies: true, Lost: true, Copies: true},
		&Bookings{Name: "retry, other", Requests: other, Capacity: 1,
			OnePerSubject: true, Unique: true},
		&Bookings{Name: "retry, other, two units", Requests: []Request{two(retry[0]), two(retry[1]), other[2]}, Capacity: 2,
			OnePerSubject: true, Unique: true},
		&Bookings{Name: "reject, keep unknown", Requests: other, Capacity: 1,
			OnePerSubject: true, Reject: true, KeepUnknown: true, Exact: true, Refuses: true, Dies: true},
		&Bookings{Name: "retry, refusals stored", Requests: retry, Capacity: 1,
			OnePerSubject: true, Unique: true, Refuses: true, StoreRefusals: true, Copies: true},
		&Bookings{Name: "two keys", Requests: []Request{book("a", "ann"), book("b", "ann")}, Capacity: 2,
			Unique: true, Refuses: true, Dies: true, Lost: true, Copies: true},
		&Bookings{Name: "other, late", Requests: other[1:], Capacity: 1,
			Unique: true, Dies: true, Late: true},
		&Bookings{Name: "retry, late", Requests: retry, Capacity: 1,
			OnePerSubject: true, Unique: true, Refuses: true, Late: true},
		&Bookings{Name: "cancel, next", Requests: []Request{book("a", "ann"), cancel("ann"), book("b", "ann")}, Capacity: 1,
			OnePerSubject: true, Unique: true, Checks: true},
		&Bookings{Name: "cancel, other", Requests: []Request{book("a", "ann"), cancel("ann"), book("b", "bob")}, Capacity: 1,
			OnePerSubject: true, Unique: true, Checks: true, Copies: true},
		&Bookings{Name: "cancel of nothing, late", Requests: []Request{book("a", "ann"), cancel("ann")}, Capacity: 1,
			OnePerSubject: true, Unique: true, Idempotent: true, Late: true},
		&Outages{Name: "away", Requests: 2, Capacity: 1, Away: true},
	}
}

// Stepwise are cases of a store whose calls take several steps.
func Stepwise() []Case {
	retry := []Request{book("a", "ann"), book("a", "ann")}
	return []Case{
		&Bookings{Name: "retry, step by step", Requests: retry, Capacity: 1,
			OnePerSubject: true, Unique: true, Dies: true, Refuses: true, Copies: true, Steps: true},
		&Bookings{Name: "retry, step by step, late", Requests: retry, Capacity: 1,
			OnePerSubject: true, Unique: true, Late: true, Steps: true},
	}
}

// Fragiles are small cases of a store that can come back with other data.
func Fragiles() []Case {
	return []Case{
		&Outages{Name: "emptied, silent gates", Requests: 2, Capacity: 1, Emptied: true, Silent: true},
		&Outages{Name: "a replica behind, silent gates", Requests: 2, Capacity: 1, Behind: true, Silent: true},
	}
}

// LargeStepwise are larger ones.
func LargeStepwise() []Case {
	other := []Request{book("a", "ann"), book("a", "ann"), book("b", "bob")}
	return []Case{
		&Bookings{Name: "retry, other, step by step", Requests: other, Capacity: 1,
			OnePerSubject: true, Unique: true, Dies: true, Steps: true},
	}
}

// LargeFragiles are larger ones.
func LargeFragiles() []Case {
	return []Case{
		&Outages{Name: "emptied", Requests: 2, Capacity: 1, Emptied: true},
		&Outages{Name: "a replica behind", Requests: 2, Capacity: 1, Behind: true},
		&Outages{Name: "away or emptied", Requests: 2, Capacity: 1, Away: true, Emptied: true},
	}
}

// LargeCases take minutes.
func LargeCases() []Case {
	retry := []Request{book("a", "ann"), book("a", "ann")}
	other := append(retry, book("b", "bob"))
	return []Case{
		&Bookings{Name: "retry, other, all faults", Requests: other, Capacity: 1,
			OnePerSubject: true, Unique: true, Dies: true, Lost: true, Copies: true},
		&Bookings{Name: "retry, other, constraints", Requests: other, Capacity: 1,
			OnePerSubject: true, Unique: true, Checks: true, Refuses: true, Dies: true},
		&Bookings{Name: "two retries, other", Requests: []Request{retry[0], retry[1], retry[0], other[2]}, Capacity: 1,
			OnePerSubject: true, Unique: true},
		&Bookings{Name: "two retries, late", Requests: append(retry, book("a", "ann")), Capacity: 2,
			Unique: true, Late: true},
		&Bookings{Name: "retry, cancel, other", Requests: []Request{retry[0], retry[1], cancel("ann"), other[2]}, Capacity: 1,
			OnePerSubject: true, Unique: true},
		&Bookings{Name: "two cancels, next", Requests: []Request{book("a", "ann"), cancel("ann"), cancel("ann"), book("b", "ann")}, Capacity: 1,
			OnePerSubject: true, Unique: true, Idempotent: true, Copies: true},
		&Bookings{Name: "cancel of nothing, other, late", Requests: []Request{book("a", "ann"), cancel("ann"), book("b", "bob")}, Capacity: 1,
			OnePerSubject: true, Unique: true, Idempotent: true, Late: true},
		&Bookings{Name: "retry, other, long leases", Requests: other, Capacity: 1,
			OnePerSubject: true, Unique: true, Dies: true, Lease: 2, TTL: 3},
		&Bookings{Name: "retry, other, two keys of one subject", Requests: []Request{retry[0], retry[1], book("c", "ann"), other[2]}, Capacity: 2,
			Unique: true},
	}
}
