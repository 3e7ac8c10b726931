package storm

import (
	"cmp"
	"fmt"
	html "html/template"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/slotgate/slotgate/gate/storm/plot"
)

// figure is a plot, what its colours mean, and the table of its values.
type figure struct {
	ID, Title, Note string
	SVG             html.HTML
	Legend          []legend
	Head            []string
	Rows            [][]string
	Foot            []string
	Open            bool // the table shows at once
}

type legend struct{ Name, Class, Total string }

// figures are the plots that have something to show.
func (r *Report) figures() []*figure {
	if r.Sent == 0 {
		return nil
	}
	var all []*figure
	if r.Answered > 0 {
		all = append(all, r.latencyOverTime())
	}
	all = append(all, r.statusesOverTime())
	if len(r.Decisions) > 0 {
		all = append(all, r.decisionsOverTime())
	}
	if r.Answered > 0 {
		all = append(all, r.latencyByShare())
	}
	return all
}

// draw sets the plot. What the plot package writes is escaped there.
func (f *figure) draw(c plot.Chart) *figure {
	c.ID, c.Title = f.ID, f.Title
	f.SVG = html.HTML(c.SVG())
	return f
}

func (r *Report) timeAxis() plot.Axis { return plot.Time(r.Elapsed, time.Duration.String) }

// latencyOverTime is the median and the 99th percentile of each interval.
func (r *Report) latencyOverTime() *figure {
	f := &figure{
		ID: "latency", Title: "Latency over time", Note: "Of the answers of each interval, on a logarithmic scale.",
		Legend: []legend{{"p50", "a", short(r.Latency.Quantile(0.5))}, {"p99", "bad", short(r.Latency.Quantile(0.99))}},
		Head:   []string{"from", "answers", "p50", "p99", "slowest"},
		Foot:   []string{"all", strconv.Itoa(r.Latency.Count()), short(r.Latency.Quantile(0.5)), short(r.Latency.Quantile(0.99)), short(r.Latency.Max())},
	}
	median, slow := plot.Series{Name: "p50", Class: "a"}, plot.Series{Name: "p99", Class: "bad"}
	low, high := time.Duration(math.MaxInt64), time.Duration(0)
	for _, i := range r.Timeline.Intervals() {
		row := []string{short(i.From), strconv.Itoa(i.Latency.Count()), "", "", ""}
		p50, p99 := math.NaN(), math.NaN()
		if i.Latency.Count() > 0 {
			q50, q99 := i.Latency.Quantile(0.5), i.Latency.Quantile(0.99)
			row[2], row[3], row[4] = short(q50), short(q99), short(i.Latency.Max())
			low, high = min(low, q50), max(high, q99)
			p50, p99 = atLeastOneMicrosecond(q50), atLeastOneMicrosecond(q99)
		}
		median.Spans = append(median.Spans, span(i, p50))
		slow.Spans = append(slow.Spans, span(i, p99))
		f.Rows = append(f.Rows, row)
	}
	return f.draw(plot.Chart{
		Description: fmt.Sprintf("In %d intervals over %s the median was from %s up, the 99th percentile up to %s.", len(f.Rows), short(r.Elapsed), short(low), short(high)),
		X:           r.timeAxis(),
		Y:           latencyAxis(low, high),
		Series:      []plot.Series{median, slow},
	})
}

func latencyAxis(low, high time.Duration) plot.Axis {
	return plot.Logarithmic(atLeastOneMicrosecond(low), atLeastOneMicrosecond(high), func(ms float64) string {
		return short(time.Duration(math.Round(ms * float64(time.Millisecond))))
	})
}

// atLeastOneMicrosecond is a latency in ms that has a logarithm.
func atLeastOneMicrosecond(d time.Duration) float64 { return milliseconds(max(d, time.Microsecond)) }

// noAnswer is the name of requests without an answer among statuses.
const noAnswer = "no answer"

func (r *Report) statusesOverTime() *figure {
	f := &figure{ID: "status", Title: "Answers a second, by status"}
	bands := statusBands(r.Statuses)
	if errors := r.TransportErrors(); errors > 0 {
		bands = append(bands, band{name: noAnswer, class: "none", total: errors, of: func(i *Interval) int { return i.Errors }})
	}
	return r.counts(f, bands)
}

func (r *Report) decisionsOverTime() *figure {
	f := &figure{ID: "decision", Title: "Answers a second, by Gate-Decision"}
	return r.counts(f, decisionBands(r.Decisions))
}

// band is one kind of answer.
type band struct {
	name, class string
	total       int
	of          func(*Interval) int
}

// counts fills a figure with bands upon one another: rates in the plot, counts in the
// table.
func (r *Report) counts(f *figure, bands []band) *figure {
	f.Note = "The table counts answers of each interval; the plot shows them as answers a second."
	f.Head, f.Foot = []string{"from"}, []string{"all"}
	series := make([]plot.Series, len(bands))
	for n, b := range bands {
		total := strconv.Itoa(b.total)
		f.Legend = append(f.Legend, legend{b.name, b.class, total})
		f.Head, f.Foot = append(f.Head, b.name), append(f.Foot, total)
		series[n] = plot.Series{Name: b.name, Class: b.class}
	}
	highest, at := 0.0, time.Duration(0)
	for _, i := range r.Timeline.Intervals() {
		row := []string{short(i.From)}
		sum := 0
		for n, b := range bands {
			count := b.of(i)
			sum += count
			row = append(row, strconv.Itoa(count))
			series[n].Spans = append(series[n].Spans, span(i, perSecond(count, i.To-i.From)))
		}
		if rate := perSecond(sum, i.To-i.From); rate > highest {
			highest, at = rate, i.From
		}
		f.Rows = append(f.Rows, row)
	}
	return f.draw(plot.Chart{
		Description: fmt.Sprintf("At most %.0f a second, %s after the first request. The table has all values.", highest, short(at)),
		X:           r.timeAxis(),
		Y:           plot.Linear(highest, func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }),
		Stacked:     true,
		Series:      series,
	})
}

