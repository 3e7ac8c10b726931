package stage

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/slotgate/slotgate/gate/testbed"
)

// Tables is an empty database for the sample API, and how a gate reads it.
type Tables struct {
	Database string // as booking.Options takes it
	Driver   string
	DSN      string // as the gate's driver takes it
}

// PostgresTables is in a database of the server that the test binary shares.
func PostgresTables(t testing.TB) Tables {
	dsn := testbed.Postgres(t).DSN()
	return Tables{Database: dsn, Driver: "postgres", DSN: dsn}
}

// MariaDBTables is likewise.
func MariaDBTables(t testing.TB) Tables {
	database := testbed.MariaDB(t)
	return Tables{Database: database.URL(), Driver: "mysql", DSN: database.DSN()}
}

// SQLiteTables is a file in a temporary folder.
func SQLiteTables(t testing.TB) Tables {
	file := filepath.Join(t.TempDir(), "lessons.db")
	return Tables{Database: file, Driver: "sqlite", DSN: file}
}

// Remainder is the capacity of a pool whose truth is the sample API's own tables, or
// others of that form; more are further settings.
func (d Tables) Remainder(table, more string) string {
	parameter := "?"
	if d.Driver == "postgres" {
		parameter = "$1"
	}
	return fmt.Sprintf(`capacity: { sql: { driver: %s, dsn: %q, query: "SELECT remain FROM %s WHERE slot_id = %s", means: remaining }, `+
		`bookings: { query: "SELECT id, student_id, created_at FROM lesson_booking WHERE slot_id = %[4]s" }, %[5]s }`,
		d.Driver, d.DSN, table, parameter, more)
}

// OverHTTP is the capacity of a pool whose truth is the sample API itself.
func OverHTTP(more string) string {
	return `capacity: { http: { path: "/api/lessons/{slot}", value: json:/data/remain, means: remaining }, ` + more + ` }`
}

// QuickLooks are such as let a test see many.
const QuickLooks = "refresh: 2s, hot: 500ms, lag: 100ms, timeout: 5s, max_rate: 200/s"

// Booked counts, in the database itself, the bookings of each lesson by student.
func (d Tables) Booked(t testing.TB) map[int64]map[string]int {
	t.Helper()
	db, err := sql.Open(map[string]string{"postgres": "pgx", "mysql": "mysql", "sqlite": "sqlite"}[d.Driver], d.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), "SELECT slot_id, student_id FROM lesson_booking")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	booked := map[int64]map[string]int{}
	for rows.Next() {
		var lesson int64
		var student string
		if err := rows.Scan(&lesson, &student); err != nil {
			t.Fatal(err)
		}
		if booked[lesson] == nil {
			booked[lesson] = map[string]int{}
		}
		booked[lesson][student]++
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return booked
}
