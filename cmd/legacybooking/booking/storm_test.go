package booking

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

const (
	stormLessons  = 3
	stormSeats    = 5
	stormStudents = 16 // of each lesson; each asks twice at the same moment
	stormClients  = 24
)

// storm sends every student's request twice, from stormClients connections,
// and returns the number of answers by status. An answer without a body that
// is JSON counts as status 0.
func storm(t *testing.T, s *Server) map[int]int {
	t.Helper()
	server := httptest.NewServer(s)
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: stormClients}}
	defer client.CloseIdleConnections()

	type task struct{ path, body string }
	tasks := make(chan task)
	var mu sync.Mutex
	statuses := make(map[int]int)
	var clients sync.WaitGroup
	for range stormClients {
		clients.Go(func() {
			for task := range tasks {
				status := 0
				response, err := client.Post(server.URL+task.path, "application/json", bytes.NewBufferString(task.body))
				if err == nil {
					body, _ := io.ReadAll(response.Body)
					response.Body.Close()
					if json.Valid(body) {
						status = response.StatusCode
					}
				}
				mu.Lock()
				statuses[status]++
				mu.Unlock()
			}
		})
	}
	for student := range stormStudents {
		for lesson := 1; lesson <= stormLessons; lesson++ {
			for range 2 {
				tasks <- task{fmt.Sprintf("/api/lessons/%d/bookings", lesson), fmt.Sprintf(`{"student_id":"s%d"}`, student)}
			}
		}
	}
	close(tasks)
	clients.Wait()
	return statuses
}

// wantsExact fails unless exactly the seats are sold, to as many students. A
// style that gave up on some requests gets its remaining seats asked for first.
func wantsExact(t *testing.T, s *Server, booked int) {
	t.Helper()
	var total int64
	for lesson := 1; lesson <= stormLessons; lesson++ {
		total += readLedger(t, s, lesson).bookings
	}
	if total != int64(booked) || s.Stats().Bookings != total {
		t.Errorf("%d bookings in the table, %d counted, %d answers 201: want the same", total, s.Stats().Bookings, booked)
	}
	for lesson := 1; lesson <= stormLessons; lesson++ {
		for late := 0; ; late++ {
			if got := book(t, s, lesson, fmt.Sprintf("late%d", late)); got.status != http.StatusCreated {
				got.wants(t, http.StatusConflict, "sold_out")
				break
			}
			if s.options.Style != Optimistic || late == stormSeats {
				t.Errorf("lesson %d still had seats after %d late bookings", lesson, late)
				break
			}
		}
		if got, want := readLedger(t, s, lesson), (ledger{0, stormSeats, stormSeats, stormSeats}); got != want {
			t.Errorf("lesson %d: ledger is %+v, want %+v", lesson, got, want)
		}
	}
}

func TestStormNeverOversellsWithConstraints(t *testing.T) {
	withEachStyle(t, func(t *testing.T, options Options) {
		options.Lessons, options.Seats, options.Delay = stormLessons, stormSeats, time.Millisecond
		s := open(t, options)
		statuses := storm(t, s)
		for status, n := range statuses {
			busy := status == http.StatusServiceUnavailable && options.Style == Optimistic
			if status != http.StatusCreated && status != http.StatusConflict && !busy {
				t.Errorf("%d answers with status %d", n, status)
			}
		}
		wantsExact(t, s, statuses[http.StatusCreated])
	})
}

// Styles that hold the row or its version need no constraints.
func TestStormWithoutConstraintsOnlyHurtsTheNaive(t *testing.T) {
	withEachStyle(t, func(t *testing.T, options Options) {
		options.NoConstraints = true
		options.Lessons, options.Seats, options.Delay = stormLessons, stormSeats, time.Millisecond
		if options.Style == Naive {
			// All clients are in the window together.
			options.Delay = 200 * time.Millisecond
		}
		s := open(t, options)
		statuses := storm(t, s)
		if options.Style != Naive {
			wantsExact(t, s, statuses[http.StatusCreated])
			return
		}
		var oversold, twice int64
		for lesson := 1; lesson <= stormLessons; lesson++ {
			l := readLedger(t, s, lesson)
			oversold += max(l.seats-stormSeats, 0)
			twice += l.bookings - l.students
			if l.remain != stormSeats-l.seats {
				t.Errorf("lesson %d: ledger is %+v, want remain to follow below 0", lesson, l)
			}
		}
		if oversold == 0 || twice == 0 {
			t.Errorf("%d seats oversold, %d students booked twice: want damage of both kinds", oversold, twice)
		}
	})
}
