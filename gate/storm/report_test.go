package storm

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// sample is a report with everything in it.
func sample() *Report {
	r := &Report{
		Method: "POST", Targets: []string{"http://127.0.0.1:8081/book", "http://127.0.0.1:8082/book"},
		Clients: 4, Requests: 10, Repeats: 3, Subjects: 5, Seed: 42, Success: "2xx", Capacity: 1,
		Timeout: 10 * time.Second, MaxTime: 5 * time.Minute, Started: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC),
		Elapsed: 1234567 * time.Microsecond, Connections: 8, Sent: 13, Answered: 11,
		Statuses:          map[int]int{201: 4, 409: 6, 503: 1},
		Decisions:         map[string]int{"admitted": 3, "replayed": 1, "sold-out": 6, "busy": 1},
		Modes:             map[string]int{"normal": 11},
		Errors:            map[ErrorKind]int{Timeout: 1, Closed: 1},
		SuccessfulAnswers: 4,
		Successes: []Booking{
			{N: 7, Subject: 1, Slot: 3, Status: 201}, {N: 2, Subject: 2, Slot: 4, Target: 1, Status: 201}, {N: 5, Subject: 1, Slot: 3, Repeat: true, Status: 201},
		},
		Twins: TwinCounts{Pairs: 3, Same: 1, Differed: 1, NotCompared: 1},
	}
	statuses := []int{201, 201, 201, 201, 409, 409, 409, 409, 409, 409, 503}
	decisions := []string{"admitted", "admitted", "admitted", "replayed", "sold-out", "sold-out", "sold-out", "sold-out", "sold-out", "sold-out", "busy"}
	for i := range 11 {
		latency := time.Duration(i*i) * 400 * time.Microsecond
		r.Latency.Record(latency)
		now := r.Timeline.at(time.Duration(i) * 100 * time.Millisecond)
		now.Statuses[statuses[i]]++
		now.Decisions[decisions[i]]++
		now.Latency.Record(latency)
	}
	r.Timeline.at(1200 * time.Millisecond).Errors = 2
	r.Timeline.close(r.Elapsed)
	return r
}

const sampleText = `storm       POST http://127.0.0.1:8081/book
and         POST http://127.0.0.1:8082/book
planned     10 requests, 3 of them sent twice, 5 subjects, 4 clients, seed 42
sent        13 in 1.23s (11/s) over 8 connections, 11 answered

status
  201                       4  ###########################
  409                       6  ########################################
  503                       1  #######

gate-decision
  admitted                  3  ####################
  busy                      1  #######
  replayed                  1  #######
  sold-out                  6  ########################################

gate-mode
  normal                   11  ########################################

transport errors
  closed                    1  ########################################
  timeout                   1  ########################################

latency     p50 10.1ms   p90 32.5ms   p99 40ms   max 40ms
             < 100µs        1  ##############
             < 200µs        0
             < 500µs        1  ##############
               < 1ms        0
               < 2ms        1  ##############
               < 5ms        1  ##############
              < 10ms        1  ##############
              < 20ms        3  ########################################
              < 50ms        3  ########################################

successes   3 (in 4 successful answers: 1 repeat the other twin's)
slots       2 had successes, from 1 to 2 each
duplicates  1 successes of a subject that already had one in that slot, first subject 1, request 5
twins       3 pairs: 1 got the same answer, 1 differed, 1 not compared (5xx or no answer)

expect 3 successes: held, 3
expect no 5xx: broken, 1 (2 transport errors are not counted)
expect equal twins: broken, 1 (of 3 pairs, 1 not compared)
`

func TestReportText(t *testing.T) {
	r := sample()
	var got strings.Builder
	if err := r.WriteText(&got, []Verdict{r.ExpectSuccesses(3), r.ExpectNo5xx(), r.ExpectEqualTwins()}); err != nil {
		t.Fatal(err)
	}
	if got.String() != sampleText {
		t.Errorf("got\n%s\nwant\n%s", got.String(), sampleText)
	}
}

