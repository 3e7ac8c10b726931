package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/slotgate/slotgate/rules"
)

// writeEffective prints what a configuration means after defaults.
func writeEffective(w io.Writer, config *rules.Config) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RULE\tMODE\tACTION\tMATCH\tPOOL\tSLOT\tSUBJECT\tUNITS\tREFERENCE\tKEY\tUNKNOWN\tLIMITS\tSTORE FAILURE")
	for _, r := range config.Rules {
		key, unknown := "-", "-"
		if idem := r.Idempotency; idem != nil {
			key, unknown = extractors(idem.Key, "|"), idem.Unknown
			if idem.Required {
				key += " (required)"
			}
		}
		row(table, r.Name, r.Mode, r.Action, match(&r.Match), cmp.Or(r.Pool, "-"),
			extractors(r.Slot, "+"), extractors(r.Subject, "+"), units(r), reference(r),
			key, unknown, limits(&r.Limits), r.OnStoreFailure)
	}
	if len(config.Pools) > 0 {
		fmt.Fprintln(table, "\nPOOL\tCAPACITY\tHOLD TTL\tPENDING TTL\tRETAIN\tPER SUBJECT\tIN FLIGHT\tQUEUE\tKEEP UNKNOWN\tOPENS AT")
	}
	for _, name := range slices.Sorted(maps.Keys(config.Pools)) {
		p := config.Pools[name]
		row(table, name, capacity(p.Capacity), rules.FormatDuration(p.HoldTTL), pending(p.PendingTTL), rules.FormatDuration(p.Retain), perSubject(p), inflight(p.MaxInflight),
			fmt.Sprintf("%d for %s", p.Queue.Size, rules.FormatDuration(p.Queue.Wait)), strconv.FormatBool(p.KeepUnknown), opens(p.OpensAt))
	}
	writeTruth(table, config.Pools)
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(w, assumptions(config))
	return err
}

func row(w io.Writer, cells ...string) { fmt.Fprintln(w, strings.Join(cells, "\t")) }

// match is the methods and the path, and the names of further conditions.
func match(m *rules.MatchConfig) string {
	text := m.Path
	if len(m.Methods) > 0 {
		text = strings.Join(m.Methods, "|") + " " + text
	}
	var further []string
	for _, condition := range []struct {
		name string
		set  bool
	}{{"params", len(m.Params) > 0}, {"except", len(m.Except) > 0}, {"hosts", len(m.Hosts) > 0}, {"headers", len(m.Headers) > 0}, {"exact", m.Exact}} {
		if condition.set {
			further = append(further, condition.name)
		}
	}
	if further != nil {
		text += " (" + strings.Join(further, ", ") + ")"
	}
	return text
}

func extractors(list rules.Extractors, separator string) string {
	if len(list) == 0 {
		return "-"
	}
	var texts []string
	for _, e := range list {
		texts = append(texts, e.String())
	}
	return strings.Join(texts, separator)
}

func units(r *rules.RuleConfig) string {
	if r.Action == "book" && len(r.Units) == 0 {
		return "1"
	}
	return extractors(r.Units, "+")
}

// reference is where a booking's id is read: from the backend's answer to a book
// rule, from the request under the others.
func reference(r *rules.RuleConfig) string {
	if len(r.Hold) > 0 {
		return extractors(r.Hold, "+")
	}
	return extractors(r.Reference, "+")
}

func limits(l *rules.LimitsConfig) string {
	var texts []string
	for _, limit := range []struct {
		name string
		of   *rules.LimitConfig
	}{{"slot", l.Slot}, {"subject", l.Subject}, {"client", l.Client}, {"rule", l.Rule}} {
		if limit.of != nil {
			texts = append(texts, fmt.Sprintf("%s %v burst %d", limit.name, limit.of.Rate, limit.of.Burst))
		}
	}
	return cmp.Or(strings.Join(texts, ", "), "-")
}

func capacity(c rules.Capacity) string {
	switch c.Kind {
	case rules.CapacityNumber:
		return strconv.FormatInt(c.Units, 10)
	case rules.CapacityLearned:
		return "learned"
	}
	return "truth"
}

// pending is how long a booking waits for its confirm.
func pending(ttl time.Duration) string {
	if ttl == 0 {
		return "-"
	}
	return rules.FormatDuration(ttl)
}

func perSubject(p *rules.PoolConfig) string {
	var texts []string
	if p.OnePerSubject {
		texts = append(texts, "one a slot")
	}
	if p.MaxPerSubject > 0 {
		texts = append(texts, fmt.Sprintf("%d units", p.MaxPerSubject))
	}
	return cmp.Or(strings.Join(texts, ", "), "any")
}

func inflight(n int) string {
	if n == 0 {
		return "any"
	}
	return strconv.Itoa(n)
}

func opens(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.RFC3339)
}

// assumptions are what the promises rest on, with this configuration's figures.
func assumptions(config *rules.Config) string {
	var b strings.Builder
	b.WriteString(`
While the store keeps its data, the promises hold under these assumptions:
  A1  hold_ttl exceeds the time to the first byte + the time-out + the backend's
      longest commit after the gate gave up.`)
	if pool, left, ok := leastCommit(config); ok {
		fmt.Fprintf(&b, " Pool %s leaves it %s.", pool, rules.FormatDuration(left))
	}
	b.WriteString(`
  A2  A gate's monotonic clock runs as fast as the store's: the first byte is sent
      only while the lease leaves the time-out and a settlement, else it is
      decided again.
`)
	b.WriteString(truthAssumption(config))
	b.WriteString(`With constraints at the backend nothing is oversold, whatever fails. Without any,
exactness also needs keep_unknown: true on the pool, and unknown: reject (or probe) and
on_store_failure: reject on its rules.
`)
	return b.String()
}

// truthAssumption is what a look at the backend's own data has to be.
func truthAssumption(config *rules.Config) string {
	for _, p := range config.Pools {
		if p.Capacity.Truth != nil {
			return `  A3  A look starts after the store was read and sees the primary, uncached. What the
      backend answers is committed and visible, or will be within lag. Where total is
      a second value, both come from one snapshot.
`
		}
	}
	return `  A3  is about looks at the backend's own data, which no pool here has.
`
}

// leastCommit is the shortest time that any pool leaves the backend to commit
// after the gate gave up: what hold_ttl has beyond a rule's lease.
func leastCommit(config *rules.Config) (pool string, left time.Duration, ok bool) {
	for _, r := range config.Rules {
		p := config.Pools[r.Pool]
		if p == nil {
			continue
		}
		if own := p.HoldTTL - r.Lease(config); !ok || own < left {
			pool, left, ok = r.Pool, own, true
		}
	}
	return pool, left, ok
}
