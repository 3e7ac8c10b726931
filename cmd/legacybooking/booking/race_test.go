package booking

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// barrier returns a hook that keeps callers until n of them have come.
func barrier(n int) func() {
	var all sync.WaitGroup
	all.Add(n)
	return func() {
		all.Done()
		all.Wait()
	}
}

// bookAtOnce books lesson 1 for each student at the same time.
func bookAtOnce(t *testing.T, s *Server, students ...string) map[int]int {
	t.Helper()
	var mu sync.Mutex
	statuses := make(map[int]int)
	var clients sync.WaitGroup
	for _, student := range students {
		clients.Go(func() {
			got := book(t, s, 1, student)
			mu.Lock()
			defer mu.Unlock()
			statuses[got.status]++
		})
	}
	clients.Wait()
	return statuses
}

func TestNaiveWithoutConstraintsSellsWhatAllHaveRead(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, database string) {
		s := open(t, Options{Database: database, NoConstraints: true, Lessons: 1, Seats: 1, BeforeWrite: barrier(4)})
		if statuses := bookAtOnce(t, s, "ann", "ann", "bob", "bob"); statuses[http.StatusCreated] != 4 {
			t.Errorf("answers are %v, want 4 bookings of 1 seat", statuses)
		}
		if got, want := readLedger(t, s, 1), (ledger{remain: -3, seats: 4, bookings: 4, students: 2}); got != want {
			t.Errorf("ledger is %+v, want %+v", got, want)
		}
		if stats := s.Stats(); stats.InFlight.MaxPerLesson != 4 || stats.InFlight.Now != 0 {
			t.Errorf("in flight %+v, want 4 at most and none now", stats.InFlight)
		}
	})
}

func TestConstraintsStopTheNaive(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, database string) {
		s := open(t, Options{Database: database, Lessons: 1, Seats: 1, BeforeWrite: barrier(2)})
		if statuses := bookAtOnce(t, s, "ann", "bob"); statuses[http.StatusCreated] != 1 || statuses[http.StatusConflict] != 1 {
			t.Errorf("answers are %v, want one booking and one refusal", statuses)
		}
		if got := s.Stats().Conflicts.Constraint; got != 1 {
			t.Errorf("%d constraint conflicts, want 1", got)
		}
	})
	onEachDatabase(t, func(t *testing.T, database string) {
		s := open(t, Options{Database: database, Lessons: 1, Seats: 5, BeforeWrite: barrier(2)})
		if statuses := bookAtOnce(t, s, "ann", "ann"); statuses[http.StatusCreated] != 1 || s.Stats().Answers["duplicate"] != 1 {
			t.Errorf("answers are %v, want one booking and one duplicate", statuses)
		}
		if got, want := readLedger(t, s, 1), (ledger{remain: 4, seats: 1, bookings: 1, students: 1}); got != want {
			t.Errorf("ledger is %+v, want %+v: the refused write must leave no trace", got, want)
		}
	})
}

func TestOptimisticGivesUpAfterThreeTries(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, database string) {
		var s *Server
		tries := 0
		s = open(t, Options{Database: database, Style: Optimistic, Lessons: 1, Seats: 5, BeforeWrite: func() {
			tries++
			if _, err := s.database.pool.Exec("UPDATE lesson_slot SET version = version + 1"); err != nil {
				t.Error(err)
			}
		}})
		got := book(t, s, 1, "ann")
		got.wants(t, http.StatusServiceUnavailable, "busy")
		if got.header.Get("Retry-After") == "" {
			t.Error("busy comes without Retry-After")
		}
		if tries != 3 || s.Stats().Conflicts.Version != 3 {
			t.Errorf("%d tries and %d conflicts, want 3", tries, s.Stats().Conflicts.Version)
		}
		if l := readLedger(t, s, 1); l.remain != 5 || l.bookings != 0 {
			t.Errorf("ledger is %+v, want nothing booked", l)
		}
	})
}

func TestALockWaitIsCountedOnce(t *testing.T) {
	for _, kind := range []string{"postgres", "mysql"} {
		for _, style := range Styles {
			t.Run(kind+"/"+string(style), func(t *testing.T) {
				database := databases[kind](t)
				s := open(t, Options{Database: database, Style: style, Lessons: 2, Seats: 1})
				release := holdLesson(t, database, 1)
				var client sync.WaitGroup
				client.Go(func() { book(t, s, 1, "ann").wants(t, http.StatusCreated, "") })
				eventually(t, "a lock wait", func() bool { return s.Stats().LockWaits > 0 })
				book(t, s, 2, "ann").wants(t, http.StatusCreated, "") // another row is free
				release()
				client.Wait()
				if got := s.Stats().LockWaits; got != 1 {
					t.Errorf("%d lock waits, want 1", got)
				}
				// Sold out is seen without the lock, but by who locks first. InnoDB
				// locks the row of an UPDATE before it looks at the rest of WHERE.
				if style == RowLock || style == Conditional && kind == "mysql" {
					return
				}
				defer holdLesson(t, database, 2)()
				book(t, s, 2, "bob").wants(t, http.StatusConflict, "sold_out")
				if got := s.Stats().LockWaits; got != 1 {
					t.Errorf("%d lock waits after a refusal that needs none, want 1", got)
				}
			})
		}
	}
}

