package growth

import (
	"bytes"
	"fmt"
	"io"
)

// WriteMarkdown writes the rows as a table.
func WriteMarkdown(w io.Writer, rows []Row) error {
	var table bytes.Buffer
	table.WriteString("| known | decide µs | settle µs | memory |\n|---|---|---|---|\n")
	for _, row := range rows {
		fmt.Fprintf(&table, "| %d %s | %.1f | %.1f | %s |\n", row.Size, row.Of, row.Decide.PerCall, row.Settle.PerCall, row.bytes())
	}
	for _, of := range []string{"slots", "keys"} {
		if decide, settle, ok := Growth(rows, of); ok {
			fmt.Fprintf(&table, "\nFrom 1,000 to the most %s: decide × %.2f, settle × %.2f (flat within 20 %% is wanted).\n", of, decide, settle)
		}
	}
	_, err := table.WriteTo(w)
	return err
}

// Growth is by how much calls take longer with the most of a kind than with 1,000;
// false where these were not measured.
func Growth(rows []Row, of string) (decide, settle float64, ok bool) {
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
	if base == nil || base.Decide.PerCall == 0 || base.Settle.PerCall == 0 {
		return 0, 0, false
	}
	return most.Decide.PerCall / base.Decide.PerCall, most.Settle.PerCall / base.Settle.PerCall, true
}
