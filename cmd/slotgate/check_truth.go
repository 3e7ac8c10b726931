package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/slotgate/slotgate/rules"
)

// writeTruth adds a table of the pools whose capacity the backend's data tells; a
// dsn and a header, which may be secret, are never shown.
func writeTruth(table io.Writer, pools map[string]*rules.PoolConfig) {
	headed := false
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		t := pools[name].Capacity.Truth
		if t == nil {
			continue
		}
		if !headed {
			fmt.Fprintln(table, "\nTRUTH\tSOURCE\tMEANS\tREFRESH\tHOT\tMAX RATE\tLAG\tTIMEOUT\tBOOKINGS\tREPORT")
			headed = true
		}
		row(table, name, truthSource(t), means(t), rules.FormatDuration(t.Refresh), rules.FormatDuration(t.Hot), t.MaxRate.String(),
			rules.FormatDuration(t.Lag), rules.FormatDuration(t.Timeout), bookings(t), report(t))
	}
}

func truthSource(t *rules.TruthConfig) string {
	if t.SQL != nil {
		return t.SQL.String()
	}
	return t.HTTP.String()
}

func means(t *rules.TruthConfig) string {
	if total := t.Total(); !total.IsNone() {
		return fmt.Sprintf("%s, total %s", t.Means(), total)
	}
	return t.Means()
}

func bookings(t *rules.TruthConfig) string {
	switch {
	case t.Bookings == nil:
		return "-"
	case t.SQL != nil:
		return "query"
	}
	return "GET " + t.Bookings.Path
}

func report(t *rules.TruthConfig) string {
	return cmp.Or(strings.TrimSpace(t.Report+" "+t.ReportDir), "-")
}
