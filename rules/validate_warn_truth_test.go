package rules

import (
	"strings"
	"testing"
)

func TestWarningsOfTruth(t *testing.T) {
	with := func(capacity string) string {
		return strings.Replace(quiet, "capacity: learned", capacity, 1)
	}
	sql := func(rest string) string {
		return with(`capacity: { sql: { driver: sqlite, dsn: d, query: "SELECT a WHERE b = ?" ` + rest)
	}
	const probing = "    subject: json:/s\n    idempotency: { unknown: probe }\n"
	const bookings = `}, bookings: { query: "SELECT id, s FROM b WHERE c = ?" } }`
	for _, row := range []struct{ name, src, want string }{
		{"sql", with(sqlTruth), ""},
		{"http", with(httpTruth), ""},
		{"no outcome says sold_out, but truth tells", strings.Replace(with(sqlTruth), "is: sold_out", "is: refused", 1), ""},
		{"means: booked", sql(", means: booked, total: 6 } }"), ""},
		{"means: capacity", sql(", means: «capacity } }"), "recovers nothing"},
		{"means: capacity of http", with(strings.Replace(httpTruth, "value:", "means: «capacity, value:", 1)), "recovers nothing"},
		{"lag", sql("}, lag: «6s }"), "6s is not shorter than hot, which is 5s"},
		{"lag by default", "«" + sql("}, hot: 1s }"), "2s is not shorter than hot, which is 1s"},
		{"lag where nothing is recovered", sql(", means: «capacity }, lag: 6s }"), "recovers nothing"},
		{"report_dir alone", sql("}, report_dir: «/a }"), "is of no use without report"},
		{"report", sql("}, report_dir: /a, report: 04:30 }"), ""},
		{"a joined slot", strings.Replace(with(sqlTruth), "slot: path:lesson", "«slot: [path:lesson, json:/hour]", 1), "and pool lessons asks its truth for that"},
		{"a joined subject", sql(bookings) + "    «subject: [json:/a, json:/b]\n", "is joined from 2 parts to a text such as |3:abc|2:xy, and the bookings of pool lessons are compared with that"},
		{"a joined subject without bookings", with(sqlTruth) + "    subject: [json:/a, json:/b]\n", ""},
		{"keep_unknown", sql("} }\n    keep_unknown: «true"), "write unknown: probe on the book rule"},
		{"keep_unknown without truth", with("capacity: learned\n    keep_unknown: true"), ""},
		{"keep_unknown with a probe", sql(bookings+"\n    one_per_subject: true\n    keep_unknown: true") + probing, ""},
		{"a probe", sql(bookings+"\n    one_per_subject: true") + probing, ""},
		{"a probe where a subject has one unit in all", sql(bookings+"\n    max_per_subject: 1") + probing, ""},
		{"a probe where a subject may book again", sql(bookings) + strings.Replace(probing, "probe", "«probe", 1), "takes an earlier booking of the subject for the one that was not answered"},
	} {
		t.Run(row.name, func(t *testing.T) {
			src := row.src
			if strings.HasPrefix(src, "«") { // the mark belongs to the capacity
				src = strings.Replace(strings.TrimPrefix(src, "«"), "capacity:", "«capacity:", 1)
			}
			expectWarning(t, src, row.want)
		})
	}
}

// A setting that could not be read is a fault, and says nothing of what it would have been.
func TestNoWarningOfAProbeRestsOnAFault(t *testing.T) {
	src := strings.Replace(quiet, "capacity: learned", `capacity: { sql: { driver: sqlite, dsn: d, query: "SELECT a WHERE b = ?" }, bookings: { query: "SELECT id, s FROM b WHERE c = ?" } }
    one_per_subject: yes please`, 1) + "    subject: json:/s\n    idempotency: { unknown: probe }\n"
	cfg, faults := Load("c.yaml", []byte(src), LoadOptions{})
	if cfg != nil || len(faults) != 1 || !strings.Contains(faults[0].Message, "is not a boolean") {
		t.Errorf("got:\n%s", faults)
	}
}

func TestWarningsOfPendingAndSettling(t *testing.T) {
	const (
		path   = "    match: { path: /b }\n"
		cancel = "  - name: cancel\n    action: cancel\n    pool: lessons\n" + path
	)
	confirm := strings.ReplaceAll(cancel, "cancel", "confirm")
	const bySlot, byHold = "    slot: json:/l\n    subject: json:/s\n", "    hold: json:/id\n"
	truthful := strings.Replace(quiet, "capacity: learned", sqlTruth, 1)
	pending := func(src, value string) string {
		return strings.Replace(src, "    capacity:", "    pending_ttl: "+value+"\n    capacity:", 1)
	}
	withReference := func(src string) string {
		return strings.Replace(src, "slot: path:lesson", "slot: path:lesson\n    reference: json:/id", 1)
	}
	for _, row := range []struct{ name, src, want string }{
		{"pending and confirmed", pending(truthful, "15m") + confirm + bySlot, ""},
		{"pending, confirmed by nothing", pending(truthful, "«15m"), "every booking counts as expired 15m after it was made"},
		{"pending without truth", pending(quiet, "«15m") + confirm + bySlot, "keeps its units until an operator releases it"},
		{"confirm without pending", truthful + strings.Replace(confirm, "action: ", "action: «", 1) + bySlot, "pool lessons has no pending_ttl"},
		{"pending longer than state is kept", pending(strings.Replace(truthful, "    capacity:", "    retain: «10m\n    capacity:", 1), "15m") + confirm + bySlot, "10m is shorter than pending_ttl, which is 15m"},
		{"cancel", quiet + cancel + bySlot, ""},
		{"cancel by reference", withReference(quiet) + cancel + byHold, ""},
		{"cancel by a reference that nobody keeps", quiet + cancel + strings.Replace(byHold, "hold: ", "hold: «", 1), "no book rule of pool lessons has a reference"},
		{"cancel with keys", quiet + cancel + bySlot + "    «idempotency: {}\n", "where retry would let the backend hear a repeated cancel"},
		{"cancel with retry", quiet + cancel + bySlot + "    idempotency: { unknown: retry }\n", ""},
	} {
		t.Run(row.name, func(t *testing.T) { expectWarning(t, row.src, row.want) })
	}

	total := pending(strings.Replace(truthful, `$1" }`, `$1", means: capacity }`, 1), "15m")
	got := warnings(t, total).String()
	for _, want := range []string{"recovers nothing", "until an operator releases it", "counts as expired"} {
		if !strings.Contains(got, want) {
			t.Errorf("means: capacity and pending_ttl give no %q:\n%s", want, got)
		}
	}
}
