package e2e

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/gate/storm"
	"github.com/slotgate/slotgate/gate/testbed"
)

// seen is what the clients of a storm were answered, by request number; twins
// have one more.
type seen struct {
	mu      sync.Mutex
	answers map[int][]exchange
	busy    int // answers in which the backend itself said so
}

type exchange struct {
	subject, slot int
	key, url      string
	status        int
	decision      string
	body          []byte
}

func (s *seen) note(x storm.Exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers == nil {
		s.answers = map[int][]exchange{}
	}
	if x.Header.Get("Gate-Outcome") == "busy" {
		s.busy++
	}
	s.answers[x.N] = append(s.answers[x.N], exchange{
		subject: x.Subject, slot: int(x.Slot), key: x.Key, url: x.URL, status: x.Status,
		decision: x.Header.Get("Gate-Decision"), body: bytes.Clone(x.Body),
	})
}

// crowd sends a storm of bookings of lessons 1 to n through the gates in turn.
func crowd(t testing.TB, targets []string, lessons, requests, clients, subjects int, twins float64) (*storm.Report, *seen) {
	t.Helper()
	s := &seen{}
	o := storm.Options{
		Header:  []string{"Authorization: Bearer {subject}", "Content-Type: application/json"},
		Body:    `{"student_id":"s{subject}"}`,
		Clients: clients, Requests: requests, Subjects: subjects, RetriesSameKey: twins,
		Timeout: 30 * time.Second, MaxTime: 3 * time.Minute, Seed: 7,
		OnResponse: s.note,
	}
	if twins > 0 {
		o.Header = append(o.Header, "Idempotency-Key: {key}")
	}
	for _, target := range targets {
		o.Targets = append(o.Targets, fmt.Sprintf("%s/api/lessons/{n%%%d+1}/bookings", target, lessons))
	}
	report, err := storm.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if n := report.Status5xx() + report.TransportErrors() - s.busy; n != 0 {
		var text bytes.Buffer
		report.WriteText(&text, nil)
		t.Errorf("%d answers were 5xx or none at all\n%s", n, &text)
	}
	return report, s
}

// winners are the requests that booked, one exchange each, and checks that their
// twins were given the same answer.
func (s *seen) winners(t testing.TB) []exchange {
	t.Helper()
	var list []exchange
	for n, twins := range s.answers {
		booked := 0
		for _, x := range twins {
			if x.status == 201 {
				booked++
			}
		}
		if booked == 0 {
			continue
		}
		list = append(list, twins[0])
		for _, x := range twins[1:] {
			if x.status != 201 || !bytes.Equal(x.body, twins[0].body) {
				t.Errorf("request %d: its twins were answered %d %s and %d %s", n, twins[0].status, twins[0].body, x.status, x.body)
			}
		}
	}
	return list
}

func noSubjectTwice(t testing.TB, won []exchange) {
	t.Helper()
	has := map[[2]int]bool{}
	for _, x := range won {
		place := [2]int{x.slot, x.subject}
		if has[place] {
			t.Errorf("subject %d has lesson %d twice", x.subject, x.slot)
		}
		has[place] = true
	}
}

