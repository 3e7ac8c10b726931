package compare

import (
	"slices"
	"time"
)

// Results are the measurements of one run.
type Results struct {
	Rounds int     `json:"rounds"` // asked for
	Cells  []*Cell `json:"cells"`

	options Options
}

// Cell is one contender in one scenario with so many connections.
type Cell struct {
	Scenario    string   `json:"scenario"`
	Contender   string   `json:"contender"`
	Connections int      `json:"connections"`
	Samples     []Sample `json:"samples"` // clean ones
	Discarded   int      `json:"discarded"`

	scenario  *Scenario
	contender Contender
	failed    bool
}

func newResults(o Options) *Results {
	o.Scenarios = slices.Clone(o.Scenarios)
	results := &Results{Rounds: o.Rounds, options: o}
	for i := range o.Scenarios {
		s := &o.Scenarios[i]
		if o.Connections != nil {
			s.Connections = o.Connections
		}
		for _, connections := range s.Connections {
			for _, c := range s.Contenders {
				if c.Installed() {
					results.Cells = append(results.Cells, &Cell{
						Scenario: s.Name, Contender: c.Name, Connections: connections, scenario: s, contender: c,
					})
				}
			}
		}
	}
	return results
}

// Cell returns nil where there is none, or none with measurements.
func (r *Results) Cell(scenario, contender string, connections int) *Cell {
	for _, cell := range r.Cells {
		if cell.Scenario == scenario && cell.Contender == contender && cell.Connections == connections && len(cell.Samples) > 0 {
			return cell
		}
	}
	return nil
}

// Median returns the median of what of reads, over all measurements of the cell.
func (c *Cell) Median(of func(Sample) float64) float64 {
	values := c.sorted(of)
	if len(values) == 0 {
		return 0
	}
	middle := len(values) / 2
	if len(values)%2 == 0 {
		return (values[middle-1] + values[middle]) / 2
	}
	return values[middle]
}

// Spread is how far apart the smallest and the largest are, as a share of the median.
func (c *Cell) Spread(of func(Sample) float64) float64 {
	values, median := c.sorted(of), c.Median(of)
	if median == 0 {
		return 0
	}
	return (values[len(values)-1] - values[0]) / median
}

func (c *Cell) sorted(of func(Sample) float64) []float64 {
	var values []float64
	for _, sample := range c.Samples {
		values = append(values, of(sample))
	}
	slices.Sort(values)
	return values
}

// The figures of a Sample.
func perSecond(s Sample) float64     { return s.PerSecond }
func proxyMicros(s Sample) float64   { return s.ProxyMicros }
func redisMicros(s Sample) float64   { return s.RedisMicros }
func backendMicros(s Sample) float64 { return s.BackendMicros }
func scriptCalls(s Sample) float64   { return s.ScriptCalls }
func scriptMicros(s Sample) float64  { return s.ScriptMicros }
func rssMiB(s Sample) float64        { return float64(s.RSS) / (1 << 20) }
func p50(s Sample) float64           { return milliseconds(s.Seen.P50) }
func p99(s Sample) float64           { return milliseconds(s.Seen.P99) }

func milliseconds(micros int64) float64 {
	return (time.Duration(micros) * time.Microsecond).Seconds() * 1000
}
