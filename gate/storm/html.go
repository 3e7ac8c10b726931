package storm

import (
	"bufio"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	html "html/template"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of what a page lists; what is beyond is counted.
const (
	maxListed   = 10  // violations of one kind
	maxSlotRows = 500 // slots
)

//go:embed report.html.tmpl
var pageSource string

var page = html.Must(html.New("report").Funcs(html.FuncMap{"short": short}).Parse(pageSource))

// WriteHTML writes the report and the verdicts on it as one HTML file for people. It
// asks for nothing else, runs no script, and can be printed; behind each plot stand
// its figures. Fields and bodies of the requests are not in it, since they may hold
// credentials. Program says what made it.
func (r *Report) WriteHTML(w io.Writer, verdicts []Verdict, program string) error {
	verdict, class := summary(r, verdicts)
	slots := r.slotRows()
	b := bufio.NewWriter(w)
	err := page.Execute(b, struct {
		*Report
		Verdict, Class string
		Verdicts       []Verdict
		Violations     []string
		Facts          []fact
		Key            []fact
		Figures        []*figure
		Slots          []slotRow
		MoreSlots      int
		Program        string
	}{
		Report: r, Verdict: verdict, Class: class, Verdicts: verdicts, Violations: r.violations(verdicts),
		Facts: r.facts(), Key: r.keyFigures(), Figures: r.figures(),
		Slots: slots[:min(len(slots), maxSlotRows)], MoreSlots: max(len(slots)-maxSlotRows, 0),
		Program: fmt.Sprintf("%s, %s/%s, %d CPUs", program, runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
	})
	return errors.Join(err, b.Flush())
}

// summary is the verdict on the whole storm, and the class of style that it has.
func summary(r *Report, verdicts []Verdict) (text, class string) {
	count := map[State]int{}
	for _, v := range verdicts {
		count[v.State]++
	}
	switch {
	case count[Broken] > 0:
		return fmt.Sprintf("Broken: %d of %s", count[Broken], counted(len(verdicts), "assertion")), "bad"
	case r.StoppedBy != "":
		return "Undecided: stopped early (" + string(r.StoppedBy) + ")", "warn"
	case len(verdicts) == 0:
		return "Nothing was asserted", "warn"
	}
	return "Held: " + counted(len(verdicts), "assertion"), "good"
}

// violations are what is wrong, in sentences: broken assertions first, then where.
func (r *Report) violations(verdicts []Verdict) []string {
	var lines []string
	for _, v := range verdicts {
		if v.State == Broken {
			lines = append(lines, v.String())
		}
	}
	var oversold, twice []string
	for _, s := range r.slotRows() {
		if s.Oversold > 0 {
			oversold = append(oversold, fmt.Sprintf("%s sold %d of %s: %d too many", slotName(s.Slot), s.Sold, counted(r.Capacity, "seat"), s.Oversold))
		}
	}
	for _, b := range r.Duplicates() {
		twice = append(twice, fmt.Sprintf("%s: subject %d has more than one success, also request %d (status %d)", slotName(b.Slot), b.Subject, b.N, b.Status))
	}
	lines = append(lines, atMost(oversold, "slots oversold")...)
	lines = append(lines, atMost(twice, "successes of a subject that already had one in that slot")...)
	if r.Twins.Differed > 0 {
		lines = append(lines, fmt.Sprintf("%s of twins, sent at once with the same key, got different answers", counted(r.Twins.Differed, "pair")))
	}
	return lines
}

// atMost cuts a list and says how many more there are.
func atMost(lines []string, kind string) []string {
	if len(lines) <= maxListed {
		return lines
	}
	return append(lines[:maxListed], fmt.Sprintf("and %d more %s", len(lines)-maxListed, kind))
}

// fact is a figure with its name.
type fact struct{ Name, Value string }

// keyFigures are what a person looks for first.
func (r *Report) keyFigures() []fact {
	facts := []fact{
		{"sent", strconv.Itoa(r.Sent)},
		{"a second", fmt.Sprintf("%.0f", perSecond(r.Sent, r.Elapsed))},
		{"answered", strconv.Itoa(r.Answered)},
		{"no answer", strconv.Itoa(r.TransportErrors())},
		{"5xx", strconv.Itoa(r.Status5xx())},
		{"successes", strconv.Itoa(len(r.Successes))},
	}
	if h := &r.Latency; h.Count() > 0 {
		facts = append(facts, fact{"p50", short(h.Quantile(0.5))}, fact{"p99", short(h.Quantile(0.99))}, fact{"slowest", short(h.Max())})
	}
	return facts
}

// facts are what was asked for and how it went.
func (r *Report) facts() []fact {
	rate, seats := "no limit", "not told"
	if r.Rate > 0 {
		rate = fmt.Sprintf("at most %g a second", r.Rate)
	}
	if r.Capacity > 0 {
		seats = strconv.Itoa(r.Capacity)
	}
	facts := []fact{
		{"requests", fmt.Sprintf("%d, %d of them sent twice", r.Requests, r.Repeats)},
		{"subjects", strconv.Itoa(r.Subjects)},
		{"clients", strconv.Itoa(r.Clients)},
		{"connections", strconv.Itoa(r.Connections)},
		{"rate", rate},
		{"time-outs", fmt.Sprintf("%v for one answer, %v for the storm", r.Timeout, r.MaxTime)},
		{"seed", strconv.FormatUint(r.Seed, 10)},
		{"a success is", r.Success},
		{"seats of a slot", seats},
	}
	if repeated := r.SuccessfulAnswers - len(r.Successes); repeated > 0 {
		facts = append(facts, fact{"successful answers", fmt.Sprintf("%d, %d of them repeat the other twin's", r.SuccessfulAnswers, repeated)})
	}
	if t := r.Twins; t.Pairs > 0 {
		facts = append(facts, fact{"twins", fmt.Sprintf("%d pairs: %d same, %d differed, %d not compared (5xx or no answer)", t.Pairs, t.Same, t.Differed, t.NotCompared)})
	}
	for _, kind := range sortedKeys(r.Errors) {
		facts = append(facts, fact{"no answer: " + string(kind), strconv.Itoa(r.Errors[kind])})
	}
	return facts
}

func slotName(slot int64) string {
	if slot < 0 {
		return "The only slot"
	}
	return "Slot " + strconv.FormatInt(slot, 10)
}

// slotRow is a slot in the table.
type slotRow struct {
	Sale
	capacity int
}

// slotRows are the slots with faults first, then the others, by slot.
func (r *Report) slotRows() []slotRow {
	rows := []slotRow{}
	for _, s := range r.Sales() {
		rows = append(rows, slotRow{s, r.Capacity})
	}
	slices.SortStableFunc(rows, func(a, b slotRow) int { return cmp.Or(b.Oversold-a.Oversold, b.Twice-a.Twice) })
	return rows
}

func (s slotRow) Name() string { return strings.TrimPrefix(slotName(s.Slot), "Slot ") }

// Taken is the part of the bar, of 100 in all, for the seats that were sold; Over that
// for what was sold beyond them.
func (s slotRow) Taken() int { return 100 * (s.Sold - s.Oversold) / max(s.Sold, s.capacity) }
func (s slotRow) Over() int  { return 100 - s.Taken() }

// When is the instant of the first request, to the second, for any reader.
func (r *Report) When() string { return r.Started.UTC().Format(time.DateTime) + " UTC" }