func span(i *Interval, value float64) plot.Span {
	return plot.Span{From: i.From.Seconds(), To: i.To.Seconds(), Value: value}
}

// leftOver is the class of the style sheet for what is counted together.
const leftOver = "rest"

// statusBands are at most two successes, one redirection, four refusals and two faults;
// rarer statuses of a class are counted together.
func statusBands(statuses map[int]int) []band {
	var bands []band
	for _, class := range []struct {
		first   int
		colours []string
	}{{2, []string{"a", "f"}}, {3, []string{"b"}}, {4, []string{"c", "d", "e", "b"}}, {5, []string{"bad", "worse"}}} {
		counts := map[int]int{}
		for status, count := range statuses {
			if status/100 == class.first {
				counts[status] = count
			}
		}
		for n, kept := range largest(counts, len(class.colours)) {
			b := band{name: strconv.Itoa(kept[0]), class: class.colours[n], of: func(i *Interval) int { return total(i.Statuses, kept) }}
			if len(kept) > 1 {
				b.name = fmt.Sprintf("other %dxx", class.first)
			}
			b.total = total(statuses, kept)
			bands = append(bands, b)
		}
	}
	var odd []int
	for status := range statuses {
		if status/100 < 2 || status/100 > 5 {
			odd = append(odd, status)
		}
	}
	if len(odd) > 0 {
		bands = append(bands, band{"other", leftOver, total(statuses, odd), func(i *Interval) int { return total(i.Statuses, odd) }})
	}
	return bands
}

// commonDecisions have the same colour in every report.
var commonDecisions = []struct{ name, class string }{{"admitted", "a"}, {"replayed", "b"}, {"sold-out", "c"}}

// decisionBands are the common decisions, the most frequent others, and the rest
// together.
func decisionBands(decisions map[string]int) []band {
	others := maps.Clone(decisions)
	var bands []band
	add := func(name, class string, kept []string) {
		bands = append(bands, band{name, class, total(decisions, kept), func(i *Interval) int { return total(i.Decisions, kept) }})
	}
	for _, common := range commonDecisions {
		if decisions[common.name] > 0 {
			add(common.name, common.class, []string{common.name})
			delete(others, common.name)
		}
	}
	for n, kept := range largest(others, 4) {
		name := kept[0]
		if len(kept) > 1 {
			name = "other decisions"
		}
		add(name, []string{"d", "e", "f", leftOver}[n], kept)
	}
	return bands
}

// largest deals the keys out to at most n groups, the most frequent first; the last
// group has all that are left.
func largest[K cmp.Ordered](counts map[K]int, n int) [][]K {
	keys := sortedKeys(counts)
	slices.SortStableFunc(keys, func(a, b K) int { return counts[b] - counts[a] })
	var groups [][]K
	for i, key := range keys {
		if i < n {
			groups = append(groups, []K{key})
		} else {
			groups[n-1] = append(groups[n-1], key)
		}
	}
	return groups
}

func total[K comparable](counts map[K]int, keys []K) int {
	n := 0
	for _, key := range keys {
		n += counts[key]
	}
	return n
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// latencyByShare is the whole distribution: which latency a share of the answers did
// not exceed, with each further nine in the same room.
func (r *Report) latencyByShare() *figure {
	h := &r.Latency
	f := &figure{
		ID: "distribution", Title: "Latency distribution", Open: true,
		Note: "The share of answers that took no longer. Both scales are logarithmic: each further nine takes the same room.",
		Head: []string{"share", "no longer than", "answers beyond"},
	}
	for _, q := range []float64{0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999} {
		beyond := h.Count() - int(math.Ceil(q*float64(h.Count())))
		if q > 0.5 && beyond == 0 {
			break
		}
		f.Rows = append(f.Rows, []string{strconv.FormatFloat(q*100, 'g', 6, 64) + " %", short(h.Quantile(q)), strconv.Itoa(beyond)})
	}
	f.Rows = append(f.Rows, []string{"100 %", short(h.Max()), "0"})

	axis := plot.Quantiles(h.Count())
	line := plot.Series{Name: "latency", Class: "a"}
	const steps = 200
	width := axis.High() / steps
	for n := range steps {
		from := float64(n) * width
		line.Spans = append(line.Spans, plot.Span{From: from, To: from + width, Value: atLeastOneMicrosecond(h.Quantile(plot.Share(from)))})
	}
	return f.draw(plot.Chart{
		Description: fmt.Sprintf("Half of the answers took up to %s, 99 %% up to %s, the slowest %s.", short(h.Quantile(0.5)), short(h.Quantile(0.99)), short(h.Max())),
		X:           axis,
		Y:           latencyAxis(h.Quantile(0), h.Max()),
		Series:      []plot.Series{line},
	})
}
