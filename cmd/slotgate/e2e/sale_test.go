package e2e

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
	"github.com/slotgate/slotgate/gate/testbed"
)

func TestTwentyLessonsAreSoldExactlyOnce(t *testing.T) {
	for _, kind := range []string{"two gates and one Redis", "one gate with its memory"} {
		t.Run(kind, func(t *testing.T) {
			backend := stage.StartBackend(t, booking.Options{Style: booking.Naive, NoConstraints: true, Delay: 3 * time.Millisecond, Lessons: 20, Seats: 5})
			store, gates := stage.MemoryStore, 1
			if kind == "two gates and one Redis" {
				store, gates = stage.RedisStore(testbed.Redis(t).Addr()), 2
			}
			config := stage.Lessons(backend.URL, store, "", "capacity: 5, hold_ttl: 30s, one_per_subject: true", stage.Keyed)
			var targets []string
			for range gates {
				targets = append(targets, stage.StartGate(t, config).URL)
			}
			report, s := stage.Crowd(t, targets, 20, 4000, 128, 2000, 0.2)
			won := s.Winners(t)
			stats := backend.Stats()
			t.Logf("%d sent, %d booked, the backend saw %d, p50 %v p99 %v, decisions %v", report.Latency.Count(), len(won),
				stats.Requests.Book, report.Latency.Quantile(.5), report.Latency.Quantile(.99), report.Decisions)
			if len(won) != 100 || stats.Bookings != 100 || stats.Requests.Book > 100 {
				t.Errorf("%d clients booked, the backend has %d bookings of %d requests; want 100, 100 and at most 100", len(won), stats.Bookings, stats.Requests.Book)
			}
			stage.NoSubjectTwice(t, won)
			replayed := 0
			for i, x := range won {
				again := stage.Book(targets[(i+1)%len(targets)], x.Slot, fmt.Sprintf("s%d", x.Subject),
					"Idempotency-Key: "+x.Key, fmt.Sprintf("Authorization: Bearer %d", x.Subject))
				if again.Status != 201 || !bytes.Equal(again.Body, x.Body) || again.Header.Get("Idempotent-Replayed") != "true" ||
					again.Header.Get("Gate-Decision") != "replayed" || again.Header.Get("Set-Cookie") != "" || again.Header.Get("Location") == "" {
					t.Errorf("retry of %s: %v, want a replay of %s", x.Key, again, x.Body)
					continue
				}
				replayed++
			}
			if backend.Stats().Requests.Book > 100 {
				t.Error("a replay reached the backend")
			}
			t.Logf("%d of %d replayed byte for byte through the other gate", replayed, len(won))
		})
	}
}

// TestEveryDeductionStyle: behind the gate each style sells exactly its seats; the
// naive one without constraints alone does not, so the test can fail.
func TestEveryDeductionStyle(t *testing.T) {
	const seats, students, requests = 20, 40, 600
	for _, style := range booking.Styles {
		t.Run(string(style), func(t *testing.T) {
			backend := stage.StartBackend(t, booking.Options{Database: testbed.Postgres(t).DSN(), Style: style, Delay: time.Millisecond, Lessons: 2, Seats: seats})
			config := stage.Lessons(backend.URL, stage.MemoryStore, "", "capacity: 20, one_per_subject: true",
				stage.Keyed+"    retry: { on: [busy], attempts: 4 }\n")
			_, s := stage.Crowd(t, []string{stage.StartGate(t, config).URL}, 2, requests, 64, students, 0)
			won := s.Winners(t)
			stage.NoSubjectTwice(t, won)
			expectSold(t, backend, won, 2, seats)
		})
	}
	t.Run("naive without constraints and without the gate", func(t *testing.T) {
		backend := stage.StartBackend(t, booking.Options{Database: testbed.Postgres(t).DSN(), Style: booking.Naive, NoConstraints: true, Delay: 5 * time.Millisecond, Lessons: 2, Seats: seats})
		stage.Crowd(t, []string{backend.URL}, 2, requests, 64, students, 0)
		if sold := backend.Stats().Bookings; sold <= 2*seats {
			t.Errorf("%d bookings of %d seats: this backend is no test of the gate", sold, 2*seats)
		}
	})
}

