package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/storm"
	"github.com/slotgate/slotgate/rules"
)

// smallDemo sells 20 seats in a second or two.
var smallDemo = demoSize{
	lessons: 4, seats: 5, work: 100 * time.Millisecond, clients: 64,
	students: 120, rate: 2000,
	outageStudents: 120, outageRate: 200, outageAfter: 5, outageLasts: 400 * time.Millisecond,
}

func newSmallDemo() (d *demo, stdout, stderr *bytes.Buffer) {
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	return &demo{size: smallDemo, seed: 1, stdout: stdout, stderr: stderr}, stdout, stderr
}

// tableRow is a line of the table, read back.
type tableRow struct {
	label                                                        string
	bookings, seats, oversold, duplicates, sent, reached, failed int
	mark                                                         string
}

var tableLine = regexp.MustCompile(`(?m)^  (with.*?gate(?:, store lost)?) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +[\d.]+ +[\d.]+(?:  (\w+))?$`)

func readTable(t *testing.T, text string) (rows []tableRow) {
	t.Helper()
	for _, match := range tableLine.FindAllStringSubmatch(text, -1) {
		var n [7]int
		for i := range n {
			n[i], _ = strconv.Atoi(match[2+i])
		}
		rows = append(rows, tableRow{match[1], n[0], n[1], n[2], n[3], n[4], n[5], n[6], match[9]})
	}
	if len(rows) != len(demoActs) {
		t.Fatalf("%d rows, want %d:\n%s", len(rows), len(demoActs), text)
	}
	return rows
}

func TestDemoShowsWhatTheGateIsFor(t *testing.T) {
	leavesNothing(t)
	d, stdout, stderr := newSmallDemo()
	d.jsonFile = filepath.Join(t.TempDir(), "demo.json")
	if status := d.run(t.Context(), d.play); status != 0 {
		t.Fatalf("exit status %d\n%s%s", status, stdout, stderr)
	}
	rows := readTable(t, stdout.String())
	const requests = 240
	if r := rows[0]; r.oversold == 0 || r.duplicates == 0 || r.bookings != 20+r.oversold || r.reached != requests || r.mark != "" {
		t.Errorf("alone, without constraints: %+v; want damage, and all requests at the API", r)
	}
	if want := (tableRow{"without gate", 20, 20, 0, 0, requests, requests, 0, ""}); rows[2] != want {
		t.Errorf("alone, with constraints: %+v, want %+v", rows[2], want)
	}
	for _, i := range []int{1, 3} {
		if want := (tableRow{"with gate", 20, 20, 0, 0, requests, 20, 0, "ok"}); rows[i] != want {
			t.Errorf("act %d: %+v, want %+v", i+1, rows[i], want)
		}
	}
	if r := rows[4]; r.label != "with gate, store lost" || r.bookings != 20 || r.seats != 20 || r.oversold != 0 || r.duplicates != 0 || r.mark != "ok" {
		t.Errorf("store lost: %+v", r)
	}
	if lines := strings.Split(strings.TrimSpace(stderr.String()), "\n"); len(lines) != len(demoActs) {
		t.Errorf("progress without a terminal is %d lines, want one an act:\n%s", len(lines), stderr)
	}
	for _, line := range strings.Split(stdout.String()+stderr.String(), "\n") {
		if len(line) > 100 || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("not 100 columns of ASCII: %q", line)
		}
	}
	checkDemoJSON(t, d.jsonFile, rows)
}

// checkDemoJSON compares the file with the table, and looks into act 5.
func checkDemoJSON(t *testing.T, file string, rows []tableRow) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Acts []struct {
			Bookings int `json:"bookings"`
			Oversold int `json:"oversold"`
			Reached  int `json:"reached_backend"`
			Outage   *struct {
				Bookings  [3]int            `json:"bookings"`
				Decisions [3]map[string]int `json:"gate_decisions"`
			} `json:"store_outage"`
		} `json:"acts"`
	}
	if err := json.Unmarshal(text, &report); err != nil || len(report.Acts) != len(rows) {
		t.Fatalf("%d acts, %v\n%s", len(report.Acts), err, text)
	}
	for i, act := range report.Acts {
		if row := rows[i]; act.Bookings != row.bookings || act.Oversold != row.oversold || act.Reached != row.reached {
			t.Errorf("act %d: the file says %+v, the table %+v", i+1, act, row)
		}
	}
	outage := report.Acts[4].Outage
	if outage == nil {
		t.Fatalf("no outage in act 5:\n%s", text)
	}
	if outage.Bookings[0] != int(smallDemo.outageAfter) || outage.Bookings[0]+outage.Bookings[1]+outage.Bookings[2] != 20 {
		t.Errorf("bookings by phase are %v, want %d before and 20 in all", outage.Bookings, smallDemo.outageAfter)
	}
	if outage.Decisions[0]["passthrough"] != 0 || outage.Decisions[1]["passthrough"]+outage.Decisions[2]["passthrough"] == 0 || outage.Decisions[0]["admitted"] == 0 {
		t.Errorf("decisions by phase are %v", outage.Decisions)
	}
}

