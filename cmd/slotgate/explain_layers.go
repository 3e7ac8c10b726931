package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/slotgate/slotgate/rules"
)

// layers says what each layer does with a request, from the outside in, in the order
// in which a gate asks them.
func layers(rule *rules.Rule, facts *explainedFacts, config *rules.Config) []explainedLayer {
	var list []explainedLayer
	add := func(layer, format string, args ...any) {
		list = append(list, explainedLayer{layer, fmt.Sprintf(format, args...)})
	}
	if l := rule.Limits.Rule; l != nil {
		add("rule limit", "%v, burst %d, in this process; beyond: 429", l.Rate, l.Burst)
	}
	if facts == nil {
		add("forward", "at once: no pool, no key, no limits by subject or client")
		return list
	}
	add("key", "%s", keyLayer(rule, facts))
	for _, limit := range []struct {
		name string
		of   *rules.LimitConfig
	}{{"subject", rule.Limits.Subject}, {"client", rule.Limits.Client}} {
		if limit.of != nil && (limit.name != "subject" || facts.Subject != "") {
			add(limit.name+" limit", "%v, burst %d, all gates together; beyond: 429", limit.of.Rate, limit.of.Burst)
		}
	}
	switch {
	case rule.Pool == nil:
	case rule.Action == "book":
		list = append(list, poolLayers(rule, facts)...)
	default:
		add("hold", "%s", holdLayer(rule))
	}
	tries := "once"
	if len(rule.Retry.On) > 0 {
		tries = fmt.Sprintf("again, up to %d times in all, where the backend says busy", rule.Retry.Attempts)
	}
	add("forward", "to %s; %s; %s for the whole answer", config.Upstream.URL, tries, rules.FormatDuration(rule.UpstreamTimeout(config)))
	add("outcome", "%s", outcomeLayer(rule))
	if rule.ProbesUnknown() {
		add("probe", probeLayer)
	}
	if rule.Idempotency != nil && facts.Key != "" {
		var kept []string
		for _, o := range rule.Idempotency.Store {
			kept = append(kept, o.String())
		}
		add("stored answer", "after %s, for %s", strings.Join(kept, " or "), rules.FormatDuration(keyTime(rule.Idempotency, facts)))
	}
	add("store away", "%s", awayLayer(rule))
	return list
}

func keyLayer(rule *rules.Rule, facts *explainedFacts) string {
	idem := rule.Idempotency
	switch {
	case idem == nil:
		return "none: the rule has no idempotency"
	case facts.Key == "":
		return noKeyLayer(idem)
	}
	text := keyMeaning(facts) + "; while the first runs: "
	if idem.InFlight == "reject" {
		text += "409"
	} else {
		text += "waits up to " + rules.FormatDuration(idem.Wait)
	}
	text += "; first one's result unknown: "
	switch {
	case rule.RetryUnknown():
		return text + "tried again under the same hold"
	case rule.ProbesUnknown():
		return text + "409 outcome-unknown until a probe finds out"
	}
	return text + "409 outcome-unknown"
}

const probeLayer = "an outcome that is unknown: truth is asked whether the subject has the slot; if so it is booked, if not by the time at which the backend must be done, it is refused and the units are free"

func poolLayers(rule *rules.Rule, facts *explainedFacts) []explainedLayer {
	p := rule.Pool
	var list []explainedLayer
	add := func(layer, format string, args ...any) {
		list = append(list, explainedLayer{layer, fmt.Sprintf(format, args...)})
	}
	if p.OnePerSubject && facts.Subject != "" {
		add("one per subject", "the subject holds this slot already: 409 duplicate")
	}
	if p.MaxPerSubject > 0 && facts.Subject != "" {
		add("max per subject", "%d units in the whole pool; beyond: 429", p.MaxPerSubject)
	}
	if !p.OpensAt.IsZero() {
		add("opening", "closed until %s, unless the slot has its own time: 409", p.OpensAt.Format(time.RFC3339))
	}
	count := "units"
	if facts.Units == 1 {
		count = "unit"
	}
	switch p.Capacity.Kind {
	case rules.CapacityNumber:
		add("units", "takes %d %s of %d, unless the slot has its own number; not enough: 409 sold-out", facts.Units, count, p.Capacity.Units)
	case rules.CapacityLearned:
		add("units", "takes %d %s until the backend says that it is sold out", facts.Units, count)
	default:
		add("units", "takes %d %s of what truth says is left; not enough: 409 sold-out", facts.Units, count)
	}
	if cache := repeated(rule, facts); cache > 0 {
		add("reject cache", "sold-out is told again for up to %s without asking the store, to whoever has nothing in the slot", rules.FormatDuration(cache))
	}
	if l := rule.Limits.Slot; l != nil {
		add("slot limit", "%v, burst %d, all gates together; beyond: 429", l.Rate, l.Burst)
	}
	if p.MaxInflight > 0 {
		add("in flight", "%d of a slot at the backend at once; others wait up to %s, then 503 busy", p.MaxInflight, rules.FormatDuration(p.Queue.Wait))
	}
	return list
}

// repeated is for how long a sold-out is repeated: not where a slot does not know enough of
// a request, and no longer than what it rests on.
func repeated(rule *rules.Rule, facts *explainedFacts) time.Duration {
	p, idem := rule.Pool, rule.Idempotency
	if p.MaxPerSubject > 0 || idem != nil && facts.Key != "" && p.Retain < keyTime(idem, facts) {
		return 0
	}
	if t := p.Capacity.Truth; t != nil {
		return min(p.RejectCache, t.Hot/2)
	}
	return p.RejectCache
}

func holdLayer(rule *rules.Rule) string {
	how := "the only one of slot and subject"
	if len(rule.Hold) > 0 {
		how = "the one whose booking has that reference"
	}
	if rule.Action == "cancel" {
		return "frees a hold once the backend says done: " + how
	}
	return "makes a pending hold final once the backend says done: " + how
}

func outcomeLayer(rule *rules.Rule) string {
	rest := "2xx booked, 4xx refused, 503 with Retry-After busy, else unknown"
	if rule.Action == "cancel" || rule.Action == "confirm" {
		rest = "2xx done, 4xx refused, else unknown"
	}
	switch n := len(rule.Outcomes); n {
	case 0:
		return rest
	case 1:
		return "by the outcomes line; what it does not fit: " + rest
	default:
		return fmt.Sprintf("by the first of %d outcomes lines that fits; what none fits: %s", n, rest)
	}
}

func awayLayer(rule *rules.Rule) string {
	switch rule.OnStoreFailure {
	case "reject":
		return "503 store-down"
	case "local":
		return fmt.Sprintf("passed on within local limits, at most %g of what was left when the store was last seen", rule.Passthrough.Share)
	}
	return fmt.Sprintf("passed on within local limits: slot %v, rule %v; the backend's own constraints decide", rule.Passthrough.Slot.Rate, rule.Passthrough.Rule.Rate)
}
