package rules

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

const (
	sqlTruth  = `capacity: { sql: { driver: postgres, dsn: "${DSN:-postgres://127.0.0.1/shop}", query: "SELECT remain FROM lesson_slot WHERE slot_id = $1" } }`
	httpTruth = `capacity: { http: { path: "/api/lessons/{slot}", value: json:/data/remain } }`
)

func loadTruth(t *testing.T, text string, opts LoadOptions) *TruthConfig {
	t.Helper()
	capacity := load(t, edit(t, "lessons:", text), opts).Pools["lessons"].Capacity
	if capacity.Truth == nil || capacity.Units != 0 {
		t.Fatalf("%s gives %+v", text, capacity)
	}
	return capacity.Truth
}

func TestTruthDefaults(t *testing.T) {
	want := defaultTruth()
	want.SQL = &SQLSource{Driver: "postgres", DSN: "postgres://127.0.0.1/shop", Query: "SELECT remain FROM lesson_slot WHERE slot_id = $1", Means: "remaining"}
	if got := loadTruth(t, sqlTruth, LoadOptions{}); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	want = defaultTruth()
	want.HTTP = &HTTPSource{Path: "/api/lessons/{slot}", Value: Extractor{Source: FromJSON, Name: "/data/remain"}, Means: "remaining"}
	if got := loadTruth(t, httpTruth, LoadOptions{}); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if want.Refresh != time.Minute || want.Hot != 5*time.Second || want.MaxRate.String() != "50/s" || want.Lag != 2*time.Second || want.Timeout != 2*time.Second {
		t.Errorf("the contract has other defaults than %+v", want)
	}
}

