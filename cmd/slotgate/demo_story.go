package main

import (
	"fmt"
	"io"
)

// writeDemoIntroduction says what is about to be seen.
func writeDemoIntroduction(w io.Writer, size demoSize) {
	fmt.Fprintf(w, `%d lessons of %d seats open, and %d students want one each. Every app sends its request twice
at the same instant, with one Idempotency-Key. The booking API reads the seats left, works for
%v, then writes. API, database (SQLite in memory), gate and students are in this process.

`, size.lessons, size.seats, size.students, size.work)
}

// writeDemoConclusion says what was seen, and what to do next.
func writeDemoConclusion(w io.Writer, rows []*demoRow) {
	fmt.Fprint(w, "\nWhat you see\n")
	for _, row := range rows {
		for _, line := range row.lesson() {
			fmt.Fprintf(w, "  %s\n", line)
		}
	}
	fmt.Fprint(w, `
Next
  slotgate demo --serve              gate and API stay up, to try with curl
  slotgate check -c slotgate.yaml    your own configuration; this demo's is cmd/slotgate/demo.yaml,
                                     all that can be set is in config.example.yaml
  slotgate run -c slotgate.yaml      the gate in front of your own API
`)
}

// lesson is what an act teaches.
func (r *demoRow) lesson() []string {
	switch {
	case r.act.outage:
		return []string{
			fmt.Sprintf("- The gate lost its store in mid-storm: %d requests passed without it, within declared limits,", r.Outage.total("passthrough")),
			fmt.Sprintf("  and the constraints had the last word. It counted again %d ms after the store was back.", r.Outage.NormalAfter.Milliseconds()),
		}
	case r.act.gate && r.act.constraints:
		return []string{
			fmt.Sprintf("- Behind the gate exactly the %d seats are sold, whatever the tables check: %d of %d requests", r.Seats, r.Reached, r.Requests),
			"  reach the API, those that can succeed, once each; a repeated request gets the first answer.",
		}
	case r.act.gate:
		return nil // what it shows is said with the next act
	case r.act.constraints:
		return []string{
			fmt.Sprintf("- Constraints prevent that, but all %d requests reach the database, and %d students were told", r.Requests, r.Torn),
			"  both yes and no: their two requests were answered differently.",
		}
	default:
		return []string{
			fmt.Sprintf("- Alone and without constraints the API sold %d seats too many and booked %d students twice.", r.Oversold, r.Duplicates),
		}
	}
}
