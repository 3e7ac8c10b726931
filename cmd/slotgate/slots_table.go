package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

func writeSlotTable(w io.Writer, slots []slotAnswer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SLOT\tCAPACITY\tCONFIRMED\tHELD\tAVAILABLE\tSOURCE\tSTATE")
	for i := range slots {
		s := &slots[i]
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%s\t%s\n", printable(s.Slot),
			known(s.Capacity), s.Confirmed, s.Held, known(s.Available), s.Source, slotState(s))
	}
	return table.Flush()
}

func writeSlot(w io.Writer, s *slotAnswer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "pool\t%s\nslot\t%s\ncapacity\t%s (%s)\nconfirmed\t%d\nheld\t%d\navailable\t%s\nin flight\t%d\nstate\t%s\n",
		printable(s.Pool), printable(s.Slot), known(s.Capacity), s.Source, s.Confirmed, s.Held, known(s.Available), s.Inflight, slotState(s))
	if len(s.Holds) > 0 {
		fmt.Fprintln(table, "\nHOLD\tSUBJECT\tUNITS\tSTATE\tREFERENCE\tEXPIRES")
	}
	for _, h := range s.Holds {
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\n", printable(h.ID), printable(h.Subject), h.Units, h.State, printable(h.Reference), moment(h.ExpiresAt))
	}
	return table.Flush()
}

func writeLedger(w io.Writer, entries []entryAnswer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nTIME\tHOLD\tUNITS\tFROM\tTO\tCAUSE\tSUBJECT HASH")
	for _, e := range entries {
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", e.Time.Local().Format("2006-01-02T15:04:05.000Z07:00"),
			printable(e.Hold), e.Units, printable(e.From), e.To, e.Cause, printable(e.SubjectHash))
	}
	return table.Flush()
}

func slotState(s *slotAnswer) string {
	var words []string
	if s.Closed {
		words = append(words, "closed")
	}
	if s.OpensAt != nil && s.OpensAt.After(time.Now()) {
		words = append(words, "opens "+moment(s.OpensAt))
	}
	if s.Full {
		words = append(words, "full")
	}
	if s.Dirty {
		words = append(words, "dirty")
	}
	if words == nil {
		return "open"
	}
	return strings.Join(words, ", ")
}

func known(n *int64) string {
	if n == nil {
		return "not known"
	}
	return strconv.FormatInt(*n, 10)
}

func moment(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.Local().Format(time.RFC3339)
}

// printable quotes what clients chose and a terminal would act on or a reader
// would take for columns.
func printable(text string) string {
	if text == "" {
		return "-"
	}
	if quoted := strconv.QuoteToGraphic(text); quoted != `"`+text+`"` || strings.ContainsAny(text, " \u00a0") || text == "-" {
		return quoted
	}
	return text
}
