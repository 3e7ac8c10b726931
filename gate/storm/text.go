package storm

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

const barWidth = 40

// WriteText writes the report for people, and the verdicts on it.
func (r *Report) WriteText(w io.Writer, verdicts []Verdict) error {
	b := bufio.NewWriter(w)
	r.writeSummary(b)
	writeCounts(b, "status", r.Statuses)
	writeCounts(b, "gate-decision", r.Decisions)
	writeCounts(b, "gate-mode", r.Modes)
	writeCounts(b, "transport errors", r.Errors)
	r.writeLatency(b)
	r.writeSuccesses(b)
	if len(verdicts) > 0 {
		fmt.Fprintln(b)
	}
	for _, v := range verdicts {
		fmt.Fprintln(b, v)
	}
	return b.Flush()
}

func (r *Report) writeSummary(w io.Writer) {
	for i, target := range r.Targets {
		label := "storm"
		if i > 0 {
			label = "and"
		}
		fmt.Fprintf(w, "%-11s %s %s\n", label, r.Method, target)
	}
	fmt.Fprintf(w, "%-11s %d requests, %d of them sent twice, %d subjects, %d clients, seed %d\n",
		"planned", r.Requests, r.Repeats, r.Subjects, r.Clients, r.Seed)
	fmt.Fprintf(w, "%-11s %d in %s (%.0f/s) over %d connections, %d answered\n",
		"sent", r.Sent, short(r.Elapsed), perSecond(r.Sent, r.Elapsed), r.Connections, r.Answered)
	if r.StoppedBy != "" {
		fmt.Fprintf(w, "%-11s early (%s): %d of %d sent\n", "stopped", r.StoppedBy, r.Sent, r.Requests+r.Repeats)
	}
}

// writeCounts writes one line a name, with a bar relative to the largest.
func writeCounts[K cmp.Ordered](w io.Writer, title string, counts map[K]int) {
	if len(counts) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", title)
	largest := 0
	for _, count := range counts {
		largest = max(largest, count)
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		writeBar(w, fmt.Sprintf("%-18v", name), counts[name], largest)
	}
}

func (r *Report) writeLatency(w io.Writer) {
	h := &r.Latency
	if h.Count() == 0 {
		return
	}
	fmt.Fprintf(w, "\nlatency     p50 %s   p90 %s   p99 %s   max %s\n",
		short(h.Quantile(0.5)), short(h.Quantile(0.9)), short(h.Quantile(0.99)), short(h.Max()))
	rows := h.Rows()
	largest := 0
	for _, row := range rows {
		largest = max(largest, row.Count)
	}
	for _, row := range rows {
		writeBar(w, fmt.Sprintf("%18s", "< "+short(row.Limit)), row.Count, largest)
	}
}

func writeBar(w io.Writer, label string, count, largest int) {
	bar := strings.Repeat("#", (count*barWidth+largest-1)/largest)
	fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("  %s %8d  %s", label, count, bar), " "))
}

func (r *Report) writeSuccesses(w io.Writer) {
	fmt.Fprintf(w, "\n%-11s %d", "successes", len(r.Successes))
	if repeated := r.SuccessfulAnswers - len(r.Successes); repeated > 0 {
		fmt.Fprintf(w, " (in %d successful answers: %d repeat the other twin's)", r.SuccessfulAnswers, repeated)
	}
	fmt.Fprintln(w)
	if slots := r.PerSlot(); len(slots) > 1 {
		counts := slices.Sorted(maps.Values(slots))
		fmt.Fprintf(w, "%-11s %d had successes, from %d to %d each\n", "slots", len(slots), counts[0], counts[len(counts)-1])
	}
	duplicates := r.Duplicates()
	fmt.Fprintf(w, "%-11s %d successes of a subject that already had one in that slot", "duplicates", len(duplicates))
	if len(duplicates) > 0 {
		fmt.Fprintf(w, ", first subject %d, request %d", duplicates[0].Subject, duplicates[0].N)
	}
	fmt.Fprintln(w)
	if t := r.Twins; t.Pairs > 0 {
		fmt.Fprintf(w, "%-11s %d pairs: %d got the same answer, %d differed, %d not compared (5xx or no answer)\n",
			"twins", t.Pairs, t.Same, t.Differed, t.NotCompared)
	}
}

// short is a duration with three significant digits.
func short(d time.Duration) string {
	for unit := time.Duration(1); unit < time.Hour; unit *= 10 {
		if d < unit*1000 {
			return d.Round(unit).String()
		}
	}
	return d.Round(time.Second).String()
}

func perSecond(n int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// counted is a number with its noun.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
