package growth

import (
	"bytes"
	"fmt"
	"io"

	"github.com/slotgate/slotgate/deploy/bench/rig"
)

// WriteMarkdown writes the rows as a table.
func WriteMarkdown(w io.Writer, rows []Row) error {
	var table bytes.Buffer
	table.WriteString("| known | decide µs | commands | settle µs | commands | two plain commands µs | memory |\n")
	table.WriteString("|---|---|---|---|---|---|---|\n")
	for _, row := range rows {
		fmt.Fprintf(&table, "| %d %s | %.1f | %.1f | %.1f | %.1f | %.1f | %s |\n", row.Size, row.Of,
			row.Decide.PerCall, row.Decide.Commands, row.Settle.PerCall, row.Settle.Commands, row.Plain.PerCall, memory(row.Bytes))
	}
	for _, of := range []string{"slots", "keys"} {
		if g, ok := Growth(rows, of); ok {
			fmt.Fprintf(&table, "\nFrom 1,000 to the most %s: decide × %.2f, settle × %.2f (flat within 20 %% is wanted); two plain commands × %.2f.\n",
				of, g.Decide, g.Settle, g.Plain)
		}
	}
	_, err := table.WriteTo(w)
	return err
}

// Ratios say by how much calls take longer.
type Ratios struct{ Decide, Settle, Plain float64 }

// Growth compares the most of a kind with 1,000; false where these were not measured.
func Growth(rows []Row, of string) (Ratios, bool) {
	var base, most *Row
	for i := range rows {
		row := &rows[i]
		if row.Of != of {
			continue
		}
		if row.Size == 1000 {
			base = row
		}
		if most == nil || row.Size > most.Size {
			most = row
		}
	}
	if base == nil {
		return Ratios{}, false
	}
	ratio := func(most, base rig.ScriptTime) float64 { return most.PerCall / base.PerCall }
	return Ratios{ratio(most.Decide, base.Decide), ratio(most.Settle, base.Settle), ratio(most.Plain, base.Plain)},
		base.Decide.PerCall > 0 && base.Settle.PerCall > 0 && base.Plain.PerCall > 0
}