func TestReportTextOfAStormWithoutAnswers(t *testing.T) {
	r := &Report{Method: "POST", Targets: []string{"http://h/"}, Requests: 4, Clients: 1, Subjects: 4, StoppedBy: Interrupted}
	var got strings.Builder
	if err := r.WriteText(&got, []Verdict{r.ExpectSuccesses(1)}); err != nil {
		t.Fatal(err)
	}
	want := `storm       POST http://h/
planned     4 requests, 0 of them sent twice, 4 subjects, 1 clients, seed 0
sent        0 in 0s (0/s) over 0 connections, 0 answered
stopped     early (interrupted): 0 of 4 sent

successes   0
duplicates  0 successes of a subject that already had one in that slot

expect 1 successes: undecided, 0
`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestReportPassesWriteErrorsOn(t *testing.T) {
	if err := sample().WriteText(fullDisk{}, nil); err == nil {
		t.Error("text: no error")
	}
	if err := sample().WriteJSON(fullDisk{}, nil); err == nil {
		t.Error("JSON: no error")
	}
}

func TestReportJSON(t *testing.T) {
	r := sample()
	var text strings.Builder
	if err := r.WriteJSON(&text, []Verdict{r.ExpectSuccesses(4)}); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(text.String()), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"method": "POST", "urls": []any{"http://127.0.0.1:8081/book", "http://127.0.0.1:8082/book"},
		"clients": 4.0, "requests": 10.0, "repeats": 3.0, "subjects": 5.0, "seed": 42.0, "success": "2xx", "capacity": 1.0,
		"started":    "2026-11-30T09:00:00Z",
		"elapsed_ms": 1234.567, "connections": 8.0, "sent": 13.0, "answered": 11.0,
		"statuses":         map[string]any{"201": 4.0, "409": 6.0, "503": 1.0},
		"gate_decisions":   map[string]any{"admitted": 3.0, "replayed": 1.0, "sold-out": 6.0, "busy": 1.0},
		"gate_modes":       map[string]any{"normal": 11.0},
		"transport_errors": map[string]any{"timeout": 1.0, "closed": 1.0},
		"successes": []any{
			map[string]any{"n": 7.0, "subject": 1.0, "slot": 3.0, "url": 0.0, "status": 201.0},
			map[string]any{"n": 2.0, "subject": 2.0, "slot": 4.0, "url": 1.0, "status": 201.0},
			map[string]any{"n": 5.0, "subject": 1.0, "slot": 3.0, "url": 0.0, "status": 201.0, "repeat": true},
		},
		"successful_answers": 4.0, "duplicates": 1.0,
		"twins":      map[string]any{"pairs": 3.0, "same": 1.0, "differed": 1.0, "not_compared": 1.0},
		"assertions": []any{map[string]any{"assertion": "expect 4 successes", "state": "broken", "found": 3.0}},
	}
	latency, _ := got["latency"].(map[string]any)
	timeline, _ := got["timeline"].([]any)
	delete(got, "latency")
	delete(got, "timeline")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
	if rows, _ := latency["rows"].([]any); latency["count"] != 11.0 || latency["max_ms"] != 40.0 || len(rows) != 9 ||
		!reflect.DeepEqual(rows[0], map[string]any{"below_ms": 0.1, "count": 1.0}) {
		t.Errorf("latency %v", latency)
	}
	if len(timeline) != 49 {
		t.Errorf("timeline %v", timeline)
	}
}

func TestVerdicts(t *testing.T) {
	report := func(successes, status500, differed int, stopped StopReason) *Report {
		return &Report{
			Successes: make([]Booking, successes), Statuses: map[int]int{200: 5, 500: status500, 600: 1},
			Twins: TwinCounts{Differed: differed}, StoppedBy: stopped,
		}
	}
	for _, test := range []struct {
		verdict Verdict
		want    State
	}{
		{report(3, 0, 0, "").ExpectSuccesses(3), Held},
		{report(2, 0, 0, "").ExpectSuccesses(3), Broken},
		{report(4, 0, 0, "").ExpectSuccesses(3), Broken},
		{report(3, 0, 0, Interrupted).ExpectSuccesses(3), Undecided},
		{report(2, 0, 0, OutOfTime).ExpectSuccesses(3), Undecided},
		{report(4, 0, 0, OutOfTime).ExpectSuccesses(3), Broken},
		{report(0, 0, 0, "").ExpectNo5xx(), Held},
		{report(0, 1, 0, "").ExpectNo5xx(), Broken},
		{report(0, 0, 0, Interrupted).ExpectNo5xx(), Undecided},
		{report(0, 1, 0, Interrupted).ExpectNo5xx(), Broken},
		{report(0, 0, 0, "").ExpectEqualTwins(), Held},
		{report(0, 0, 1, "").ExpectEqualTwins(), Broken},
		{withCapacity(report(3, 0, 0, ""), 3).ExpectCapacity(), Held},
		{withCapacity(report(3, 0, 0, ""), 2).ExpectCapacity(), Broken},
		{withCapacity(report(3, 0, 0, Interrupted), 3).ExpectCapacity(), Undecided},
		{withCapacity(report(3, 0, 0, Interrupted), 2).ExpectCapacity(), Broken},
	} {
		if test.verdict.State != test.want {
			t.Errorf("%v, want %s", test.verdict, test.want)
		}
	}
	if got := report(103, 0, 0, "").ExpectSuccesses(100).String(); got != "expect 100 successes: broken, 103" {
		t.Errorf("verdict %q", got)
	}
}

