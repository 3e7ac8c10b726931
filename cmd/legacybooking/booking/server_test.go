package booking

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestOpenRefuses(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing", "lessons.db")
	for name, test := range map[string]struct {
		options Options
		says    string
	}{
		"unknown style":   {Options{Style: "pessimistic"}, "conditional"},
		"negative number": {Options{Lessons: -1}, "0 or more"},
		"too many seats":  {Options{Lessons: 1, Seats: maxSeats + 1}, "1000"},
		"negative delay":  {Options{Delay: -time.Second}, "0 or more"},
		"missing folder":  {Options{Database: missing}, missing},
		"bad URL":         {Options{Database: "postgres://user:secret@host:x/db"}, "database URL"},
		"bad MySQL URL":   {Options{Database: "mysql://user:secret@host:x/db"}, "database URL"},
		"no MySQL host":   {Options{Database: "mysql:///secret"}, "database URL"},
		"bad parameter":   {Options{Database: "mysql://user:secret@host/db?loc=secret"}, "database URL"},
		"no MySQL server": {Options{Database: "mysql://user:secret@127.0.0.1:1/db"}, "127.0.0.1:1"},
		"no server":       {Options{Database: "postgres://user:secret@127.0.0.1:1/db"}, "127.0.0.1:1"},
	} {
		s, err := Open(t.Context(), test.options)
		if err == nil {
			s.Close()
			t.Errorf("%s: opened", name)
			continue
		}
		if !strings.HasPrefix(err.Error(), "booking: ") || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error is %q, want it to say %q and no password", name, err, test.says)
		}
	}
}

func TestDataOutlivesTheServer(t *testing.T) {
	for _, kind := range []string{"postgres", "mysql", "sqlite-file"} {
		t.Run(kind, func(t *testing.T) {
			options := Options{Database: databases[kind](t), Lessons: 1, Seats: 1}
			s, err := Open(t.Context(), options)
			if err != nil {
				t.Fatal(err)
			}
			book(t, s, 1, "ann").wants(t, http.StatusCreated, "")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}

			options.Lessons, options.Seats = 2, 7
			s = open(t, options)
			if old, added := readLedger(t, s, 1), readLedger(t, s, 2); old.remain != 0 || added.remain != 7 {
				t.Errorf("lessons have %d and %d seats left, want 0 as before and 7", old.remain, added.remain)
			}

			options.NoConstraints = true
			if again, err := Open(t.Context(), options); err == nil {
				again.Close()
				t.Error("tables with constraints were opened as if they had none")
			}
		})
	}
}

func TestADatabaseThatFailsIsLoggedAndAnswered(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, database string) {
		var log bytes.Buffer
		s := open(t, Options{Database: database, Lessons: 1, Seats: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if _, err := s.database.pool.Exec("DROP TABLE lesson_booking"); err != nil {
			t.Fatal(err)
		}
		book(t, s, 1, "ann").wants(t, http.StatusInternalServerError, "internal")
		ask(t, s, "GET", "/api/lessons/1", "").wants(t, http.StatusInternalServerError, "internal")
		if !strings.Contains(log.String(), "lesson_booking") {
			t.Errorf("log is %q, want the error of the database", log.String())
		}
	})
}

func TestErrorsOfOtherKindsAreNoViolations(t *testing.T) {
	for _, e := range []engine{postgres{}, mysql{}, newSQLite(InMemory)} {
		for _, err := range []error{nil, errors.New("other"), errSoldOut} {
			if got := e.classify(err); got != noViolation {
				t.Errorf("%T takes %v for violation %d", e, err, got)
			}
		}
	}
}
