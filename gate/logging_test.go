package gate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

// logText is a log in JSON.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// of are the lines with a message.
func (l *logText) of(t *testing.T, message string) (list []map[string]any) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		var read map[string]any
		if err := json.Unmarshal([]byte(line), &read); err != nil {
			t.Fatal(err)
		}
		if read["msg"] == message {
			list = append(list, read)
		}
	}
	return list
}

// logTo has a gate that has served nothing yet write its decisions to l.
func (f *fixture) logTo(l *logText, level slog.Level) {
	f.lines = newDecisionLog(slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: level})))
}

func TestEachDecisionIsALineAtDebug(t *testing.T) {
	f := newFixture(t, "capacity: 1", keyed)
	var log logText
	f.logTo(&log, slog.LevelDebug)
	first := call{fields: []string{"Idempotency-Key: press-one"}}
	f.want(f.book(first), decision.DecisionAdmitted, 201)
	f.want(f.book(first), decision.DecisionDuplicate, 409)
	for i := range 20 {
		f.want(f.book(call{student: fmt.Sprint("s", i)}), decision.DecisionSoldOut, 409)
	}
	f.want(f.call("POST", "/lessons/1%2F2/bookings", "", call{}), decision.DecisionAmbiguous, 400)
	all := log.of(t, "decision")
	if len(all) != 23 {
		t.Fatalf("%d lines for 23 decisions", len(all))
	}
	admitted := all[0]
	for name, want := range map[string]any{
		"level": "DEBUG", "rule": "book", "decision": "admitted", "mode": "normal", "status": 201.0, "outcome": "booked", "request_id": "test",
	} {
		if admitted[name] != want {
			t.Errorf("%s is %v, want %v", name, admitted[name], want)
		}
	}
	if took, at := admitted["ms"].(float64), admitted["upstream_ms"].(float64); took < at || took > 60_000 {
		t.Errorf("took %v ms, %v of them at the backend", took, at)
	}
	if _, has := all[2]["outcome"]; has || all[2]["decision"] != "sold-out" {
		t.Errorf("an outcome of what was not forwarded: %v", all[2])
	}
	if strings.Contains(log.text.String(), "press-one") || strings.Contains(log.text.String(), "ann") {
		t.Errorf("the log shows a key or a subject:\n%s", log.text.String())
	}
}

func TestDecisionsAreSampledAtInfo(t *testing.T) {
	f := newFixture(t, "capacity: 1", "")
	var log logText
	f.logTo(&log, slog.LevelInfo)
	f.book(call{})
	const refused = 200
	for i := range refused {
		f.want(f.book(call{student: fmt.Sprint("s", i)}), decision.DecisionSoldOut, 409)
	}
	f.lines.limiter.Close() // tells the rest
	written := map[string]int{}
	for _, line := range log.of(t, "decision") {
		written[line["decision"].(string)]++
	}
	left := 0
	for _, line := range log.of(t, "decisions left out of the log") {
		if line["decision"] != "sold-out" || line["level"] != "INFO" {
			t.Errorf("%v", line)
		}
		left += int(line["left_out"].(float64))
	}
	if written["admitted"] != 1 || written["sold-out"]+left != refused || left == 0 {
		t.Errorf("%v written, %d left out", written, left)
	}
}

func TestNoDecisionsAboveInfo(t *testing.T) {
	f := newFixture(t, "capacity: 1", "")
	var log logText
	f.logTo(&log, slog.LevelWarn)
	f.book(call{})
	if log.text.Len() > 0 {
		t.Errorf("%s", log.text.String())
	}
}

// A request id from which a rule reads its key is no log's.
func TestARequestIDThatIsAKeyIsNotLogged(t *testing.T) {
	f := newFixture(t, "capacity: 1", "idempotency: { key: [header:X_Request-ID] }")
	var log logText
	f.logTo(&log, slog.LevelDebug)
	f.book(call{})
	all := log.of(t, "decision")
	if _, has := all[0]["request_id"]; has || len(all) != 1 {
		t.Errorf("%v", all)
	}
}

// What is not written, and not traced, is not paid for.
func TestSilenceAllocatesNothing(t *testing.T) {
	f := newFixture(t, "capacity: 1", "")
	req := newRequest("POST", "/lessons/1/bookings", "", call{})
	j := &journey{gate: f.Gate, book: f.Gate.book.Load(), req: req, match: rules.Match{Rule: f.Gate.book.Load().Set.Rules[0]}}
	reply := j.newReply(decision.DecisionSoldOut)
	note := func(level slog.Level) float64 {
		var log logText
		f.logTo(&log, level)
		defer f.lines.limiter.Close()
		for range sampledLines + 1 {
			f.lines.note(j, reply, time.Second)
		}
		return testing.AllocsPerRun(100, func() { f.lines.note(j, reply, time.Second) })
	}
	if n := note(slog.LevelWarn); n != 0 {
		t.Errorf("%v allocations for a line that nobody wants", n)
	}
	if n := note(slog.LevelInfo); n > 0.5 { // a second may begin, and with it lines
		t.Errorf("%v allocations for a line that is left out", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		j.beginTrace()
		step := j.step("upstream")
		if j.outgoing(step) != j.req {
			t.Error("the request was copied")
		}
		step.End(true)
	}); n != 0 {
		t.Errorf("%v allocations for spans without a tracer", n)
	}
}
