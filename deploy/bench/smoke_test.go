package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/slotgate/slotgate/deploy/bench/compare"
	"github.com/slotgate/slotgate/deploy/bench/relief"
)

// One tiny round of what is installed: the rig starts it, loads it, gets the answers
// that each scenario is about, and writes its three files. No time is asserted.
func TestCompareRuns(t *testing.T) {
	out := t.TempDir()
	err := run(t.Context(), []string{"compare", "-out", out, "-scenarios", "unmatched,admit,sold-out",
		"-rounds", "1", "-load", "1s", "-warm", "0s", "-connections", "4", "-foreign", "100"}, t.Output())
	if err != nil {
		t.Fatal(err)
	}

	var results compare.Results
	text, err := os.ReadFile(filepath.Join(out, "compare.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &results); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct{ scenario, contender string }{
		{"unmatched", "slotgate"}, {"unmatched", "bare fasthttp"}, {"admit", "slotgate"}, {"sold-out", "slotgate"},
	} {
		cell := results.Cell(want.scenario, want.contender, 4)
		if cell == nil {
			t.Errorf("no measurement of %s in %s", want.contender, want.scenario)
			continue
		}
		sample := cell.Samples[0]
		if sample.PerSecond <= 0 || sample.ProxyMicros <= 0 || sample.RSS <= 0 {
			t.Errorf("%s in %s took nothing: %+v", want.contender, want.scenario, sample)
		}
		if asked := want.scenario != "unmatched"; asked != (sample.ScriptCalls > 0) || asked != (sample.RedisMicros > 0) {
			t.Errorf("%s in %s asks Redis %.2f times a request", want.contender, want.scenario, sample.ScriptCalls)
		}
	}

	plot, err := os.Open(filepath.Join(out, "compare.svg"))
	if err != nil {
		t.Fatal(err)
	}
	defer plot.Close()
	for decoder := xml.NewDecoder(plot); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("compare.svg: %v", err)
		}
	}
}

func TestGrowthRuns(t *testing.T) {
	out := t.TempDir()
	if err := run(t.Context(), []string{"growth", "-out", out, "-most", "1000", "-calls", "50"}, t.Output()); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(out, "growth.md")); err != nil || len(text) == 0 {
		t.Errorf("growth.md: %d bytes, %v", len(text), err)
	}
}

// A small opening behind each front: without a limit nobody but the buyers of 50 seats
// gets one, and the database is asked by no more than them behind the gate.
func TestReliefRuns(t *testing.T) {
	out := t.TempDir()
	if err := run(t.Context(), []string{"relief", "-out", out, "-styles", "rowlock", "-clients", "120", "-rate", "20",
		"-rounds", "1", "-calm", "100ms", "-whole", "1s"}, t.Output()); err != nil {
		t.Fatal(err)
	}
	var rows []relief.Row
	text, err := os.ReadFile(filepath.Join(out, "relief.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 3 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		want := int64(120)
		if row.Front == "slotgate" {
			want = 50
		}
		if row.Booked != 50 || row.Arrived != want || row.Transactions < want {
			t.Errorf("behind %s: %+v, want %d requests at the API", row.Front, row.Figures, want)
		}
	}
}

func TestUnknownCommandIsRefused(t *testing.T) {
	for _, args := range [][]string{nil, {"race"}, {"compare", "-scenarios", "race"}, {"compare", "-connections", "many"}} {
		if err := run(t.Context(), args, t.Output()); err == nil {
			t.Errorf("bench %v: no error", args)
		}
	}
}
