package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
	"github.com/slotgate/slotgate/gate/testbed"
)

// bookingID is the id in the backend's answer to a booking.
func bookingID(t testing.TB, a stage.Answer) int64 {
	t.Helper()
	var body struct {
		Data struct {
			ID int64 `json:"booking_id"`
		}
	}
	if err := json.Unmarshal(a.Body, &body); err != nil || body.Data.ID == 0 {
		t.Fatalf("no booking id in %v", a)
	}
	return body.Data.ID
}

func cancelBooking(base string, id int64, fields ...string) stage.Answer {
	return stage.Send("DELETE", fmt.Sprintf("%s/api/bookings/%d", base, id), "", fields...)
}

func cancelStudent(base string, lesson int, student string, fields ...string) stage.Answer {
	return stage.Send("DELETE", fmt.Sprintf("%s/api/lessons/%d/students/%s", base, lesson, student), "", fields...)
}

// goneIsDone makes every repeat of a cancel a done one: the hardest for who has to
// free once.
func goneIsDone(rules string) string {
	const done = "    outcomes: [{ when: { status: 404 }, is: done }]\n"
	return strings.NewReplacer(
		"    hold: path:booking\n  - name: cancel-student", "    hold: path:booking\n"+done+"  - name: cancel-student",
		"    subject: path:student\n", "    subject: path:student\n"+done,
	).Replace(rules)
}

// TestACancelThatComesTenTimesFreesOneUnit: at once, through two gates, half by the
// booking's id and half by lesson and student, all answered as done.
func TestACancelThatComesTenTimesFreesOneUnit(t *testing.T) {
	for _, known := range []string{"by configuration", "by truth"} {
		t.Run(known, func(t *testing.T) {
			database := stage.SQLiteTables(t)
			backend := stage.StartBackend(t, booking.Options{Database: database.Database, Style: booking.Conditional, Lessons: 1, Seats: 4})
			capacity := "capacity: 4"
			if known == "by truth" {
				capacity = database.Remainder("lesson_slot", stage.QuickLooks)
			}
			config := stage.Lessons(backend.URL, stage.RedisStore(testbed.Redis(t).Addr()), ", timeout: 15s", capacity+", hold_ttl: 60s, one_per_subject: true", goneIsDone(stage.FollowUps))
			gates := []*stage.Gate{stage.StartGate(t, config), stage.StartGate(t, config)}
			var ann int64
			for n, student := range []string{"ann", "bob", "cid", "dan"} {
				a := stage.Book(gates[n%2].URL, 1, student)
				stage.Expect(t, a, 201, "admitted", "booked")
				if student == "ann" {
					ann = bookingID(t, a)
				}
			}
			var all sync.WaitGroup
			for n := range 10 {
				all.Go(func() {
					base := gates[n%2].URL
					a := cancelBooking(base, ann)
					if n%4 >= 2 {
						a = cancelStudent(base, 1, "ann")
					}
					if a.Err != nil || a.Header.Get("Gate-Decision") != "admitted" || a.Header.Get("Gate-Outcome") != "done" {
						t.Errorf("cancel %d: %v", n, a)
					}
				})
			}
			all.Wait()
			// A look is short by what was booked within lag before it, until the next.
			stage.Eventually(t, refresh+patience, func() string {
				for _, g := range gates {
					s, _ := g.Lesson(1)
					if s.Confirmed != 3 || s.Held != 0 || s.Available == nil || *s.Available > 1 || known == "by configuration" && *s.Available != 1 {
						t.Fatalf("after ten cancels: %v", s)
					}
					if *s.Available != 1 {
						return s.String()
					}
				}
				return ""
			})
			if s := backend.Counts(t)[0]; s.Remain != 1 || s.Bookings != 3 {
				t.Errorf("after ten cancels the database has %+v", s)
			}
			var eve stage.Answer
			stage.Eventually(t, 5*time.Second, func() string { // a look is short by what was just booked or freed
				if eve = stage.Book(gates[0].URL, 1, "eve"); eve.Header.Get("Gate-Decision") == "sold-out" && known == "by truth" {
					return eve.String()
				}
				return ""
			})
			stage.Expect(t, eve, 201, "admitted", "booked")
			stage.Expect(t, stage.Book(gates[1].URL, 1, "fay"), 409, "sold-out", "")
		})
	}
}

