package compare

import (
	"fmt"
	"io"
)

// WriteMarkdown writes one table a scenario and one of the targets.
func (r *Results) WriteMarkdown(w io.Writer) error {
	page := &writer{w: w}
	page.printf("| promise | connections | wanted | measured | |\n|---|---|---|---|---|\n")
	for _, t := range r.Targets() {
		met := "met"
		if !t.Met {
			met = "**missed**"
		}
		page.printf("| %s | %d | %s | %.2f | %s |\n", t.Text, t.Connections, t.wanted(), t.Value, met)
	}
	previous := ""
	for _, cell := range r.Cells {
		if len(cell.Samples) == 0 {
			continue
		}
		if cell.Scenario != previous {
			page.printf("\n**%s**\n\n", cell.scenario.Title)
			page.printf("| contender | connections | requests/s | spread | p50 ms | p99 ms | proxy µs | Redis µs | backend µs | calls | script µs | peak RSS MiB | rounds |\n")
			page.printf("|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
			previous = cell.Scenario
		}
		rounds := fmt.Sprint(len(cell.Samples))
		if cell.Discarded > 0 {
			rounds += fmt.Sprintf(" (%d discarded)", cell.Discarded)
		}
		page.printf("| %s | %d | %.0f | %.0f %% | %.2f | %.2f | %.1f | %.1f | %.1f | %.2f | %.1f | %.0f | %s |\n",
			cell.Contender, cell.Connections, cell.Median(perSecond), 100*cell.Spread(perSecond), cell.Median(p50), cell.Median(p99),
			cell.Median(proxyMicros), cell.Median(redisMicros), cell.Median(backendMicros),
			cell.Median(scriptCalls), cell.Median(scriptMicros), cell.Median(rssMiB), rounds)
	}
	return page.err
}

// writer keeps the first error.
type writer struct {
	w   io.Writer
	err error
}

func (w *writer) printf(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.w, format, args...)
	}
}
