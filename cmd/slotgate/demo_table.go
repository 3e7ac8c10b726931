package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// demoRule divides a table from its head.
var demoRule = strings.Repeat("-", 93)

// writeDemoTable writes a line for each act, and what act 5 looked like in time. It
// is at most 100 columns wide.
func writeDemoTable(w io.Writer, rows []*demoRow) {
	paint := paintFor(w)
	fmt.Fprintf(w, "\n%24s%9s%7s%6s%9s%7s%9s%8s%7s%7s\n", "", "bookings", "", "over-", "students", "", "reached", "5xx and", "p50", "p99")
	fmt.Fprintf(w, "%24s%9s%7s%6s%9s%7s%9s%8s%7s%7s\n%s\n", "", "made", "seats", "sold", "twice", "sent", "backend", "errors", "ms", "ms", demoRule)
	for i, row := range rows {
		if i == 0 || row.act.constraints != rows[i-1].act.constraints {
			fmt.Fprintf(w, "API over tables %s constraints\n", withOrWithout(row.act.constraints))
		}
		fmt.Fprintf(w, "%-24s%9d%7d%s%s%7d%9d%8d%7s%7s%s\n", row.label(), row.Bookings, row.Seats,
			damage(paint, 6, row.Oversold), damage(paint, 9, row.Duplicates), row.Requests,
			row.Reached, row.Failures, inMilliseconds(row.P50), inMilliseconds(row.P99), row.mark(paint))
	}
	fmt.Fprintln(w, demoRule)
	for _, row := range rows {
		if row.Outage != nil {
			writeOutageTable(w, row.Outage)
		}
	}
}

func withOrWithout(it bool) string {
	if it {
		return "with"
	}
	return "without"
}

func (r *demoRow) label() string {
	label := "  " + withOrWithout(r.act.gate) + " gate"
	if r.act.outage {
		label += ", store lost"
	}
	return label
}

// mark ends the line of an act with the gate.
func (r *demoRow) mark(p paint) string {
	switch {
	case !r.act.gate:
		return ""
	case len(r.faults()) > 0:
		return "  " + p.bad("WRONG")
	default:
		return "  " + p.good("ok")
	}
}

// damage is a count that should be 0, right-aligned before it is coloured.
func damage(p paint, width int, n int64) string {
	text := fmt.Sprintf("%*d", width, n)
	if n > 0 {
		return p.bad(text)
	}
	return text
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func inMilliseconds(d time.Duration) string {
	ms := milliseconds(d)
	if ms < 10 {
		return fmt.Sprintf("%.1f", ms)
	}
	return fmt.Sprintf("%.0f", ms)
}

var outageDecisions = []string{"admitted", "passthrough", "replayed", "sold-out", "in-flight"}

// writeOutageTable shows act 5 in time: bookings in the database, and what clients
// were told by Gate-Decision.
func writeOutageTable(w io.Writer, c *outageCounts) {
	fmt.Fprintf(w, "\n%-24s%9s", "act 5: the store is", "bookings")
	for _, name := range outageDecisions {
		fmt.Fprintf(w, "%*s", len(name)+2, name)
	}
	fmt.Fprintf(w, "%9s\n", "others")
	for phase, name := range []string{"there", fmt.Sprintf("away, for %.1f s", c.Lasted.Seconds()), "back"} {
		fmt.Fprintf(w, "%-24s%9d", "  "+name, c.Bookings[phase])
		others := 0
		for _, n := range c.Decisions[phase] {
			others += n
		}
		for _, decision := range outageDecisions {
			n := c.Decisions[phase][decision]
			others -= n
			fmt.Fprintf(w, "%*d", len(decision)+2, n)
		}
		fmt.Fprintf(w, "%9d\n", others)
	}
}