// TestLateCopiesOfBookCancelBook: a student books, cancels and books again. Then copies
// of all that was sent arrive: from the client, with and without keys, and from the
// network between gate and store. The second booking stands, and no unit moves.
func TestLateCopiesOfBookCancelBook(t *testing.T) {
	for _, known := range []string{"by configuration", "by truth"} {
		t.Run(known, func(t *testing.T) {
			database := stage.SQLiteTables(t)
			backend := stage.StartBackend(t, booking.Options{Database: database.Database, Style: booking.Conditional, Lessons: 1, Seats: 2})
			capacity := "capacity: 2"
			if known == "by truth" { // no look is due meanwhile, to mend what a copy broke
				capacity = database.Remainder("lesson_slot", "refresh: 5m, hot: 5m, lag: 100ms, timeout: 5s")
			}
			proxy := testbed.Proxy(t, testbed.Redis(t).Addr())
			rules := goneIsDone(stage.Keyed + stage.FollowUps)
			rules = strings.Replace(rules, "    slot: path:lesson\n    subject: path:student\n", "    slot: path:lesson\n    subject: path:student\n"+stage.Keyed, 1)
			config := stage.Lessons(backend.URL, stage.RedisStore(proxy.Addr()), ", timeout: 15s", capacity+", hold_ttl: 60s, one_per_subject: true", rules)
			gates := []*stage.Gate{stage.StartGate(t, config), stage.StartGate(t, config)}
			key := func(n int) []string {
				return []string{fmt.Sprintf("Idempotency-Key: 0123456789abcdef-%d", n), "Authorization: Bearer ann"}
			}
			stage.Expect(t, stage.Book(gates[0].URL, 1, "bob"), 201, "admitted", "booked")

			copies := proxy.HoldCopy("EVALSHA")
			first := stage.Book(gates[0].URL, 1, "ann", key(1)...)
			stage.Expect(t, first, 201, "admitted", "booked")
			cancelled := cancelStudent(gates[1].URL, 1, "ann", key(2)...)
			stage.Expect(t, cancelled, 200, "admitted", "done")
			second := stage.Book(gates[1].URL, 1, "ann", key(3)...)
			stage.Expect(t, second, 201, "admitted", "booked")
			stands := func(after string) {
				t.Helper()
				for _, g := range gates {
					s, _ := g.Lesson(1)
					if s.Confirmed != 2 || s.Held != 0 || g.Available(1) != 0 {
						t.Errorf("after %s: %v", after, s)
					}
				}
				if s := backend.Counts(t)[0]; s.Remain != 0 || s.Bookings != 2 {
					t.Errorf("after %s the database has %+v", after, s)
				}
			}
			stands("the second booking")

			saw := backend.Stats().Requests
			for _, g := range gates {
				stage.Expect(t, stage.Book(g.URL, 1, "ann", key(1)...), 201, "replayed", "booked")
				stage.Expect(t, cancelStudent(g.URL, 1, "ann", key(2)...), 200, "replayed", "done")
				stage.Expect(t, stage.Book(g.URL, 1, "ann", key(3)...), 201, "replayed", "booked")
			}
			if now := backend.Stats().Requests; now.Book != saw.Book || now.Cancel != saw.Cancel {
				t.Errorf("copies with their keys reached the backend: %+v, before %+v", now, saw)
			}
			stands("copies with their keys")

			for _, g := range gates { // of the first booking, which is gone
				stage.Expect(t, cancelBooking(g.URL, bookingID(t, first)), 404, "admitted", "done")
				stage.Expect(t, stage.Book(g.URL, 1, "ann"), 409, "duplicate", "")
			}
			stands("copies without a key")

			sent := copies.Len()
			if _, err := copies.Replay(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d copies of calls of the store", sent)
			if sent < 6 { // three decisions, three settlements
				t.Errorf("only %d calls of the store were copied", sent)
			}
			stands("copies of the calls of the store")
			stage.Expect(t, stage.Book(gates[0].URL, 1, "eve"), 409, "sold-out", "")
		})
	}
}

// TestACancelWaitsForTheBookingOfItsSubject: what is sent first is done first (H9),
// though the two come through different gates.
func TestACancelWaitsForTheBookingOfItsSubject(t *testing.T) {
	inside, release := make(chan struct{}, 4), make(chan struct{})
	backend := stage.StartBackend(t, booking.Options{Style: booking.Conditional, Lessons: 1, Seats: 1, BeforeWrite: func() { inside <- struct{}{}; <-release }})
	config := stage.Lessons(backend.URL, stage.RedisStore(testbed.Redis(t).Addr()), ", timeout: 15s", "capacity: 1, hold_ttl: 60s", stage.FollowUps)
	gates := []*stage.Gate{stage.StartGate(t, config), stage.StartGate(t, config)}
	booked, cancelled := make(chan stage.Answer, 1), make(chan stage.Answer, 1)
	go func() { booked <- stage.Book(gates[0].URL, 1, "ann") }()
	<-inside
	go func() { cancelled <- cancelStudent(gates[1].URL, 1, "ann") }()
	// The cancel is known to wait once its gate has been asked; that it has not
	// reached the backend by then, nor while the booking is open, is what counts.
	select {
	case a := <-cancelled:
		t.Fatalf("it did not wait: %v", a)
	case <-time.After(300 * time.Millisecond):
	}
	if n := backend.Stats().Requests.Cancel; n != 0 {
		t.Fatalf("%d cancels reached the backend while the booking ran", n)
	}
	close(release)
	stage.Expect(t, <-booked, 201, "admitted", "booked")
	stage.Expect(t, <-cancelled, 200, "admitted", "done")
	if s, _ := gates[0].Lesson(1); s.Confirmed != 0 || s.Held != 0 || gates[0].Available(1) != 1 {
		t.Errorf("booked and cancelled: %v", s)
	}
}

// TestACancelWhileTheBookingIsUnknown (H8): the client was not told whether it booked,
// and cancels. Its unit is nobody's while the backend may still commit.
func TestACancelWhileTheBookingIsUnknown(t *testing.T) {
	t.Parallel()
	const holdTTL = 5 * time.Second
	start := func(t *testing.T, o booking.Options) (*stage.Backend, []*stage.Gate) {
		database := stage.SQLiteTables(t)
		o.Database, o.Lessons, o.Seats = database.Database, 1, 1
		backend := stage.StartBackend(t, o)
		config := stage.Lessons(backend.URL, `kind: redis, timeout: 1500ms, addresses: ["`+testbed.Redis(t).Addr()+`"]`, ", timeout: 1s",
			database.Remainder("lesson_slot", "refresh: 1s, hot: 200ms, lag: 100ms, timeout: 2s, max_rate: 200/s")+", hold_ttl: 5s", stage.FollowUps)
		return backend, []*stage.Gate{stage.StartGate(t, config), stage.StartGate(t, config)}
	}
	t.Run("after it was committed", func(t *testing.T) {
		t.Parallel()
		committed := make(chan struct{}, 1)
		backend, gates := start(t, booking.Options{
			Style: booking.Conditional, CommitThenDelay: 2 * time.Second, AfterCommit: func() { committed <- struct{}{} },
		})
		began := time.Now()
		stage.Expect(t, stage.Book(gates[0].URL, 1, "ann"), 504, "upstream-timeout", "unknown")
		<-committed
		stage.Expect(t, cancelStudent(gates[1].URL, 1, "ann"), 200, "admitted", "done")
		if s := backend.Counts(t)[0]; s.Remain != 1 {
			t.Fatalf("after the cancel the database has %+v", s)
		}
		saw := backend.Stats().Requests.Book
		stage.Eventually(t, holdTTL+patience, func() string {
			available := gates[0].Available(1)
			after := time.Since(began)
			if available == 0 && after < holdTTL-time.Second { // well before the end, the unit is nobody's
				stage.Expect(t, stage.Book(gates[1].URL, 1, "bob"), 409, "sold-out", "")
			}
			if available > 0 && after < holdTTL {
				t.Fatalf("%d units offered %v after the booking began", available, after)
			}
			if available != 1 {
				return fmt.Sprintf("%d available", available)
			}
			return ""
		})
		if n := backend.Stats().Requests.Book; n != saw {
			t.Errorf("the backend saw %d further bookings meanwhile", n-saw)
		}
	})
	t.Run("before it is committed", func(t *testing.T) {
		t.Parallel()
		inside, release := make(chan struct{}, 1), make(chan struct{})
		backend, gates := start(t, booking.Options{Style: booking.Naive, BeforeWrite: func() { inside <- struct{}{}; <-release }})
		began := time.Now()
		stage.Expect(t, stage.Book(gates[0].URL, 1, "ann"), 504, "upstream-timeout", "unknown")
		<-inside
		stage.Expect(t, cancelStudent(gates[1].URL, 1, "ann"), 404, "admitted", "refused")
		close(release)
		stage.Eventually(t, patience, func() string {
			if s := backend.Counts(t)[0]; s.Remain != 0 {
				return fmt.Sprintf("the database has %+v", s)
			}
			return ""
		})
		for time.Since(began) < holdTTL+time.Second { // past its hold, and looks after that
			if a := stage.Book(gates[1].URL, 1, "bob"); a.Header.Get("Gate-Decision") != "sold-out" {
				t.Fatalf("%v after the booking began: %v", time.Since(began), a)
			}
			time.Sleep(50 * time.Millisecond)
		}
		if difference := stage.Behind(t, gates[0], backend); difference != "" {
			t.Error(difference)
		}
	})
}