func TestTwentyLessonsAreSoldExactlyOnce(t *testing.T) {
	for _, kind := range []string{"two gates and one Redis", "one gate with its memory"} {
		t.Run(kind, func(t *testing.T) {
			backend := startLegacy(t, booking.Options{Style: booking.Naive, NoConstraints: true, Delay: 3 * time.Millisecond, Lessons: 20, Seats: 5})
			store, gates := memoryStore, 1
			if kind == "two gates and one Redis" {
				store, gates = redisStore(testbed.Redis(t).Addr()), 2
			}
			config := lessons(backend.url, store, "", "capacity: 5, hold_ttl: 30s, one_per_subject: true", keyed)
			var targets []string
			for range gates {
				targets = append(targets, startGate(t, config).url)
			}
			report, s := crowd(t, targets, 20, 4000, 128, 2000, 0.2)
			won := s.winners(t)
			stats := backend.Stats()
			t.Logf("%d sent, %d booked, the backend saw %d, p50 %v p99 %v, decisions %v", report.Latency.Count(), len(won),
				stats.Requests.Book, report.Latency.Quantile(.5), report.Latency.Quantile(.99), report.Decisions)
			if len(won) != 100 || stats.Bookings != 100 || stats.Requests.Book > 100 {
				t.Errorf("%d clients booked, the backend has %d bookings of %d requests; want 100, 100 and at most 100", len(won), stats.Bookings, stats.Requests.Book)
			}
			noSubjectTwice(t, won)
			replayed := 0
			for i, x := range won {
				again := book(targets[(i+1)%len(targets)], x.slot, fmt.Sprintf("s%d", x.subject),
					"Idempotency-Key: "+x.key, fmt.Sprintf("Authorization: Bearer %d", x.subject))
				if again.status != 201 || !bytes.Equal(again.body, x.body) || again.header.Get("Idempotent-Replayed") != "true" ||
					again.header.Get("Gate-Decision") != "replayed" || again.header.Get("Set-Cookie") != "" || again.header.Get("Location") == "" {
					t.Errorf("retry of %s: %v, want a replay of %s", x.key, again, x.body)
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
			backend := startLegacy(t, booking.Options{Database: testbed.Postgres(t).DSN(), Style: style, Delay: time.Millisecond, Lessons: 2, Seats: seats})
			config := lessons(backend.url, memoryStore, "", "capacity: 20, one_per_subject: true",
				keyed+"    retry: { on: [busy], attempts: 4 }\n")
			_, s := crowd(t, []string{startGate(t, config).url}, 2, requests, 64, students, 0)
			won := s.winners(t)
			noSubjectTwice(t, won)
			expectSold(t, backend, won, 2, seats)
		})
	}
	t.Run("naive without constraints and without the gate", func(t *testing.T) {
		backend := startLegacy(t, booking.Options{Database: testbed.Postgres(t).DSN(), Style: booking.Naive, NoConstraints: true, Delay: 5 * time.Millisecond, Lessons: 2, Seats: seats})
		crowd(t, []string{backend.url}, 2, requests, 64, students, 0)
		if sold := backend.Stats().Bookings; sold <= 2*seats {
			t.Errorf("%d bookings of %d seats: this backend is no test of the gate", sold, 2*seats)
		}
	})
}

// expectSold checks that clients and backend agree on exactly the seats.
func expectSold(t testing.TB, backend *legacy, won []exchange, lessons, seats int) {
	t.Helper()
	if len(won) != lessons*seats || backend.Stats().Bookings != int64(lessons*seats) {
		t.Errorf("%d clients booked, the backend has %d bookings, want %d", len(won), backend.Stats().Bookings, lessons*seats)
	}
	for lesson := 1; lesson <= lessons; lesson++ {
		a := send("GET", fmt.Sprintf("%s/api/lessons/%d", backend.url, lesson), "")
		if want := fmt.Sprintf(`"remain":0,"booked":%d`, seats); !bytes.Contains(a.body, []byte(want)) {
			t.Errorf("lesson %d: %s, want %s", lesson, a.body, want)
		}
	}
}

func TestLearnedCapacityIsFoundGently(t *testing.T) {
	backend := startLegacy(t, booking.Options{Style: booking.Conditional, Delay: 2 * time.Millisecond, Lessons: 1, Seats: 5})
	redis := testbed.Redis(t)
	config := lessons(backend.url, redisStore(redis.Addr()), "", "capacity: learned", "")
	_, s := crowd(t, []string{startGate(t, config).url, startGate(t, config).url}, 1, 1000, 128, 1000, 0)
	stats := backend.Stats()
	t.Logf("%d booked, %d requests reached the backend, at most %d at once", stats.Bookings, stats.Requests.Book, stats.InFlight.Max)
	if len(s.winners(t)) != 5 || stats.Bookings != 5 || stats.Requests.Book > 40 {
		t.Errorf("%d booked, %d requests reached the backend; want 5 and at most 40", stats.Bookings, stats.Requests.Book)
	}
}

func TestOneRequestOfASlotAtATime(t *testing.T) {
	backend := startLegacy(t, booking.Options{Style: booking.Conditional, Delay: 2 * time.Millisecond, Lessons: 8, Seats: 50})
	config := lessons(backend.url, redisStore(testbed.Redis(t).Addr()), "", "capacity: 50, max_inflight: 1, queue: { size: 1000, wait: 20s }", "")
	report, s := crowd(t, []string{startGate(t, config).url, startGate(t, config).url}, 8, 480, 64, 480, 0)
	stats := backend.Stats()
	t.Logf("at most %d of one lesson and %d of all at once; p50 %v p99 %v", stats.InFlight.MaxPerLesson, stats.InFlight.Max, report.Latency.Quantile(.5), report.Latency.Quantile(.99))
	if stats.InFlight.MaxPerLesson != 1 {
		t.Errorf("%d requests of one lesson were at the backend at once", stats.InFlight.MaxPerLesson)
	}
	if stats.InFlight.Max < 2 {
		t.Error("other lessons were hindered")
	}
	expectSold(t, backend, s.winners(t), 8, 50)
}

func TestScriptsFlushedUnderLoad(t *testing.T) {
	backend := startLegacy(t, booking.Options{Style: booking.Conditional, Lessons: 10, Seats: 20})
	redis := testbed.Redis(t)
	config := lessons(backend.url, redisStore(redis.Addr()), "", "capacity: 20", keyed)
	gate := startGate(t, config)
	stop, flushed := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				flushed <- n
				return
			default:
				if err := redisDo(redis.Addr(), "SCRIPT", "FLUSH"); err == nil {
					n++
				}
			}
		}
	}()
	report, s := crowd(t, []string{gate.url}, 10, 2000, 32, 2000, 0)
	close(stop)
	if n := <-flushed; n < 10 {
		t.Fatalf("flushed only %d times", n)
	}
	for d, n := range report.Decisions {
		if d != "admitted" && d != "sold-out" {
			t.Errorf("%d answers were %s", n, d)
		}
	}
	expectSold(t, backend, s.winners(t), 10, 20)
}
