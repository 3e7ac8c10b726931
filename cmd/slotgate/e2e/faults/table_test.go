package faults

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// sheet gathers the rows of the table. Safe for concurrent use.
type sheet struct {
	mu   sync.Mutex
	rows map[int]string
}

// add writes the row of a cell, at its place in the table. A column that tells of
// each pool has pass, reject and local in this order.
func (s *sheet) add(place int, scene *scene, results map[string]*result) {
	each := func(cell func(*result) string) string {
		parts := make([]string, len(pools))
		for i, pool := range pools {
			parts[i] = cell(results[pool])
		}
		if parts[0] == parts[1] && parts[1] == parts[2] {
			return parts[0]
		}
		return strings.Join(parts, " · ")
	}
	number := func(of func(*result) int) string {
		return each(func(r *result) string { return fmt.Sprint(of(r)) })
	}
	outage := each(func(r *result) string {
		if r.away == 0 {
			return "0"
		}
		return fmt.Sprintf("%.1f", r.outage.Seconds())
	})
	if scene.detected != 0 {
		outage += fmt.Sprintf(" (detection %.1f)", scene.detected.Seconds())
	}
	row := []string{
		scene.cell.fault, scene.cell.topology, each((*result).saw), outage,
		number(func(r *result) int { return r.oversold }), fmt.Sprint(results[local].bound),
		each(func(r *result) string {
			if r.unknown > 0 {
				return fmt.Sprintf("%d (%d kept unknown)", r.lost, r.unknown)
			}
			return fmt.Sprint(r.lost)
		}),
		number(func(r *result) int { return r.twice }),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows == nil {
		s.rows = map[int]string{}
	}
	s.rows[place] = "| " + strings.Join(row, " | ") + " |"
}

// saw tells of the answers that an undisturbed sale does not give.
func (r *result) saw() string {
	var parts []string
	if r.passed > 0 {
		parts = append(parts, fmt.Sprintf("%d passed through", r.passed))
	}
	var unusual []string
	for what := range r.answers {
		if what[0] == '5' || what == noAnswer || strings.HasSuffix(what, "outcome-unknown") || strings.HasSuffix(what, "in-flight") {
			unusual = append(unusual, what)
		}
	}
	slices.SortFunc(unusual, func(a, b string) int {
		return cmp.Or(r.answers[b]-r.answers[a], strings.Compare(a, b))
	})
	for _, what := range unusual {
		parts = append(parts, fmt.Sprintf("%d × %s", r.answers[what], what))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// legend stands above the table.
const legend = `Each row is one test: a sale through two gates under three rules at once, with the fault in its midst.
Columns that tell of all three have **pass** · **reject** · **local** in this order, one value where they agree:

- *pass*: the backend's constraints stand; bookings pass through while the store is away.
- *reject*: a backend without constraints that reads before it writes; truth, keep_unknown, unknown: reject; 503 while the store is away.
- *local*: the same backend and settings; without its store each gate admits at most its declared share (bound) of what it last knew.

Outage: from the first request that failed for it to the last (in brackets: until the servers themselves had noticed and agreed on another).
Lost settlements: bookings that a student was told of, and that the store does not have as confirmed at rest.
Kept unknown: bookings that nobody was told of; the store keeps their units. Duplicates: a student twice in a lesson, in the database.

`

// markdown is the legend and the table, in the order of the cells.
func (s *sheet) markdown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	b.WriteString(legend)
	b.WriteString("| fault | store | what clients saw beside sales | outage, s | oversold | bound of local | lost settlements | duplicates |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|\n")
	for _, place := range slices.Sorted(maps.Keys(s.rows)) {
		b.WriteString(s.rows[place] + "\n")
	}
	return b.String()
}
