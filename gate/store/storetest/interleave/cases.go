package interleave

import (
	"os"
	"testing"
)

// full reports whether every case is to be explored, which takes minutes, or only
// those that take seconds.
func full() bool { return os.Getenv("SLOTGATE_MODEL") == "full" }

func book(key, subject string) Request { return Request{Key: key, Subject: subject, Units: 1} }
func cancel(subject string) Request    { return Request{Cancels: true, Subject: subject, Units: 1} }

// bookings are the cases that always run; larger ones run where all are asked for.
var bookings = []Bookings{
	{Name: "a retry, gates die", Requests: []Request{book("a", "ann"), book("a", "ann")}, Capacity: 1,
		OnePerSubject: true, Unique: true, Dies: true, Refuses: true, Lost: true, Copies: true},
	{Name: "a retry and another", Requests: []Request{book("a", "ann"), book("a", "ann"), book("b", "bob")}, Capacity: 1,
		OnePerSubject: true, Unique: true},
	{Name: "keep, reject", Requests: []Request{book("a", "ann"), book("a", "ann"), book("b", "bob")}, Capacity: 1,
		OnePerSubject: true, Reject: true, KeepUnknown: true, Exact: true, Dies: true, Refuses: true},
	{Name: "two units", Requests: []Request{{Key: "a", Subject: "ann", Units: 2}, {Key: "a", Subject: "ann", Units: 2}, book("b", "bob")}, Capacity: 2,
		OnePerSubject: true, Unique: true},
	{Name: "new key", Requests: []Request{book("a", "ann"), book("b", "ann")}, Capacity: 2,
		Unique: true, Dies: true, Refuses: true, Lost: true, Copies: true},
	{Name: "late", Requests: []Request{book("a", "ann"), book("b", "bob")}, Capacity: 1,
		Unique: true, Dies: true, Late: true},
	{Name: "cancel", Requests: []Request{book("a", "ann"), cancel("ann"), book("b", "ann")}, Capacity: 1,
		OnePerSubject: true, Unique: true, Checks: true},
	{Name: "cancel other", Requests: []Request{book("a", "ann"), cancel("ann"), book("b", "bob")}, Capacity: 1,
		OnePerSubject: true, Unique: true, Checks: true, Copies: true},
}

var largerBookings = []Bookings{}

// Run explores the cases.
func Run(t *testing.T, open Open) {
	for _, c := range bookings {
		run(t, open, c.Name, &c)
	}
	if !full() {
		return
	}
	for _, c := range largerBookings {
		run(t, open, c.Name, &c)
	}
}
