package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/gate/testbed"
)

// comparedSale is the sample API on SQLite, without constraints, behind a gate that
// looks at truth only when a slot is loaded: what goes wrong stays for the commands.
type comparedSale struct {
	*testing.T
	db     *sql.DB // past the gate
	gate   *runningService
	config string // a file
}

// comparedSeats are more than the traffic of a test sells in a lesson.
const comparedSeats = 400

const comparedYAML = `
server: { listen: "127.0.0.1:0" }
admin: { listen: "127.0.0.1:0" }
upstream: { url: %q, timeout: 10s }
store: { kind: redis, addresses: [%q], timeout: 5s }
pools:
  lessons:
    hold_ttl: 1h
    capacity:
      sql: { driver: sqlite, dsn: %q, query: "SELECT remain FROM lesson_slot WHERE slot_id = ?", means: remaining }
      bookings: { query: "SELECT id, student_id, created_at FROM lesson_booking WHERE slot_id = ?" }
      refresh: 1h
      hot: 1h
      lag: 0s
      timeout: 10s
rules:
  - name: book
    match: { methods: [POST], path: "/api/lessons/{lesson}/bookings" }
    pool: lessons
    slot: path:lesson
    subject: json:/student_id
    outcomes: [ { when: { status: 409, json: { /error: sold_out } }, is: sold_out } ]
  - name: cancel
    match: { methods: [DELETE], path: "/api/lessons/{lesson}/students/{student}" }
    action: cancel
    pool: lessons
    slot: path:lesson
    subject: path:student
`

// compareSale opens lessons of comparedSeats each, all of which the gate knows.
func compareSale(t *testing.T, lessons int) *comparedSale {
	t.Helper()
	file := filepath.Join(t.TempDir(), "lessons.db")
	api, err := openStage(t.Context(), booking.Options{
		Database: file, Style: booking.Conditional, NoConstraints: true, Lessons: lessons, Seats: comparedSeats,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.close() })
	yaml := fmt.Sprintf(comparedYAML, api.url, testbed.Redis(t).Addr(), file)
	s := &comparedSale{T: t, gate: mustStart(t, yaml), config: filepath.Join(t.TempDir(), "gate.yaml")}
	t.Cleanup(func() { _ = s.gate.stop() })
	if err := os.WriteFile(s.config, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	if s.db, err = sql.Open("sqlite", file+"?_pragma=busy_timeout(10000)"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.db.Close() })
	var names strings.Builder
	for lesson := range lessons {
		fmt.Fprintln(&names, lesson+1)
	}
	var stdout, stderr bytes.Buffer
	if status := run([]string{"slots", "load", "lessons", "--admin", s.gate.admin}, strings.NewReader(names.String()), &stdout, &stderr); status != 0 {
		t.Fatalf("slots load: %d\n%s%s", status, &stdout, &stderr)
	}
	return s
}

// book returns a status through the gate, 0 for a request that had no answer.
func (s *comparedSale) book(lesson int, student string) int {
	res, err := client.Post(fmt.Sprintf("%s/api/lessons/%d/bookings", s.gate.gate, lesson), "application/json",
		strings.NewReader(fmt.Sprintf(`{"student_id":%q}`, student)))
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// books books through the gate, and must get this status.
func (s *comparedSale) books(lesson int, student string, want int) {
	s.Helper()
	if got := s.book(lesson, student); got != want {
		s.Fatalf("lesson %d, %s: %d, want %d", lesson, student, got, want)
	}
}

// behind writes to the database past the gate.
func (s *comparedSale) behind(statements string) {
	s.Helper()
	if _, err := s.db.Exec(statements); err != nil {
		s.Fatal(err)
	}
}

// cancel cancels through the gate.
func (s *comparedSale) cancel(lesson int, student string) {
	req, err := http.NewRequest(http.MethodDelete, fmt.Sprintf("%s/api/lessons/%d/students/%s", s.gate.gate, lesson, student), nil)
	if err != nil {
		s.Error(err)
		return
	}
	if res, err := client.Do(req); err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
}

// traffic books in lessons 1 to n, one goroutine each, and cancels every third
// booking, until it is told to end; it then tells how many bookings there were.
func (s *comparedSale) traffic(n int) (end func() int64) {
	var done atomic.Int64
	var busy sync.WaitGroup
	stop := make(chan struct{})
	for lesson := 1; lesson <= n; lesson++ {
		busy.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if s.book(lesson, fmt.Sprint("student-", i)) == http.StatusCreated {
					done.Add(1)
					if i%3 == 0 {
						s.cancel(lesson, fmt.Sprint("student-", i))
					}
				}
			}
		})
	}
	return func() int64 { close(stop); busy.Wait(); return done.Load() }
}

// compared runs a command in this process, with JSON, and returns its rows as
// "slot kind", and how many it repaired.
func (s *comparedSale) compared(status int, command ...string) (found []string, repaired int) {
	s.Helper()
	var stdout, stderr bytes.Buffer
	args := append(command, "-c", s.config, "--format", "json", "--rate", "1000", "--set", "pools.lessons.one_per_subject=true")
	if got := run(args, nil, &stdout, &stderr); got != status || stderr.Len() > 0 {
		s.Errorf("%q ended with %d, want %d\n%s%s", command, got, status, &stderr, &stdout)
	}
	var report struct {
		Reports []struct {
			Rows, Findings []struct{ Slot, Kind string }
			Slots          int
			Repaired       int
		}
		Complete bool
	}
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil || len(report.Reports) != 1 || !report.Complete {
		s.Fatalf("%v, want one complete report:\n%s", err, &stdout)
	}
	for _, row := range append(report.Reports[0].Rows, report.Reports[0].Findings...) {
		found = append(found, row.Slot+" "+row.Kind)
	}
	slices.Sort(found)
	return found, report.Reports[0].Repaired
}
