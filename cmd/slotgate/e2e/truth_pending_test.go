package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/gate/testbed"
)

// TestWhatIsNotPaidIsLeftToTruth: four students order. Ann pays through the gate, Bob
// past it, Cid never, and the backend drops that order by itself; Dan does not pay
// either, and the backend keeps his. When pending_ttl has passed, a look frees Cid's
// seat and no other. Looks of any other cause come too late to play a part.
func TestWhatIsNotPaidIsLeftToTruth(t *testing.T) {
	t.Parallel()
	const pendingTTL = 3 * time.Second
	database := sqliteTables(t)
	backend := startLegacy(t, booking.Options{Database: database.database, Style: booking.Conditional, Lessons: 1, Seats: 4})
	config := lessons(backend.url, redisStore(testbed.Redis(t).Addr()), "",
		database.remainder("lesson_slot", "refresh: 5m, hot: 5m, lag: 100ms, timeout: 5s")+", hold_ttl: 30s, pending_ttl: 3s, one_per_subject: true", followUps)
	gates := []*gateProcess{startGate(t, config), startGate(t, config)}
	began := time.Now()
	ids := map[string]int64{}
	for n, student := range []string{"ann", "bob", "cid", "dan"} {
		a := book(gates[n%2].url, 1, student)
		expect(t, a, 201, "admitted", "booked")
		ids[student] = bookingID(t, a)
	}
	pay := func(base string, id int64) answer {
		return send("POST", fmt.Sprintf("%s/api/bookings/%d/payment", base, id), "{}")
	}
	expect(t, pay(gates[1].url, ids["ann"]), 200, "admitted", "done")
	if a := pay(backend.url, ids["bob"]); a.status != 200 {
		t.Fatal(a)
	}
	if a := cancelBooking(backend.url, ids["cid"]); a.status != 200 {
		t.Fatal(a)
	}
	states := func() map[string]string {
		s, _ := gates[0].lesson(1)
		states := map[string]string{}
		for _, h := range s.Holds {
			states[h.Subject] = h.State
		}
		return states
	}
	waiting := states()
	if spent := time.Since(began); spent < pendingTTL {
		if fmt.Sprint(waiting) != "map[ann:confirmed bob:pending cid:pending dan:pending]" {
			t.Errorf("after the payment: %v", waiting)
		}
		if n := gates[0].available(1); n != 0 && time.Since(began) < pendingTTL {
			t.Errorf("%d available while orders wait for their payment", n)
		}
	}

	eventually(t, pendingTTL+patience, func() string {
		if n := gates[1].available(1); n != 1 {
			if n > 1 {
				t.Fatalf("%d available", n)
			}
			return fmt.Sprintf("%d available", n)
		}
		return ""
	})
	freed := time.Since(began)
	t.Logf("the seat is free %v after the first order, with a pending_ttl of %v", freed.Round(time.Millisecond), pendingTTL)
	if freed < pendingTTL {
		t.Errorf("free %v after the first order", freed)
	}
	eventually(t, patience, func() string { // the orders were made one after the other
		if s := fmt.Sprint(states()); s != "map[ann:confirmed]" {
			return s
		}
		return behind(t, gates[0], backend)
	})
	expect(t, book(gates[0].url, 1, "eve"), 201, "admitted", "booked")
	expect(t, book(gates[1].url, 1, "fay"), 409, "sold-out", "")
	if s := backend.sales(t)[0]; s.Remain != 0 || s.Bookings != 4 {
		t.Errorf("the database has %+v", s)
	}
	// A payment that comes late is the backend's to take; the seat stays Dan's.
	expect(t, pay(gates[0].url, ids["dan"]), 200, "admitted", "done")
	eventually(t, patience, func() string { return behind(t, gates[1], backend) })
}
