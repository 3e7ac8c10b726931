package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
	"github.com/slotgate/slotgate/gate/testbed"
)

// sellBehind books seats of lesson 1 at the backend itself.
func sellBehind(t testing.TB, backend *stage.Backend, seats int) {
	t.Helper()
	for n := range seats {
		if a := stage.Book(backend.URL, 1, fmt.Sprint("early", n)); a.Status != 201 {
			t.Fatal(a)
		}
	}
}

// TestAnEmptyStoreAsksTruthOnce: a crowd comes to a slot that no gate knows, half of it
// sold. However many wait for it, through two gates, it is read once: every look is one
// read, and the API counts its own. The backend is naive and without constraints: that
// nothing is oversold is the gates' doing.
func TestAnEmptyStoreAsksTruthOnce(t *testing.T) {
	const seats, sold = 200, 100
	const pace = "refresh: 5m, hot: 5m, timeout: 30s"
	for _, from := range []string{"its API", "its database"} {
		t.Run("truth from "+from, func(t *testing.T) {
			o := booking.Options{Style: booking.Naive, NoConstraints: true, Delay: 2 * time.Millisecond, Lessons: 1, Seats: seats}
			capacity := stage.OverHTTP(pace)
			if from == "its database" {
				database := stage.PostgresTables(t)
				o.Database, capacity = database.Database, database.Remainder("lesson_slot", pace)
			}
			backend := stage.StartBackend(t, o)
			sellBehind(t, backend, sold)
			// Without its store a gate passes bookings through to a backend that cannot bear
			// it: the time-outs are such as no machine reaches by being slow.
			config := stage.Lessons(backend.URL, `kind: redis, timeout: 40s, addresses: ["`+testbed.Redis(t).Addr()+`"]`, ", timeout: 30s",
				capacity+", hold_ttl: 3m, one_per_subject: true", stage.Keyed)
			gates := []*stage.Gate{stage.StartGate(t, config), stage.StartGate(t, config)}
			before := backend.Stats().Requests.Lesson
			report, s := stage.Crowd(t, []string{gates[0].URL, gates[1].URL}, 1, 2000, 500, 2000, 0)
			won, stats, looks := s.Winners(t), backend.Stats(), 0.0
			for _, g := range gates {
				for _, result := range []string{"applied", "failed", "missing", "refused"} {
					looks += g.Looks(result)
				}
			}
			t.Logf("%d asked, %d booked, %v looks; p50 %v p99 %v, decisions %v",
				report.Answered, len(won), looks, report.Latency.Quantile(.5), report.Latency.Quantile(.99), report.Decisions)
			if reads := stats.Requests.Lesson - before; looks != 1 || from == "its API" && reads != 1 {
				t.Errorf("%v looks were made, and the API was read %d times", looks, reads)
			}
			if n := stats.Requests.Book - sold; n != seats-sold {
				t.Errorf("the backend saw %d bookings of the crowd, want %d", n, seats-sold)
			}
			stage.NoSubjectTwice(t, won)
			expectLeft(t, backend, won, sold)
		})
	}
}

// expectLeft checks that the crowd has exactly what was left when it came.
func expectLeft(t testing.TB, backend *stage.Backend, won []stage.Exchange, sold int64) {
	t.Helper()
	s := backend.Counts(t)[0]
	if s.Remain != 0 || s.Bookings != sold+int64(len(won)) || s.Students != s.Bookings {
		t.Errorf("%d of the crowd were told that they booked, the database says %+v after %d early ones", len(won), s, sold)
	}
}

// TestTheStoreLosesItsDataInMidSale: all of it, which changes the store's run, or the
// keys of the slot alone, which nothing tells. What was on its way then is the
// database's to refuse; all seats are sold, and at rest the counters are right.
func TestTheStoreLosesItsDataInMidSale(t *testing.T) {
	t.Parallel()
	for _, loss := range []struct {
		what   string
		store  string // its time-out
		times  string // upstream's time-out
		holds  time.Duration
		settle time.Duration // until the counters may be asked for
		lose   func(testing.TB, *redis.Client)
	}{
		// After a loss of all data hold_ttl passes before truth is asked: here it is as
		// short as the time-outs let it be.
		{"FLUSHALL", "1500ms", "2s", 5500 * time.Millisecond, 5500 * time.Millisecond, func(t testing.TB, r *redis.Client) {
			if err := r.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}},
		{"the slot's keys", "5s", "15s", time.Minute, 0, func(t testing.TB, r *redis.Client) {
			keys, err := r.Keys(t.Context(), "*{lessons:1}*").Result()
			if err != nil || len(keys) < 2 {
				t.Fatalf("keys %v, error %v", keys, err)
			}
			if err := r.Del(t.Context(), keys...).Err(); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(loss.what, func(t *testing.T) {
			t.Parallel()
			const seats, sold = 300, 150
			database := stage.SQLiteTables(t)
			backend := stage.StartBackend(t, booking.Options{Database: database.Database, Style: booking.Conditional, Delay: time.Millisecond, Lessons: 1, Seats: seats})
			sellBehind(t, backend, sold)
			server := testbed.Redis(t)
			config := stage.Lessons(backend.URL, fmt.Sprintf("kind: redis, timeout: %s, addresses: [%q]", loss.store, server.Addr()), ", timeout: "+loss.times,
				fmt.Sprintf("%s, hold_ttl: %v, one_per_subject: true", database.Remainder("lesson_slot", stage.QuickLooks), loss.holds), stage.Keyed)
			gates := []*stage.Gate{stage.StartGate(t, config), stage.StartGate(t, config)}
			client := redis.NewClient(&redis.Options{Addr: server.Addr()})
			defer client.Close()
			wait := stage.Sale(t, []string{gates[0].URL, gates[1].URL}, 1, 800, 120)
			stage.Eventually(t, time.Minute, func() string {
				if n := backend.Stats().Bookings; n < sold+50 {
					return fmt.Sprintf("%d booked", n)
				}
				return ""
			})
			loss.lose(t, client)
			had := backend.Stats().Bookings
			report, s := wait()
			stage.No500(t, report)
			won := s.Winners(t)
			if had >= seats {
				t.Errorf("all %d seats were sold before the loss", had)
			}
			stage.NoSubjectTwice(t, won)
			if report.Statuses[504] == 0 {
				expectLeft(t, backend, won, sold)
			} else if s := backend.Counts(t)[0]; s.Remain != 0 || s.Students != seats {
				t.Errorf("the database says %+v", s) // a busy machine: not everybody was told
			}
			equal := stage.Eventually(t, loss.settle+refresh+patience, func() string { return stage.Behind(t, gates[1], backend) })
			t.Logf("lost with %d of %d sold; %d booked of %d that asked, the backend saw %d; counters equal %v after the end; decisions %v",
				had, seats, len(won), report.Answered, backend.Stats().Requests.Book-sold, equal.Round(time.Millisecond), report.Decisions)
		})
	}
}
