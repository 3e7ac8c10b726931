package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/slotgate/slotgate/gate/truth"
)

func newDifferenceWriter(format string, w io.Writer) reportWriter[truth.Difference, *truth.Report] {
	switch format {
	case "json":
		return newJSONReports[truth.Difference](w, "rows", func(r *truth.Report) any {
			return struct {
				*truth.Report
				Rows any `json:"rows,omitempty"` // hides the report's own
			}{Report: r}
		})
	case "csv":
		header := []string{"pool", "slot", "kind", "store", "truth", "difference", "repaired", "hold", "subject"}
		return newCSVReports[truth.Difference, *truth.Report](w, header, differenceRecords)
	}
	return &differenceTable{w: w}
}

func differenceRecords(d truth.Difference) [][]string {
	return [][]string{{d.Pool, d.Slot, string(d.Kind), unitsOr(d.Store, ""), unitsOr(d.Truth, ""), strconv.FormatInt(d.Difference, 10),
		strconv.FormatBool(d.Repaired), d.Hold, d.Subject}}
}

func unitsOr(n *int64, none string) string {
	if n == nil {
		return none
	}
	return strconv.FormatInt(*n, 10)
}

// differenceTable is for people. Its columns have widths of their own instead of
// those of the longest cells, so that a row can be read when it is found.
type differenceTable struct {
	w      io.Writer
	headed bool
}

const differenceColumns = "%-16s %-16s %-23s %6s %6s %10s  %-8s %-28s %s\n"

func (t *differenceTable) row(d truth.Difference) error {
	if !t.headed {
		t.headed = true
		if _, err := fmt.Fprintf(t.w, differenceColumns, "POOL", "SLOT", "KIND", "STORE", "TRUTH", "DIFFERENCE", "REPAIRED", "HOLD", "SUBJECT"); err != nil {
			return err
		}
	}
	difference := "-"
	if d.Difference != 0 {
		difference = fmt.Sprintf("%+d", d.Difference)
	}
	repaired := "no"
	if d.Repaired {
		repaired = "yes"
	}
	_, err := fmt.Fprintf(t.w, differenceColumns, printable(d.Pool), printable(d.Slot), d.Kind, unitsOr(d.Store, "-"), unitsOr(d.Truth, "-"),
		difference, repaired, printable(d.Hold), printable(d.Subject))
	return err
}

func (t *differenceTable) report(r *truth.Report) error {
	t.headed = false // the summary ends a table
	_, err := fmt.Fprintf(t.w, "%s, differences %s, repaired %d, took %s\n", compared(&r.Summary),
		countsOf(r.Differences, truth.Kinds(), r.ByKind), r.Repaired, took(&r.Summary))
	if err == nil && r.ByKind[truth.Oversold] > 0 {
		_, err = fmt.Fprintln(t.w, "Oversold slots can only be put right in the backend: slotgate audit lists their latest bookings.")
	}
	return err
}

func (t *differenceTable) end(bool) error { return nil }

// compared is the beginning of a summary line.
func compared(s *truth.Summary) string {
	line := fmt.Sprintf("pool %s: slots compared %d", s.Pool, s.Slots)
	if s.Failed > 0 {
		line += fmt.Sprintf(", failed %d", s.Failed)
	}
	if s.Partial > 0 {
		line += fmt.Sprintf(", with more holds than were compared %d", s.Partial)
	}
	return line
}

// countsOf is a total and, in the order of all kinds, what it is made of.
func countsOf[Kind ~string](total int, kinds []Kind, by map[Kind]int) string {
	var parts []string
	for _, kind := range kinds {
		if n := by[kind]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", kind, n))
		}
	}
	if parts == nil {
		return strconv.Itoa(total)
	}
	return fmt.Sprintf("%d (%s)", total, strings.Join(parts, ", "))
}

func took(s *truth.Summary) time.Duration {
	return s.Ended.Sub(s.Started).Round(time.Millisecond)
}