func TestTruthWhole(t *testing.T) {
	got := loadTruth(t, `capacity:
  sql:
    driver: mysql
    dsn: "${DSN}"
    query: "SELECT COUNT(*) FROM booking WHERE slot_id = ?"
    means: booked
    total: { query: "SELECT seats FROM lesson_slot WHERE slot_id = ?" }
  refresh: 30s
  hot: 1s
  max_rate: 5/10s
  lag: 0s
  timeout: 500ms
  bookings: { query: "SELECT id, student_id FROM booking WHERE slot_id = ?" }
  report: 04:30
  report_dir: /var/lib/slotgate
`, LoadOptions{Env: func(name string) (string, bool) { return "gate:pw@tcp(db)/shop", name == "DSN" }})
	want := &TruthConfig{
		SQL: &SQLSource{
			Driver: "mysql", DSN: "gate:pw@tcp(db)/shop", Query: "SELECT COUNT(*) FROM booking WHERE slot_id = ?",
			Means: "booked", Total: TotalConfig{Query: "SELECT seats FROM lesson_slot WHERE slot_id = ?"},
		},
		Refresh: 30 * time.Second, Hot: time.Second, MaxRate: Rate{5, 10 * time.Second}, Timeout: 500 * time.Millisecond,
		Bookings: &BookingsConfig{Query: "SELECT id, student_id FROM booking WHERE slot_id = ?"},
		Report:   "04:30", ReportDir: "/var/lib/slotgate",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got.Means() != MeansBooked || got.Total().String() != "query" || !got.Probes() {
		t.Errorf("means %s, total %v, probes %v", got.Means(), got.Total(), got.Probes())
	}
}

func TestTruthHTTPWhole(t *testing.T) {
	got := loadTruth(t, `capacity:
  http:
    path: "/api/lessons?id={slot}"
    value: json:/booked
    means: booked
    total: { value: json:/seats }
    headers: { Authorization: "Bearer ${TOKEN:-t}" }
  bookings: { path: "/api/lessons/{slot}/students/{subject}" }
`, LoadOptions{})
	if s := got.HTTP; s.Value.Name != "/booked" || s.Total.Value.Name != "/seats" || s.Headers["Authorization"] != "Bearer t" || got.Bookings.Path == "" {
		t.Errorf("%+v with bookings %+v", s, got.Bookings)
	}
	if total := loadTruth(t, strings.Replace(httpTruth, "value:", "means: booked, total: 6, value:", 1), LoadOptions{}).Total(); total.Units != 6 || total.String() != "6" {
		t.Errorf("total: 6 is %v", total)
	}
}

// TestTruthHot: where hot is not written it is no reason to refuse a short refresh.
func TestTruthHot(t *testing.T) {
	short := strings.Replace(sqlTruth, " } }", " }, refresh: 1s }", 1)
	if got := loadTruth(t, short, LoadOptions{}); got.Hot != time.Second {
		t.Errorf("hot is %s, want 1s", got.Hot)
	}
}

func TestTruthBySet(t *testing.T) {
	src := edit(t, "lessons:", sqlTruth)
	cfg := load(t, src, LoadOptions{Set: []string{
		"pools.lessons.capacity.refresh=9s",
		"pools.lessons.capacity.sql.dsn=postgres://db",
		"pools.lessons.capacity.sql.means=booked",
		"pools.lessons.capacity.sql.total=6",
	}})
	truth := cfg.Pools["lessons"].Capacity.Truth
	if truth.Refresh != 9*time.Second || truth.SQL.DSN != "postgres://db" || truth.SQL.Total.Units != 6 {
		t.Errorf("got %+v of %+v", truth.SQL, truth)
	}
	cfg = load(t, src, LoadOptions{Set: []string{"pools.lessons.capacity=7"}})
	if got := cfg.Pools["lessons"].Capacity; got != (Capacity{Units: 7}) {
		t.Errorf("got %+v", got)
	}
	cfg = load(t, base, LoadOptions{Set: []string{"pools.lessons." + strings.Replace(sqlTruth, ": ", "=", 1)}})
	if got := cfg.Pools["lessons"].Capacity; got.Kind != CapacitySQL || got.Truth.Refresh != time.Minute {
		t.Errorf("got %+v", got)
	}
}

func TestCapacityRecovers(t *testing.T) {
	for text, want := range map[string]bool{
		"capacity: 6":       false,
		"capacity: learned": false,
		sqlTruth:            true,
		strings.Replace(httpTruth, "value:", "means: booked, total: 6, value:", 1): true,
		strings.Replace(httpTruth, "value:", "means: capacity, value:", 1):         false,
	} {
		if got := load(t, edit(t, "lessons:", text), LoadOptions{}).Pools["lessons"].Capacity.Recovers(); got != want {
			t.Errorf("%s: recovers is %v", text, got)
		}
	}
}

// TestMaxUnitsWithTruth: what a slot has is not known here, as with learned.
func TestMaxUnitsWithTruth(t *testing.T) {
	set, err := NewSet(load(t, edit(t, "lessons:", sqlTruth), LoadOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	if got := set.Rules[0].maxUnits; got != maxUnitsPerRequest {
		t.Errorf("one request may take %d units", got)
	}
}

func TestTruthShowsNoSecrets(t *testing.T) {
	sql := SQLSource{Driver: "postgres", DSN: "postgres://gate:hunter2@db/shop"}
	http := HTTPSource{Path: "/api/{slot}", Headers: map[string]string{"Authorization": "Bearer hunter2"}}
	encoded, err := json.Marshal(Capacity{Truth: &TruthConfig{SQL: &sql, HTTP: &http}})
	if err != nil {
		t.Fatal(err)
	}
	text := string(encoded) + fmt.Sprint(sql, &sql, http, &http) + fmt.Sprintf("%+v %+v", sql, &http)
	if strings.Contains(text, "hunter2") || !strings.Contains(text, "sql postgres") || !strings.Contains(text, "http GET /api/{slot}") {
		t.Error(text)
	}
	for _, row := range []string{
		"capacity: { sql: { driver: mysql, dsn: \"mysql://gate:hunter2@db/shop\", query: \"SELECT 1\" } }",
		"capacity: { sql: { driver: mysql, dsn: [hunter2] } }",
		"capacity: { sql: { dsn: hunter2, query: hunter2x } }",
		"capacity: { http: { path: \"/{slot}\", value: json:/a, headers: { A: \" hunter2\", Host: \"hunter2\\n\" } } }",
	} {
		_, faults := Load("c.yaml", []byte(edit(t, "lessons:", row)), LoadOptions{})
		if len(faults.Errors()) == 0 || strings.Contains(strings.ReplaceAll(faults.String(), "hunter2x", ""), "hunter2") {
			t.Errorf("%s gives\n%s", row, faults)
		}
	}
}