func withCapacity(r *Report, seats int) *Report {
	r.Capacity = seats
	return r
}

func TestSales(t *testing.T) {
	r := &Report{Successes: []Booking{
		{Slot: 7, Subject: 1}, {Slot: 7, Subject: 1}, {Slot: 7, Subject: 2}, {Slot: -1, Subject: 1}, {Slot: 7, Subject: 1}, {Slot: 3, Subject: 1},
	}}
	if want := []Sale{{-1, 1, 0, 0}, {3, 1, 0, 0}, {7, 4, 0, 2}}; !reflect.DeepEqual(r.Sales(), want) {
		t.Errorf("sales %v, want %v", r.Sales(), want)
	}
	r.Capacity = 2
	if want := []Sale{{-1, 1, 0, 0}, {3, 1, 0, 0}, {7, 4, 2, 2}}; !reflect.DeepEqual(r.Sales(), want) {
		t.Errorf("sales with 2 seats %v, want %v", r.Sales(), want)
	}
	if got := r.ExpectCapacity().String(); got != "expect at most 2 successes in a slot: broken, 2 (in 1 slot)" {
		t.Errorf("verdict %q", got)
	}
}

// What a server sends is counted under at most maxNames names and never
// reaches a terminal raw.
func TestGateFieldsAreBounded(t *testing.T) {
	counts := map[string]int{}
	if name := countName(counts, http.Header{}, "Gate-Mode"); len(counts) != 0 || name != "" {
		t.Errorf("a missing field is counted: %v", counts)
	}
	countName(counts, http.Header{"Gate-Mode": {"\x1b[2J"}}, "Gate-Mode")
	countName(counts, http.Header{"Gate-Mode": {""}}, "Gate-Mode")
	countName(counts, http.Header{"Gate-Mode": {strings.Repeat("x", 1000)}}, "Gate-Mode")
	want := map[string]int{`"\x1b[2J"`: 1, `""`: 1, strings.Repeat("x", maxName): 1}
	if !reflect.DeepEqual(counts, want) {
		t.Errorf("counts %v", counts)
	}
	for i := range 1000 {
		countName(counts, http.Header{"Gate-Mode": {strconv.Itoa(i)}}, "Gate-Mode")
	}
	if name := countName(counts, http.Header{"Gate-Mode": {"late"}}, "Gate-Mode"); name != otherNames {
		t.Errorf("a name too many is counted as %q", name)
	}
	counts[otherNames]--
	if len(counts) != maxNames+1 || counts[otherNames] != 1000-(maxNames-3) {
		t.Errorf("%d names, %d others", len(counts), counts[otherNames])
	}
}

func TestProgressLines(t *testing.T) {
	var lines strings.Builder
	show := ShowProgress(&lines)
	for ms := 200; ms <= 6400; ms += 200 {
		show(Progress{Done: ms / 10, Total: 640, Successes: 7, Status5xx: 1, Errors: 2, Elapsed: time.Duration(ms) * time.Millisecond, Final: ms == 6400})
	}
	want := `300/640  46%  100/s  successes 7  5xx 1  errors 2
600/640  93%  100/s  successes 7  5xx 1  errors 2
640/640 100%  100/s  successes 7  5xx 1  errors 2
`
	if lines.String() != want {
		t.Errorf("got\n%s\nwant\n%s", lines.String(), want)
	}
}

func TestProgressBar(t *testing.T) {
	var drawn strings.Builder
	show := drawBar(&drawn)
	show(Progress{Done: 320, Total: 640, Elapsed: time.Second})
	show(Progress{Done: 640, Total: 640, Elapsed: 2 * time.Second, Final: true})
	want := "\r\x1b[K[###############...............] 320/640  50%  320/s  successes 0  5xx 0  errors 0" +
		"\r\x1b[K[##############################] 640/640 100%  320/s  successes 0  5xx 0  errors 0\n"
	if drawn.String() != want {
		t.Errorf("got\n%q\nwant\n%q", drawn.String(), want)
	}
}
