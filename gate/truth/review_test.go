package truth

import (
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/rules"
)

// The statement runs as it is printed, on each database, whatever the slot is called.
func TestReviewSQLRuns(t *testing.T) {
	const slot = `o'neill "math" \ -- 7`
	databases := map[string]struct {
		name string
		dsn  func() string
	}{
		"postgres": {"pgx", func() string { return testbed.Postgres(t).DSN() }},
		"mysql":    {"mysql", func() string { return testbed.MariaDB(t).DSN() }},
		"sqlite":   {"sqlite", func() string { return filepath.Join(t.TempDir(), "db") }},
	}
	for driver, d := range databases {
		t.Run(driver, func(t *testing.T) {
			db, err := sql.Open(d.name, d.dsn())
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			place := "?"
			if driver == "postgres" {
				place = "$1"
			}
			for _, statement := range []string{
				"CREATE TABLE booking (id INTEGER PRIMARY KEY, slot_id VARCHAR(100), student_id VARCHAR(100), created_at VARCHAR(30))",
				"INSERT INTO booking VALUES (1, 'other', 'eve', '2026-01-01 10:00:00'), (2, 'x', 'ann', '2026-01-02 10:00:00'), " +
					"(10, 'x', 'bea', '2026-01-02 10:00:00'), (3, 'x', 'cem', '2026-01-03 10:00:00'), (4, 'x', 'dan', '2026-01-01 10:00:00')",
			} {
				if _, err := db.Exec(statement); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := db.Exec("UPDATE booking SET slot_id = "+place+" WHERE slot_id = 'x'", slot); err != nil {
				t.Fatal(err)
			}
			truth := &rules.TruthConfig{
				SQL:      &rules.SQLSource{Driver: driver},
				Bookings: &rules.BookingsConfig{Query: "SELECT id, student_id, created_at FROM booking WHERE slot_id = " + place + " -- of one slot;\n;"},
			}
			f := &Finding{Slot: slot, dated: true, Bookings: []Booking{{ID: "3"}, {ID: "10"}, {ID: "2"}, {ID: "1"}}}
			statement := reviewSQL(truth, f)
			rows, err := db.Query(strings.TrimSuffix(statement, ";"))
			if err != nil {
				t.Fatalf("%v in\n%s", err, statement)
			}
			defer rows.Close()
			var got []string
			for rows.Next() {
				var id, subject, made string
				if err := rows.Scan(&id, &subject, &made); err != nil {
					t.Fatal(err)
				}
				got = append(got, id)
			}
			if want := []string{"3", "10", "2"}; !slices.Equal(got, want) {
				t.Errorf("bookings %q, want %q from\n%s", got, want, statement)
			}
		})
	}
}

func TestReviewSQLText(t *testing.T) {
	for _, c := range []struct{ name, driver, query, slot, want string }{
		{"a plain query", "postgres", "select id, student_id from school.booking where slot_id = $1;", "7",
			"WITH b (id, subject) AS (\nselect id, student_id from school.booking where slot_id = '7'\n)\n" +
				"SELECT * FROM b WHERE id IN ('5', '4') ORDER BY id DESC;\n-- DELETE FROM school.booking WHERE id IN ('5', '4');"},
		{"placeholders in quotes and comments stay", "postgres",
			`SELECT id, who FROM "t$1" WHERE a = '$1' /* $1 */ AND b = $1 AND c = $$ $1 $$ AND d = $12 -- $1`, "7",
			"WITH b (id, subject) AS (\n" + `SELECT id, who FROM "t$1" WHERE a = '$1' /* $1 */ AND b = '7' AND c = $$ $1 $$ AND d = $12 -- $1` + "\n)\n" +
				"SELECT * FROM b WHERE id IN ('5', '4') ORDER BY id DESC;"},
		{"a backslash in MySQL", "mysql", `SELECT id, who FROM t WHERE a = 'it\'s ?' AND b = ?`, `\' OR 1=1`,
			"WITH b (id, subject) AS (\n" + `SELECT id, who FROM t WHERE a = 'it\'s ?' AND b = '\\'' OR 1=1'` + "\n)\n" +
				"SELECT * FROM b WHERE id IN ('5', '4') ORDER BY id DESC;\n-- DELETE FROM t WHERE id IN ('5', '4');"},
		{"no suggestion for two tables", "sqlite", "SELECT b.id, s.name FROM booking b JOIN student s ON s.id = b.student WHERE slot = ?", "7",
			"WITH b (id, subject) AS (\nSELECT b.id, s.name FROM booking b JOIN student s ON s.id = b.student WHERE slot = '7'\n)\n" +
				"SELECT * FROM b WHERE id IN ('5', '4') ORDER BY id DESC;"},
		{"a line break", "sqlite", "SELECT id, who FROM t WHERE a = ?", "7\n; DROP TABLE t", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			truth := &rules.TruthConfig{SQL: &rules.SQLSource{Driver: c.driver}, Bookings: &rules.BookingsConfig{Query: c.query}}
			f := &Finding{Slot: c.slot, Bookings: []Booking{{ID: "5"}, {ID: "4", At: time.Now()}}}
			if got := reviewSQL(truth, f); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func FuzzLiteralStaysOne(f *testing.F) {
	f.Add("mysql", `a\`)
	f.Add("postgres", "a'b")
	f.Fuzz(func(t *testing.T, driver, text string) {
		got, ok := literal(driver, text)
		if !ok {
			return
		}
		if n := quotedEnd(got, driver == "mysql"); n != len(got) {
			t.Errorf("%q ends after %d bytes", got, n)
		}
	})
}

// quotedEnd is where a database ends a text: doubled quotes are one of its characters.
func quotedEnd(s string, backslash bool) int {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && backslash:
			i++
		case s[i] == '\'' && i+1 < len(s) && s[i+1] == '\'':
			i++
		case s[i] == '\'':
			return i + 1
		}
	}
	return -1
}
