package compare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/slotgate/slotgate/deploy/bench/rig"
)

// Options say what is run, and for how long.
type Options struct {
	Scenarios   []Scenario
	Connections []int         // so many; nil: as the scenarios say
	Rounds      int           // clean measurements that each contender is to have
	Load        time.Duration // of one measurement
	Warm        time.Duration // load before it that is not measured; 0: none
	Foreign     float64       // most share of one CPU that others may take meanwhile
	Progress    io.Writer
}

// Run measures every contender that is installed. Contenders that never had a quiet
// moment end with fewer rounds than asked for; Results tell. Where contenders fail to
// serve, it goes on with the others and returns their errors with the rest.
func Run(ctx context.Context, r *rig.Rig, o Options) (*Results, error) {
	results := newResults(o)
	var failed []error
	// Discarded measurements are repeated in later rounds, but not for ever.
	for round := 1; round <= 3*o.Rounds && ctx.Err() == nil; round++ {
		for _, cell := range inTurn(results.Cells, round) {
			if cell.failed || len(cell.Samples) >= o.Rounds {
				continue
			}
			sample, err := measure(ctx, r, cell.scenario, cell.contender, cell.Connections, o.Warm, o.Load)
			if err := ctx.Err(); err != nil {
				return results, err
			}
			if err != nil {
				cell.failed = true
				err = fmt.Errorf("%s, %s, %d connections: %w", cell.Scenario, cell.Contender, cell.Connections, err)
				failed = append(failed, err)
				fmt.Fprintln(o.Progress, err)
				continue
			}
			sample.Round = round
			note := ""
			if sample.Foreign > o.Foreign {
				cell.Discarded++
				note = fmt.Sprintf("  discarded: others took %.0f %% of a CPU", 100*sample.Foreign)
			} else {
				cell.Samples = append(cell.Samples, sample)
			}
			fmt.Fprintf(o.Progress, "round %d  %-16s %-18s %3d  %8.0f/s  p50 %6d µs  proxy %5.1f µs  redis %4.1f µs%s\n",
				round, cell.Scenario, cell.Contender, cell.Connections, sample.PerSecond, sample.Seen.P50,
				sample.ProxyMicros, sample.RedisMicros, note)
		}
	}
	return results, errors.Join(failed...)
}

// inTurn lists the cells so that each contender comes first in some round of its
// scenario, and all of a scenario stay together.
func inTurn(cells []*Cell, round int) []*Cell {
	var order []*Cell
	for len(cells) > 0 {
		n := 1
		for n < len(cells) && cells[n].Scenario == cells[0].Scenario && cells[n].Connections == cells[0].Connections {
			n++
		}
		first := round % n
		order = append(order, slices.Concat(cells[first:n], cells[:first])...)
		cells = cells[n:]
	}
	return order
}
