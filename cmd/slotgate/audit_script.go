package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/slotgate/slotgate/gate/truth"
)

func newFindingWriter(format string, w io.Writer) reportWriter[truth.Finding, *truth.AuditReport] {
	switch format {
	case "json":
		return newJSONReports[truth.Finding](w, "findings", func(r *truth.AuditReport) any {
			return struct {
				*truth.AuditReport
				Findings any `json:"findings,omitempty"` // hides the report's own
			}{AuditReport: r}
		})
	case "csv":
		header := []string{"pool", "slot", "damage", "units", "hold", "subject", "booking", "made"}
		return newCSVReports[truth.Finding, *truth.AuditReport](w, header, findingRecords)
	}
	return findingScript{w}
}

// findingRecords has one for each booking; one without for a finding that has none.
func findingRecords(f truth.Finding) (records [][]string) {
	add := func(subject, booking, made string) {
		records = append(records, []string{f.Pool, f.Slot, string(f.Kind), strconv.FormatInt(f.Units, 10), f.Hold, subject, booking, made})
	}
	for _, b := range f.Bookings {
		made := ""
		if !b.At.IsZero() {
			made = b.At.Format(time.RFC3339Nano)
		}
		add(b.Subject, b.ID, made)
	}
	if len(f.Bookings) == 0 {
		add(f.Subject, "", "")
	}
	return records
}

// findingScript is for people who look after the database: SQL to be reviewed, in
// which everything else is a comment. printable keeps each comment on its line.
type findingScript struct{ w io.Writer }

func (s findingScript) row(f truth.Finding) error {
	var b strings.Builder
	fmt.Fprintf(&b, "-- pool %s, slot %s, %s: %s\n", printable(f.Pool), printable(f.Slot), f.Kind, sentence(&f))
	for _, booking := range f.Bookings {
		fmt.Fprintf(&b, "--   booking %s  subject %s  made %s\n", printable(booking.ID), printable(booking.Subject), made(booking.At))
	}
	switch {
	case f.SQL != "":
		b.WriteString(f.SQL + "\n")
	case len(f.Bookings) > 0:
		b.WriteString("-- (a control character in a name: it cannot be written as SQL)\n")
	}
	b.WriteString("\n")
	_, err := io.WriteString(s.w, b.String())
	return err
}

// sentence says what a finding means.
func sentence(f *truth.Finding) string {
	switch f.Kind {
	case truth.Overbooked:
		return fmt.Sprintf("%d booked beyond the units in all; the latest:", f.Units)
	case truth.NegativeRemainder:
		return fmt.Sprintf("the backend says that %d are left; the latest bookings:", -f.Units)
	case truth.SubjectTwice:
		return fmt.Sprintf("subject %s has %d too many; the latest:", printable(f.Subject), f.Units)
	case truth.BookedWithoutAdmission:
		return fmt.Sprintf("%d booked past the gates:", f.Units)
	case truth.AdmittedWithoutBooking:
		return fmt.Sprintf("subject %s has hold %s confirmed, units %d, and no booking; slotgate reconcile --repair releases it",
			printable(f.Subject), printable(f.Hold), f.Units)
	}
	return fmt.Sprintf("units %d", f.Units)
}

func made(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return moment(&at)
}

func (s findingScript) report(r *truth.AuditReport) error {
	_, err := fmt.Fprintf(s.w, "-- %s, damage %s, took %s\n", compared(&r.Summary), countsOf(r.Damages, truth.Damages(), r.ByKind), took(&r.Summary))
	return err
}

func (s findingScript) end(bool) error { return nil }
