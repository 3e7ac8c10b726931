package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/slotgate/slotgate/deploy/bench/compare"
	"github.com/slotgate/slotgate/deploy/bench/growth"
	"github.com/slotgate/slotgate/deploy/bench/relief"
	"github.com/slotgate/slotgate/deploy/bench/rig"
)

// One tiny run of each command with what is installed. What was counted is asserted,
// no time is.
func TestCommandsRun(t *testing.T) {
	r, err := rig.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	for _, c := range []struct {
		name  string
		args  []string
		check func(t *testing.T, file []byte)
	}{
		{"compare", []string{"-scenarios", "unmatched,sold-out", "-rounds", "1", "-load", "1s", "-warm", "0s",
			"-connections", "4", "-foreign", "100"}, checkCompare},
		{"growth", []string{"-most", "10", "-calls", "20"}, checkGrowth},
		{"relief", []string{"-styles", "rowlock", "-clients", "120", "-rate", "20", "-rounds", "1",
			"-calm", "100ms", "-whole", "1s", "-store-timeout", "4s"}, checkRelief},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := t.TempDir()
			measure, err := parse(append([]string{c.name, "-out", out}, c.args...), t.Output())
			if err != nil {
				t.Fatal(err)
			}
			if err := measure(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			file, err := os.ReadFile(filepath.Join(out, c.name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			c.check(t, file)
			if table, err := os.ReadFile(filepath.Join(out, c.name+".md")); err != nil || len(table) == 0 {
				t.Errorf("%s.md: %d bytes, %v", c.name, len(table), err)
			}
		})
	}
}

func checkCompare(t *testing.T, file []byte) {
	var results compare.Results
	if err := json.Unmarshal(file, &results); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		scenario, contender string
		asks                bool // Redis
	}{
		{"unmatched", "slotgate", false}, {"unmatched", "bare fasthttp", false}, {"sold-out", "slotgate", true},
	} {
		cell := results.Cell(want.scenario, want.contender, 4)
		if cell == nil {
			t.Errorf("no measurement of %s in %s", want.contender, want.scenario)
			continue
		}
		sample := cell.Samples[0]
		if sample.Seen.Requests == 0 || sample.RSS == 0 || sample.ScriptCalls > 0 != want.asks {
			t.Errorf("%s in %s: %+v", want.contender, want.scenario, sample)
		}
	}
}

func checkGrowth(t *testing.T, file []byte) {
	var rows []growth.Row
	if err := json.Unmarshal(file, &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 3 { // 1 and 10 slots, 10 units
		t.Errorf("%d rows", len(rows))
	}
	for _, row := range rows {
		// A new connection is asked a question by a script too.
		if row.Decide.Calls < 1 || row.Settle.Calls < 1 || row.Plain.Calls != 1 {
			t.Errorf("%d %s: %+v; want 1 call of each a round", row.Size, row.Of, row)
		}
	}
}

// A small opening behind each front: 50 of 120 get a seat, and behind the gate the API
// does not hear of all the others (of none, unless the store is away for a moment).
func checkRelief(t *testing.T, file []byte) {
	var rows []relief.Row
	if err := json.Unmarshal(file, &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 3 {
		t.Errorf("%d rows", len(rows))
	}
	for _, row := range rows {
		spared := row.Arrived < 120
		if row.Booked != 50 || row.Transactions < row.Arrived || spared != (row.Front == "slotgate") {
			t.Errorf("behind %s: %+v", row.Front, row.Figures)
		}
	}
}

func TestWrongCommandLinesAreRefused(t *testing.T) {
	for _, args := range [][]string{
		nil, {"race"}, {"compare", "-scenarios", "race"}, {"compare", "-connections", "many"}, {"compare", "-contenders", "slotgate,nobody"}, {"relief", "-styles", "bold"},
	} {
		if _, err := parse(args, t.Output()); err == nil {
			t.Errorf("bench %q: no error", args)
		}
	}
}
