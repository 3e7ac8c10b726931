package chaos

import (
	"bytes"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
)

// The times that every storm goes by. holdTTL exceeds upstreamTimeout and what the
// backend may need to commit after that (assumption A1).
const (
	upstreamTimeout = 500 * time.Millisecond
	holdTTL         = 3 * time.Second
	hot             = 300 * time.Millisecond
	lag             = 100 * time.Millisecond
	lateness        = 800 * time.Millisecond // upstreamTimeout < lateness < holdTTL
)

// arena is what a storm runs on: a store, a database with the sample API, and gates.
type arena struct {
	t       *testing.T
	setup   setup
	store   *site
	backend *stage.Backend
	front   *stage.Front // between the gates and the backend
	late    atomic.Bool  // the backend begins its work after the gate has given up
	db      *sql.DB
	config  [gates]string
	gates   [gates]atomic.Pointer[stage.Gate] // the process that runs now
}

// build starts everything and returns when the gates are ready. There are lessons for
// so many rounds.
func build(t *testing.T, s setup, rounds int) *arena {
	t.Helper()
	a := &arena{t: t, setup: s, store: startSite(t, s)}
	tables := stage.PostgresTables(t)
	a.backend = stage.StartBackend(t, booking.Options{
		Database: tables.Database, Style: s.style, NoConstraints: !s.constraints,
		Delay: 2 * time.Millisecond, Lessons: rounds * lessons, Seats: seats,
	})
	a.front = stage.StartFront(t, a.delayed(a.backend))
	var err error
	if a.db, err = sql.Open("pgx", tables.Database); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.db.Close() })
	if _, err := a.db.ExecContext(t.Context(), ledgerTables); err != nil {
		t.Fatal(err)
	}
	for i := range a.config {
		journal := ""
		if s.journal {
			journal = filepath.Join(t.TempDir(), "journal")
		}
		a.config[i] = s.config(a.front.URL(), a.store.topology, tables, journal)
		a.startGate(i)
	}
	return a
}

func (a *arena) startGate(i int) { a.gates[i].Store(stage.StartGate(a.t, a.config[i])) }

func (a *arena) gate(i int) *stage.Gate { return a.gates[i].Load() }

// delayed passes requests on to the backend, late if that is asked for: work that the
// gate has given up on, and the client too, but that is done.
func (a *arena) delayed(backend http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.late.Load() {
			body, _ := io.ReadAll(r.Body) // of a client that left, the backend refuses what is missing
			r.Body = io.NopCloser(bytes.NewReader(body))
			time.Sleep(lateness)
		}
		backend.ServeHTTP(w, r)
	})
}

// config is that of a gate.
func (s setup) config(backend string, store stage.Topology, tables stage.Tables, journal string) string {
	more := []string{"timeout: 400ms"}
	if journal != "" {
		more = append(more, fmt.Sprintf("journal: %q", journal))
	}
	capacity := fmt.Sprintf("capacity: %d", seats)
	if s.truth {
		capacity = tables.Remainder("lesson_slot", fmt.Sprintf("refresh: 1s, hot: %v, lag: %v, timeout: 1s, max_rate: 200/s", hot, lag))
	}
	pool := fmt.Sprintf("%s, hold_ttl: %v, one_per_subject: true, keep_unknown: %v, max_inflight: %d, reject_cache: %v", capacity, holdTTL, s.keepUnknown, s.maxInflight, s.rejectCache)
	rule := fmt.Sprintf(`    idempotency: { key: [header:Idempotency-Key], unknown: %s, wait: 2s }
    on_store_failure: %s
    passthrough: { slot: { rate: 1000/s, burst: 1000 }, rule: { rate: 5000/s, burst: 5000 }, max_inflight: 256, share: %v }
`, s.unknown, s.onStoreFailure, share)
	return stage.Lessons(backend, store.Store(more...), fmt.Sprintf(", timeout: %v", upstreamTimeout), pool, rule+stage.FollowUps)
}

// ledgerTables keep every booking and cancellation in the order in which they were
// committed: all that the sample API does to a lesson holds the lesson's row.
const ledgerTables = `
CREATE TABLE booking_ledger (
	id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at      timestamptz NOT NULL DEFAULT clock_timestamp(),
	change  integer NOT NULL,
	booking bigint NOT NULL,
	lesson  bigint NOT NULL,
	student text NOT NULL
);
CREATE FUNCTION note_booking() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'INSERT' THEN
		INSERT INTO booking_ledger (change, booking, lesson, student) VALUES (1, NEW.id, NEW.slot_id, NEW.student_id);
	ELSE
		INSERT INTO booking_ledger (change, booking, lesson, student) VALUES (-1, OLD.id, OLD.slot_id, OLD.student_id);
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER note_booking AFTER INSERT OR DELETE ON lesson_booking FOR EACH ROW EXECUTE FUNCTION note_booking();
`

// entry is one line of the database's own history.
type entry struct {
	at      time.Duration // since the epoch
	change  int           // 1 booked, -1 cancelled
	booking int64
	lesson  int
	student string
}

func (e entry) String() string {
	return fmt.Sprintf("%9.3fms %+d booking %d lesson %d %s", milliseconds(e.at), e.change, e.booking, e.lesson, e.student)
}

// ledger reads the database's history of all lessons from one on.
func (a *arena) ledger(epoch time.Time, first int) []entry {
	a.t.Helper()
	rows, err := a.db.QueryContext(a.t.Context(), "SELECT at, change, booking, lesson, student FROM booking_ledger WHERE lesson >= $1 ORDER BY id", first)
	if err != nil {
		a.t.Fatal(err)
	}
	defer rows.Close()
	var entries []entry
	for rows.Next() {
		var e entry
		var at time.Time
		if err := rows.Scan(&at, &e.change, &e.booking, &e.lesson, &e.student); err != nil {
			a.t.Fatal(err)
		}
		e.at = at.Sub(epoch.Round(0))
		entries = append(entries, e)
	}
	if err := rows.Err(); err != nil {
		a.t.Fatal(err)
	}
	return entries
}

// say lists things a line each.
func say[T any](list []T) string {
	var b strings.Builder
	for _, item := range list {
		fmt.Fprintf(&b, "\n  %v", item)
	}
	return b.String()
}