func TestSQLiteWritersTakeTurns(t *testing.T) {
	for _, kind := range []string{"sqlite-file", "sqlite-memory"} {
		t.Run(kind, func(t *testing.T) {
			writing, goOn := make(chan struct{}, 2), make(chan struct{})
			s := open(t, Options{Database: databases[kind](t), Style: RowLock, Lessons: 1, Seats: 2, BeforeWrite: func() {
				writing <- struct{}{}
				<-goOn
			}})
			var clients sync.WaitGroup
			clients.Go(func() { book(t, s, 1, "ann").wants(t, http.StatusCreated, "") })
			<-writing
			clients.Go(func() { book(t, s, 1, "bob").wants(t, http.StatusCreated, "") })
			eventually(t, "a lock wait", func() bool { return s.Stats().LockWaits == 1 })
			close(goOn)
			clients.Wait()
			if got := s.Stats().LockWaits; got != 1 {
				t.Errorf("%d lock waits, want 1", got)
			}
		})
	}
}

// Bookings and cancellations by the same students take their locks in one
// order, or PostgreSQL would end some of them as deadlocks.
func TestCancellationsAmongBookings(t *testing.T) {
	withEachStyle(t, func(t *testing.T, options Options) {
		options.Lessons, options.Seats = 1, 3
		s := open(t, options)
		var clients sync.WaitGroup
		for client := range 6 {
			clients.Go(func() {
				for range 10 {
					got := book(t, s, 1, fmt.Sprintf("s%d", client%3))
					if id, known := got.body.Data["booking_id"]; known {
						ask(t, s, "DELETE", fmt.Sprintf("/api/bookings/%v", id), "")
					}
				}
			})
		}
		clients.Wait()
		l := readLedger(t, s, 1)
		if l.remain+l.seats != 3 || l.bookings != l.students || l.remain < 0 {
			t.Errorf("ledger is %+v, want 3 seats in all and no student twice", l)
		}
		stats := s.Stats()
		if stats.Conflicts.Serialization != 0 || stats.Answers["internal"] != 0 {
			t.Errorf("stats are %+v, want no deadlock and no error", stats)
		}
		if stats.Bookings-stats.Cancellations != l.bookings {
			t.Errorf("%d booked, %d cancelled, %d left", stats.Bookings, stats.Cancellations, l.bookings)
		}
	})
}

func TestABookingIsFinishedThoughItsClientHasLeft(t *testing.T) {
	withEachStyle(t, func(t *testing.T, options Options) {
		options.Lessons, options.Seats = 1, 1
		left, leave := context.WithCancel(t.Context())
		options.BeforeWrite = leave
		s := open(t, options)
		askUnder(left, t, s, "POST", "/api/lessons/1/bookings", `{"student_id":"ann"}`).wants(t, http.StatusCreated, "")
		if l := readLedger(t, s, 1); left.Err() == nil || l.bookings != 1 || l.remain != 0 {
			t.Errorf("ledger is %+v, want the booking", l)
		}
	})
}

func TestCommitThenDelayAnswersLateWhatIsTrueAlready(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, database string) {
		committed := make(chan struct{})
		s, err := Open(t.Context(), Options{
			Database: database, Lessons: 1, Seats: 1,
			AfterCommit: func() { close(committed) }, CommitThenDelay: time.Hour,
		})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(s)
		defer server.Close()
		answered := make(chan int)
		go func() {
			response, err := http.Post(server.URL+"/api/lessons/1/bookings", "", strings.NewReader(`{"student_id":"ann"}`))
			if err != nil {
				answered <- 0
				return
			}
			response.Body.Close()
			answered <- response.StatusCode
		}()
		<-committed
		if l := readLedger(t, s, 1); l.remain != 0 || l.bookings != 1 {
			t.Errorf("ledger is %+v, want the booking", l)
		}
		book(t, s, 1, "ann").wants(t, http.StatusConflict, "duplicate")
		select {
		case status := <-answered:
			t.Errorf("answered %d at once, want late", status)
		default:
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if status := <-answered; status != http.StatusCreated {
			t.Errorf("answered %d in the end, want 201", status)
		}
	})
	http.DefaultClient.CloseIdleConnections()
}
