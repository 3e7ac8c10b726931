package booking

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slotgate/slotgate/gate/testbed"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(testbed.SharedMariaDB(testbed.SharedPostgres(m)))
}

// databases makes an empty database of each kind.
var databases = map[string]func(*testing.T) string{
	"postgres":      func(t *testing.T) string { return testbed.Postgres(t).DSN() },
	"mysql":         func(t *testing.T) string { return testbed.MariaDB(t).URL() },
	"sqlite-file":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "50% off?.db") },
	"sqlite-memory": func(*testing.T) string { return InMemory },
}

// onEachDatabase runs test on an empty database of each kind.
func onEachDatabase(t *testing.T, test func(t *testing.T, database string)) {
	for name, newDatabase := range databases {
		t.Run(name, func(t *testing.T) { test(t, newDatabase(t)) })
	}
}

// withEachStyle runs test for each style on each kind of database.
func withEachStyle(t *testing.T, test func(t *testing.T, options Options)) {
	for _, style := range Styles {
		t.Run(string(style), func(t *testing.T) {
			onEachDatabase(t, func(t *testing.T, database string) {
				test(t, Options{Database: database, Style: style})
			})
		})
	}
}

func open(t *testing.T, options Options) *Server {
	t.Helper()
	s, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// reply is an answer as a client reads it.
type reply struct {
	status int
	header http.Header
	body   struct {
		Data    map[string]any `json:"data"`
		Error   string         `json:"error"`
		Code    *int           `json:"code"`
		Message string         `json:"msg"`
	}
}

// ask sends one request straight to the handler.
func ask(t *testing.T, s http.Handler, method, path, body string) reply {
	t.Helper()
	return askUnder(t.Context(), t, s, method, path, body)
}

func askUnder(ctx context.Context, t *testing.T, s http.Handler, method, path, body string) reply {
	t.Helper()
	recorder := httptest.NewRecorder()
	s.ServeHTTP(recorder, httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body)))
	got := reply{status: recorder.Code, header: recorder.Header()}
	if err := json.Unmarshal(recorder.Body.Bytes(), &got.body); err != nil {
		t.Errorf("%s %s answers %q: %v", method, path, recorder.Body, err)
	}
	return got
}

func book(t *testing.T, s http.Handler, lesson int, student string) reply {
	t.Helper()
	return ask(t, s, "POST", fmt.Sprintf("/api/lessons/%d/bookings", lesson), fmt.Sprintf(`{"student_id":%q}`, student))
}

// wants fails the test unless an answer has this status and this error.
func (r reply) wants(t *testing.T, status int, failure string) {
	t.Helper()
	if r.status != status || r.body.Error != failure {
		t.Errorf("answer is %d %q, want %d %q", r.status, r.body.Error, status, failure)
	}
}

// ledger is what the tables say about one lesson.
type ledger struct {
	remain, seats, bookings, students int64
}

func readLedger(t *testing.T, s *Server, lesson int) (l ledger) {
	t.Helper()
	query, args := s.database.engine.bind(`SELECT remain,
		(SELECT COALESCE(SUM(seats), 0) FROM lesson_booking WHERE slot_id = $1),
		(SELECT COUNT(*) FROM lesson_booking WHERE slot_id = $1),
		(SELECT COUNT(DISTINCT student_id) FROM lesson_booking WHERE slot_id = $1)
		FROM lesson_slot WHERE slot_id = $1`, []any{lesson})
	err := s.database.pool.QueryRowContext(t.Context(), query, args...).Scan(&l.remain, &l.seats, &l.bookings, &l.students)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// eventually waits until condition holds. It is for what another goroutine is
// certain to bring about; the limit only ends a test that is broken.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for !condition() {
		select {
		case <-again.C:
		case <-deadline.C:
			t.Fatalf("%s: not within 30s", what)
		}
	}
}

// holdLesson locks the row of a lesson from outside until release is called.
func holdLesson(t *testing.T, database string, lesson int) (release func()) {
	t.Helper()
	engine, err := Options{Database: database}.engine()
	if err != nil {
		t.Fatal(err)
	}
	db := engine.open()
	tx, err := db.BeginTx(context.WithoutCancel(t.Context()), nil)
	if err != nil {
		t.Fatal(err)
	}
	query, args := engine.bind("SELECT 1 FROM lesson_slot WHERE slot_id = $1 FOR UPDATE", []any{lesson})
	if _, err := tx.Exec(query, args...); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		db.Close()
	}
}
