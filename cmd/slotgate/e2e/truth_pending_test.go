package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
	"github.com/slotgate/slotgate/gate/testbed"
)

// TestWhatIsNotPaidIsLeftToTruth: four students order. Ann pays through the gate, Bob
// past it, Cid never, and the backend drops that order by itself; Dan does not pay
// either, and the backend keeps his. When pending_ttl has passed, a look frees Cid's
// seat and no other. Looks of any other cause come too late to play a part.
func TestWhatIsNotPaidIsLeftToTruth(t *testing.T) {
	t.Parallel()
	const pendingTTL = 3 * time.Second
	database := stage.SQLiteTables(t)
	backend := stage.StartBackend(t, booking.Options{Database: database.Database, Style: booking.Conditional, Lessons: 1, Seats: 4})
	config := stage.Lessons(backend.URL, stage.RedisStore(testbed.Redis(t).Addr()), "",
		database.Remainder("lesson_slot", "refresh: 5m, hot: 5m, lag: 100ms, timeout: 5s")+", hold_ttl: 30s, pending_ttl: 3s, one_per_subject: true", stage.FollowUps)
	gates := []*stage.Gate{stage.StartGate(t, config), stage.StartGate(t, config)}
	began := time.Now()
	ids := map[string]int64{}
	for n, student := range []string{"ann", "bob", "cid", "dan"} {
		a := stage.Book(gates[n%2].URL, 1, student)
		stage.Expect(t, a, 201, "admitted", "booked")
		ids[student] = bookingID(t, a)
	}
	pay := func(base string, id int64) stage.Answer {
		return stage.Send("POST", fmt.Sprintf("%s/api/bookings/%d/payment", base, id), "{}")
	}
	stage.Expect(t, pay(gates[1].URL, ids["ann"]), 200, "admitted", "done")
	if a := pay(backend.URL, ids["bob"]); a.Status != 200 {
		t.Fatal(a)
	}
	if a := cancelBooking(backend.URL, ids["cid"]); a.Status != 200 {
		t.Fatal(a)
	}
	states := func() map[string]string {
		s, _ := gates[0].Lesson(1)
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
		if n := gates[0].Available(1); n != 0 && time.Since(began) < pendingTTL {
			t.Errorf("%d available while orders wait for their payment", n)
		}
	}

	stage.Eventually(t, pendingTTL+patience, func() string {
		if n := gates[1].Available(1); n != 1 {
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
	stage.Eventually(t, patience, func() string { // the orders were made one after the other
		if s := fmt.Sprint(states()); s != "map[ann:confirmed]" {
			return s
		}
		return stage.Behind(t, gates[0], backend)
	})
	stage.Expect(t, stage.Book(gates[0].URL, 1, "eve"), 201, "admitted", "booked")
	stage.Expect(t, stage.Book(gates[1].URL, 1, "fay"), 409, "sold-out", "")
	if s := backend.Counts(t)[0]; s.Remain != 0 || s.Bookings != 4 {
		t.Errorf("the database has %+v", s)
	}
	// A payment that comes late is the backend's to take; the seat stays Dan's.
	stage.Expect(t, pay(gates[0].URL, ids["dan"]), 200, "admitted", "done")
	stage.Eventually(t, patience, func() string { return stage.Behind(t, gates[1], backend) })
}
