package compare

import (
	"fmt"
	"math"
	"slices"
)

// Target is a promise about the gate, and what a run says to it.
type Target struct {
	Text        string  `json:"text"`
	Connections int     `json:"connections"`
	Value       float64 `json:"value"`
	Bound       float64 `json:"bound"`
	AtMost      bool    `json:"at_most"` // the value may be up to the bound; else from it
	Met         bool    `json:"met"`
}

// Targets holds the run against the promises. Those whose contenders were not run
// are left out.
func (r *Results) Targets() []Target {
	var targets []Target
	add := func(connections int, text string, value, bound float64, atMost bool) {
		met := value >= bound
		if atMost {
			met = value <= bound
		}
		targets = append(targets, Target{text, connections, value, bound, atMost, met})
	}
	for _, n := range r.connections() {
		ratio := func(text, scenario string, figure func(Sample) float64, other, otherScenario string, bound float64, atMost bool) {
			ours, theirs := r.Cell(scenario, gate.Name, n), r.Cell(otherScenario, other, n)
			if ours != nil && theirs != nil {
				add(n, text, ours.Median(figure)/theirs.Median(figure), bound, atMost)
			}
		}
		ratio("unmatched traffic, requests a second ÷ bare fasthttp", "unmatched", perSecond, bare.Name, "unmatched", 0.95, false)
		ratio("admit with the full journey, requests a second ÷ nginx+Lua+Redis", "admit", perSecond, nginxTokens.Name, "admit", 1.1, false)
		ratio("admit with the full journey, Redis CPU ÷ that of nginx+Lua's one script", "admit", redisMicros, nginxTokens.Name, "admit", 1, true)
		ratio("sold out by the store, requests a second ÷ nginx+Lua+Redis", "sold-out", perSecond, nginxTokens.Name, "sold-out", 1.2, false)
		ratio("sold out within reject_cache, requests a second ÷ nginx+Lua+Redis", "sold-out-cached", perSecond, nginxTokens.Name, "sold-out", 2, false)
		if cached := r.Cell("sold-out-cached", gate.Name, n); cached != nil {
			// Calls that nobody's request caused, a few a minute, are none of its.
			calls := math.Round(1000*cached.Median(scriptCalls)) / 1000
			add(n, "sold out within reject_cache, store calls a request", calls, 0, true)
		}
		if ours, theirs := r.Cell("latency", gate.Name, n), r.Cell("latency", direct.Name, n); ours != nil && theirs != nil {
			add(n, "unsaturated, p50 above direct in ms", ours.Median(p50)-theirs.Median(p50), 1.2, true)
		}
		ratio("unsaturated, p99 ÷ that of nginx+Lua+Redis", "latency", p99, nginxTokens.Name, "latency", 1, true)
		if most := r.mostMemory(n); most > 0 {
			add(n, "peak RSS in MiB, most of all scenarios", most, 48, true)
		}
	}
	return targets
}

// connections are those that were measured.
func (r *Results) connections() []int {
	var all []int
	for _, cell := range r.Cells {
		if !slices.Contains(all, cell.Connections) {
			all = append(all, cell.Connections)
		}
	}
	return all
}

// mostMemory is the gate's largest median of all scenarios, in MiB.
func (r *Results) mostMemory(connections int) float64 {
	most := 0.0
	for _, cell := range r.Cells {
		if cell.Contender == gate.Name && cell.Connections == connections {
			most = max(most, cell.Median(rssMiB))
		}
	}
	return most
}

func (t Target) wanted() string {
	if t.AtMost {
		return fmt.Sprintf("≤ %g", t.Bound)
	}
	return fmt.Sprintf("≥ %g", t.Bound)
}
