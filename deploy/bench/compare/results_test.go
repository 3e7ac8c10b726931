package compare

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/slotgate/slotgate/deploy/bench/conf"
	"github.com/slotgate/slotgate/deploy/bench/rig"
	"github.com/slotgate/slotgate/rules"
)

// measured is a run in which the figures of each contender are as given: requests a
// second, p50 and p99 in µs, Redis µs, MiB.
func measured(figures map[string][5]float64) *Results {
	r := newResults(Options{Scenarios: Scenarios, Rounds: 3})
	for _, cell := range r.Cells {
		f, ok := figures[cell.Contender]
		if !ok {
			continue
		}
		for round := 1; round <= 3; round++ {
			cell.Samples = append(cell.Samples, Sample{
				Round: round, PerSecond: f[0] * float64(round) / 2, Seen: rig.Seen{P50: int64(f[1]), P99: int64(f[2])},
				RedisMicros: f[3], RSS: int64(f[4]) << 20,
			})
		}
	}
	return r
}

func TestMedianAndSpread(t *testing.T) {
	c := &Cell{}
	if c.Median(perSecond) != 0 || c.Spread(perSecond) != 0 {
		t.Error("figures of nothing")
	}
	for _, v := range []float64{30, 10, 20} {
		c.Samples = append(c.Samples, Sample{PerSecond: v})
	}
	if c.Median(perSecond) != 20 || c.Spread(perSecond) != 1 {
		t.Errorf("median %v, spread %v", c.Median(perSecond), c.Spread(perSecond))
	}
	c.Samples = append(c.Samples, Sample{PerSecond: 40})
	if c.Median(perSecond) != 25 {
		t.Errorf("median of four is %v", c.Median(perSecond))
	}
}

func TestTargets(t *testing.T) {
	r := measured(map[string][5]float64{
		"slotgate": {1000, 6000, 9000, 10, 40}, "bare fasthttp": {1040, 5100, 6000, 0, 10}, "direct": {0, 5000, 5500, 0, 0},
	})
	want := map[string]struct {
		value float64
		met   bool
	}{
		"unmatched traffic, requests a second ÷ bare fasthttp": {1000. / 1040, true},
		"sold out within reject_cache, store calls a request":  {0, true},
		"unsaturated, p50 above direct in ms":                  {1, true},
		"peak RSS in MiB, most of all scenarios":               {40, true},
	}
	for _, got := range r.Targets() {
		w, ok := want[got.Text]
		if !ok {
			t.Errorf("a target without its contender: %+v", got)
			continue
		}
		if diff := got.Value - w.value; diff < -1e-9 || diff > 1e-9 || got.Met != w.met {
			t.Errorf("%s, %d connections: %v, met %t; want %v, %t", got.Text, got.Connections, got.Value, got.Met, w.value, w.met)
		}
	}
	slow := measured(map[string][5]float64{"slotgate": {900, 0, 0, 0, 60}, "bare fasthttp": {1000, 0, 0, 0, 0}})
	missed := 0
	for _, got := range slow.Targets() {
		if !got.Met {
			missed++
		}
	}
	if missed != 4 { // both promises, with 64 and with 256 connections
		t.Errorf("%d targets missed, want 4: %+v", missed, slow.Targets())
	}
}

func TestTurns(t *testing.T) {
	r := newResults(Options{Scenarios: []Scenario{
		{Name: "a", Connections: []int{1}, Contenders: []Contender{direct, bare, gate}},
		{Name: "b", Connections: []int{1}, Contenders: []Contender{direct}},
	}})
	first := map[string]bool{}
	for round := 1; round <= 3; round++ {
		order := inTurn(r.Cells, round)
		if len(order) != 4 || order[3].Scenario != "b" {
			t.Fatalf("round %d: %d measurements", round, len(order))
		}
		first[order[0].Contender] = true
	}
	if len(first) != 3 {
		t.Errorf("only %v ever come first", first)
	}
}

func TestReports(t *testing.T) {
	r := measured(map[string][5]float64{
		"slotgate": {1000, 6000, 9000, 10, 40}, "bare fasthttp": {1040, 5100, 6000, 0, 10}, "direct": {0, 5000, 5500, 0, 0},
	})
	var table, plot bytes.Buffer
	if err := r.WriteMarkdown(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| slotgate | 64 | 1000 | 100 % |", "| bare fasthttp | 256 | 1040 |", "**Traffic that no rule is for**"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, &table)
		}
	}
	if err := r.WriteSVG(&plot); err != nil {
		t.Fatal(err)
	}
	text := plot.String()
	bars := 0
	for d := xml.NewDecoder(&plot); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "rect" {
			bars++
		}
	}
	// Two of each: slotgate in five scenarios, bare in two, direct in one.
	if bars != 16 {
		t.Errorf("%d bars, want 16", bars)
	}
}

func TestGateConfigurationLoads(t *testing.T) {
	for _, redis := range []string{"", "127.0.0.1:6379"} {
		file, err := rig.Write(t.TempDir(), "gate.yaml", conf.Gate, conf.Settings{
			Listen: "127.0.0.1:1", Admin: "127.0.0.1:2", Backend: "127.0.0.1:3", Redis: redis, Capacity: 50, StoreTimeout: storeTimeout,
		})
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, faults := rules.Load(file, text, rules.LoadOptions{}); len(faults.Errors()) > 0 {
			t.Errorf("%s", faults)
		}
	}
}
