package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/gate/testbed"
)

// tables is an empty database for the sample API, and how a gate reads it.
type tables struct {
	database string // as booking.Options takes it
	driver   string
	dsn      string // as the gate's driver takes it
}

func postgresTables(t testing.TB) tables {
	dsn := testbed.Postgres(t).DSN()
	return tables{database: dsn, driver: "postgres", dsn: dsn}
}

func mariadbTables(t testing.TB) tables {
	database := testbed.MariaDB(t)
	return tables{database: database.URL(), driver: "mysql", dsn: database.DSN()}
}

func sqliteTables(t testing.TB) tables {
	file := filepath.Join(t.TempDir(), "lessons.db")
	return tables{database: file, driver: "sqlite", dsn: file}
}

// remainder is the capacity of a pool whose truth is the sample API's own tables, or
// others of that form; more are further settings.
func (d tables) remainder(table, more string) string {
	parameter := "?"
	if d.driver == "postgres" {
		parameter = "$1"
	}
	return fmt.Sprintf(`capacity: { sql: { driver: %s, dsn: %q, query: "SELECT remain FROM %s WHERE slot_id = %s", means: remaining }, `+
		`bookings: { query: "SELECT id, student_id, created_at FROM lesson_booking WHERE slot_id = %[4]s" }, %[5]s }`,
		d.driver, d.dsn, table, parameter, more)
}

// overHTTP is the capacity of a pool whose truth is the sample API itself.
func overHTTP(more string) string {
	return `capacity: { http: { path: "/api/lessons/{slot}", value: json:/data/remain, means: remaining }, ` + more + ` }`
}

// quickLooks are such as let a test see many.
const quickLooks = "refresh: 2s, hot: 500ms, lag: 100ms, timeout: 5s, max_rate: 200/s"

// refresh of quickLooks.
const refresh = 2 * time.Second

// patience is what a step may take on a busy test machine beyond what is promised.
const patience = 3 * time.Second

// followUps ends a book rule and adds the rules of what follows a booking.
const followUps = `    reference: json:/data/booking_id
  - name: cancel-booking
    match: { methods: [DELETE], path: "/api/bookings/{booking}" }
    action: cancel
    pool: lessons
    hold: path:booking
  - name: cancel-student
    match: { methods: [DELETE], path: "/api/lessons/{lesson}/students/{student}" }
    action: cancel
    pool: lessons
    slot: path:lesson
    subject: path:student
  - name: pay
    match: { methods: [POST], path: "/api/bookings/{booking}/payment" }
    action: confirm
    pool: lessons
    hold: path:booking
`

// slotView is a slot as operators see it.
type slotView struct {
	Capacity, Available *int64
	Confirmed, Held     int64
	Full                bool
	Source              string
	Holds               []struct{ ID, Subject, State, Reference string }
}

func (s slotView) String() string {
	number := func(n *int64) string {
		if n == nil {
			return "null"
		}
		return strconv.FormatInt(*n, 10)
	}
	return fmt.Sprintf("capacity %s, available %s, confirmed %d, held %d, full %v, source %q",
		number(s.Capacity), number(s.Available), s.Confirmed, s.Held, s.Full, s.Source)
}

// lesson reads a slot of the pool lessons; found is false while the store has none.
func (g *gateProcess) lesson(lesson int64) (view slotView, found bool) {
	g.t.Helper()
	a := send("GET", fmt.Sprintf("%s/v1/slots/lessons/%d", g.admin, lesson), "")
	if a.status == http.StatusNotFound {
		return view, false
	}
	if a.status != http.StatusOK {
		g.t.Fatalf("lesson %d: %v", lesson, a)
	}
	if err := json.Unmarshal(a.body, &view); err != nil {
		g.t.Fatalf("lesson %d: %v in %s", lesson, err, a.body)
	}
	return view, true
}

// available is the units that a slot has left by its counters, -1 while that is not
// known.
func (g *gateProcess) available(lesson int64) int64 {
	g.t.Helper()
	if s, found := g.lesson(lesson); found && s.Available != nil {
		return *s.Available
	}
	return -1
}

// metric is the value of one series, with its labels in order of their names.
func (g *gateProcess) metric(series string) float64 {
	g.t.Helper()
	resp, err := http.Get(g.admin + "/metrics")
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if text, found := strings.CutPrefix(lines.Text(), series+" "); found {
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				g.t.Fatal(err)
			}
			return value
		}
	}
	g.t.Fatalf("no series %s", series)
	return 0
}

func (g *gateProcess) drift() float64 { return g.metric(`slotgate_drift_units{pool="lessons"}`) }

func (g *gateProcess) looks(result string) float64 {
	return g.metric(`slotgate_looks_total{pool="lessons",result="` + result + `"}`)
}

// leads reports whether the gate has said last that it leads the pool's looks.
func (g *gateProcess) leads() bool {
	log := g.log.String()
	return strings.LastIndex(log, "leads=true") > strings.LastIndex(log, "leads=false")
}

// eventually asks until missing returns "", and returns how long that took.
func eventually(t testing.TB, within time.Duration, missing func() string) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		what := missing()
		took := time.Since(began)
		if what == "" {
			return took
		}
		if took > within {
			t.Fatalf("after %v still: %s", took.Round(time.Millisecond), what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// sales is what the database says of each lesson.
func (l *legacy) sales(t testing.TB) []booking.Sale {
	t.Helper()
	sales, err := l.Sales(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return sales
}

// behind tells where a gate's counters and the database differ; "" where nowhere.
func behind(t testing.TB, g *gateProcess, backend *legacy) string {
	t.Helper()
	for _, sale := range backend.sales(t) {
		slot, found := g.lesson(sale.Lesson)
		if !found || slot.Available == nil || *slot.Available != sale.Remain || slot.Held != 0 {
			return fmt.Sprintf("lesson %d has %d left, its slot says (found %v) %v", sale.Lesson, sale.Remain, found, slot)
		}
	}
	return ""
}

// serve serves a handler on loopback until the test ends, and returns its URL.
func serve(t testing.TB, handler http.Handler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() { defer close(done); _ = web.Serve(listener) }()
	t.Cleanup(func() {
		web.Close()
		<-done
	})
	return "http://" + listener.Addr().String()
}