func TestDemoFailsWhereTheGateDoes(t *testing.T) {
	right := func(act demoAct) *demoRow {
		row := &demoRow{act: act, Seats: 20, Bookings: 20, Reached: 20}
		if act.outage {
			row.Outage = &outageCounts{}
			row.Outage.Decisions[storeAway] = map[string]int{"passthrough": 7}
		}
		return row
	}
	gated := demoAct{gate: true}
	lost := demoAct{constraints: true, gate: true, outage: true}
	for name, test := range map[string]struct {
		act    demoAct
		damage func(*demoRow)
		says   string
	}{
		"nothing wrong":      {gated, func(*demoRow) {}, ""},
		"alone":              {demoAct{}, func(r *demoRow) { r.Bookings, r.Oversold, r.Duplicates = 40, 20, 20 }, ""},
		"oversold":           {gated, func(r *demoRow) { r.Bookings, r.Oversold = 21, 1 }, "without constraints, with gate: 21 bookings of 20 seats, 1 oversold"},
		"seats left":         {gated, func(r *demoRow) { r.Bookings = 19 }, "without constraints, with gate: 19 bookings of 20 seats"},
		"a student twice":    {lost, func(r *demoRow) { r.Duplicates = 2 }, "with constraints, with gate, store lost: 2 duplicate bookings"},
		"no outage happened": {lost, func(r *demoRow) { r.Outage.Decisions[storeAway] = nil }, "with constraints, with gate, store lost: no request met the lost store"},
	} {
		t.Run(name, func(t *testing.T) {
			d, stdout, stderr := newSmallDemo()
			status := d.run(t.Context(), func(_ context.Context, act demoAct, _ func(storm.Progress)) (*demoRow, error) {
				row := right(act)
				if act == test.act {
					test.damage(row)
				}
				return row, nil
			})
			wantStatus, wantMark := 0, "ok"
			if test.says != "" {
				wantStatus, wantMark = 1, "WRONG"
				line := "slotgate demo: the gate did not hold: " + test.says + "\n"
				if !strings.HasSuffix(stderr.String(), "\n"+line) {
					t.Errorf("stderr is %q, want its last line to be %q", stderr, line)
				}
			}
			if status != wantStatus {
				t.Errorf("exit status %d, want %d", status, wantStatus)
			}
			for i, row := range readTable(t, stdout.String()) {
				if act := demoActs[i]; act == test.act && act.gate && row.mark != wantMark {
					t.Errorf("row is marked %q, want %q", row.mark, wantMark)
				}
			}
		})
	}
}

func TestDemoEndsWhenTold(t *testing.T) {
	leavesNothing(t)
	for _, during := range demoActs {
		t.Run(during.String(), func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			d, stdout, stderr := newSmallDemo()
			d.size.rate, d.size.outageRate = 1, 1 // would take minutes
			status := d.run(ctx, func(ctx context.Context, act demoAct, _ func(storm.Progress)) (*demoRow, error) {
				if act != during {
					return &demoRow{act: act}, nil
				}
				return d.play(ctx, act, func(p storm.Progress) {
					if p.Done > 0 {
						cancel()
					}
				})
			})
			if status != 1 || !strings.HasSuffix(stderr.String(), "("+during.String()+"): stopped before its end\n") {
				t.Errorf("exit status %d, stderr %q", status, stderr)
			}
			if strings.Contains(stdout.String(), "bookings") {
				t.Errorf("a table of half a demo:\n%s", stdout)
			}
		})
	}
}

func TestDemoSaysWhatItCannotDo(t *testing.T) {
	d, _, stderr := newSmallDemo()
	d.jsonFile = filepath.Join(t.TempDir(), "missing", "demo.json")
	if status := d.run(t.Context(), d.play); status != 1 || !strings.Contains(stderr.String(), d.jsonFile) {
		t.Errorf("exit status %d, stderr %q", status, stderr)
	}
	var out, errs bytes.Buffer
	if status := demoCommand([]string{"now"}, nil, &out, &errs); status != 1 || !strings.Contains(errs.String(), `unexpected argument "now"`) {
		t.Errorf("exit status %d, stderr %q", status, &errs)
	}
}

func TestDemoServesUntilTold(t *testing.T) {
	leavesNothing(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d, _, stderr := newSmallDemo()
	reader, writer := io.Pipe()
	d.stdout = writer
	ended := make(chan error, 1)
	go func() {
		err := d.serve(ctx)
		_ = writer.Close()
		ended <- err
	}()
	text := make([]byte, 4096)
	n, err := reader.Read(text) // one write
	if err != nil {
		t.Fatal(err, <-ended, stderr)
	}
	urls := map[string]string{}
	for _, match := range regexp.MustCompile(`(?m)^  (gate|backend|admin) +(http://\S+)$`).FindAllStringSubmatch(string(text[:n]), -1) {
		urls[match[1]] = match[2]
	}
	for i, want := range []string{"admitted", "replayed"} {
		request, err := http.NewRequest("POST", urls["gate"]+"/api/lessons/1/bookings", strings.NewReader(`{"student_id":"ann"}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", "press-0000000001")
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got := response.Header.Get("Gate-Decision"); got != want || response.StatusCode != 201 {
			t.Errorf("request %d: %d %s, want 201 %s", i+1, response.StatusCode, got, want)
		}
	}
	if _, _, body := call(t, "GET", urls["backend"]+"/api/lessons/1"); !strings.Contains(body, `"booked":1`) {
		t.Errorf("the API says %s", body)
	}
	if _, _, body := call(t, "GET", urls["admin"]+"/v1/slots/lessons/1"); !strings.Contains(body, `"confirmed":1`) {
		t.Errorf("the gate says %s", body)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The file works without the demo, in front of the sample API on its usual port.
func TestDemoConfigurationStandsAlone(t *testing.T) {
	config, faults := rules.Load("demo.yaml", demoYAML, rules.LoadOptions{Env: func(string) (string, bool) { return "", false }})
	if config == nil {
		t.Fatal(faults)
	}
	if config.Upstream.URL != "http://127.0.0.1:9000" || config.Pools["lessons"].Capacity.Units != int64(fullDemo.seats) {
		t.Errorf("upstream %s, capacity %+v", config.Upstream.URL, config.Pools["lessons"].Capacity)
	}
}