// expectSold checks that clients and backend agree on exactly the seats.
func expectSold(t testing.TB, backend *stage.Backend, won []stage.Exchange, lessons, seats int) {
	t.Helper()
	if len(won) != lessons*seats || backend.Stats().Bookings != int64(lessons*seats) {
		t.Errorf("%d clients booked, the backend has %d bookings, want %d", len(won), backend.Stats().Bookings, lessons*seats)
	}
	for lesson := 1; lesson <= lessons; lesson++ {
		a := stage.Send("GET", fmt.Sprintf("%s/api/lessons/%d", backend.URL, lesson), "")
		if want := fmt.Sprintf(`"remain":0,"booked":%d`, seats); !bytes.Contains(a.Body, []byte(want)) {
			t.Errorf("lesson %d: %s, want %s", lesson, a.Body, want)
		}
	}
}

func TestLearnedCapacityIsFoundGently(t *testing.T) {
	backend := stage.StartBackend(t, booking.Options{Style: booking.Conditional, Delay: 2 * time.Millisecond, Lessons: 1, Seats: 5})
	redis := testbed.Redis(t)
	config := stage.Lessons(backend.URL, stage.RedisStore(redis.Addr()), "", "capacity: learned", "")
	_, s := stage.Crowd(t, []string{stage.StartGate(t, config).URL, stage.StartGate(t, config).URL}, 1, 1000, 128, 1000, 0)
	stats := backend.Stats()
	t.Logf("%d booked, %d requests reached the backend, at most %d at once", stats.Bookings, stats.Requests.Book, stats.InFlight.Max)
	if len(s.Winners(t)) != 5 || stats.Bookings != 5 || stats.Requests.Book > 40 {
		t.Errorf("%d booked, %d requests reached the backend; want 5 and at most 40", stats.Bookings, stats.Requests.Book)
	}
}

func TestOneRequestOfASlotAtATime(t *testing.T) {
	backend := stage.StartBackend(t, booking.Options{Style: booking.Conditional, Delay: 2 * time.Millisecond, Lessons: 8, Seats: 50})
	config := stage.Lessons(backend.URL, stage.RedisStore(testbed.Redis(t).Addr()), "", "capacity: 50, max_inflight: 1, queue: { size: 1000, wait: 20s }", "")
	report, s := stage.Crowd(t, []string{stage.StartGate(t, config).URL, stage.StartGate(t, config).URL}, 8, 480, 64, 480, 0)
	stats := backend.Stats()
	t.Logf("at most %d of one lesson and %d of all at once; p50 %v p99 %v", stats.InFlight.MaxPerLesson, stats.InFlight.Max, report.Latency.Quantile(.5), report.Latency.Quantile(.99))
	if stats.InFlight.MaxPerLesson != 1 {
		t.Errorf("%d requests of one lesson were at the backend at once", stats.InFlight.MaxPerLesson)
	}
	if stats.InFlight.Max < 2 {
		t.Error("other lessons were hindered")
	}
	expectSold(t, backend, s.Winners(t), 8, 50)
}

func TestScriptsFlushedUnderLoad(t *testing.T) {
	backend := stage.StartBackend(t, booking.Options{Style: booking.Conditional, Lessons: 10, Seats: 20})
	redis := testbed.Redis(t)
	config := stage.Lessons(backend.URL, stage.RedisStore(redis.Addr()), "", "capacity: 20", stage.Keyed)
	gate := stage.StartGate(t, config)
	stop, flushed := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				flushed <- n
				return
			default:
				if err := stage.RedisDo(redis.Addr(), "SCRIPT", "FLUSH"); err == nil {
					n++
				}
			}
		}
	}()
	report, s := stage.Crowd(t, []string{gate.URL}, 10, 2000, 32, 2000, 0)
	close(stop)
	if n := <-flushed; n < 10 {
		t.Fatalf("flushed only %d times", n)
	}
	for d, n := range report.Decisions {
		if d != "admitted" && d != "sold-out" {
			t.Errorf("%d answers were %s", n, d)
		}
	}
	expectSold(t, backend, s.Winners(t), 10, 20)
}
