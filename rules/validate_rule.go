package rules

import (
	"slices"
	"strings"
)

func (v *validator) rules(p place) {
	if len(v.cfg.Rules) == 0 {
		p.faultf("at least one rule is required: without one the gate would let everything through")
		return
	}
	first := map[string]place{}
	for i, r := range v.cfg.Rules {
		at := p.item(i)
		name := at.field("name")
		switch earlier, repeated := first[r.Name]; {
		case !name.written:
			name.faultf("is required")
		case repeated:
			name.faultf("there is a rule %s already, on line %d: names must be unique", r.Name, earlier.node().Line)
		default:
			checkName(name, r.Name)
			first[r.Name] = name
		}
		v.rule(at, r)
	}
}

func (v *validator) rule(p place, r *RuleConfig) {
	v.match(p.field("match"), &r.Match)
	v.action(p, r)
	v.variables(p, r)
	v.limits(p, r)
	if r.Idempotency != nil {
		v.idempotency(p.field("idempotency"), r)
		v.probe(p, r)
		v.issue(p, r)
		v.derive(p, r)
	}
	v.ownCookies(p, r)
	v.outcomes(p.field("outcomes"), r)
	v.retry(p.field("retry"), r)
	v.answers(p.field("answers"), r.Answers)
	if _, err := newCharset(r.Charset); err != nil {
		p.field("charset").faultf("%s", err)
	}
}

// variables checks that every path:NAME is in match.path.
func (v *validator) variables(p place, r *RuleConfig) {
	template, err := ParseTemplate(r.Match.Path)
	if err != nil || p.field("match").field("path").broken() {
		return
	}
	lists := map[string]Extractors{"slot": r.Slot, "subject": r.Subject, "units": r.Units, "hold": r.Hold}
	for _, name := range sortedKeys(lists) {
		checkVariables(p.field(name), lists[name], template)
	}
	if idem := r.Idempotency; idem != nil {
		at := p.field("idempotency")
		checkVariables(at.field("key"), idem.Key, template)
		checkVariables(at.field("partition"), idem.Partition, template)
		checkVariables(at.field("scope"), idem.Scope, template)
		checkVariables(at.field("fingerprint"), idem.Fingerprint.Extractors, template)
	}
	params := p.field("match").field("params")
	for _, name := range sortedKeys(r.Match.Params) {
		if !template.Has(name) {
			params.field(name).faultf("%s has no variable %s%s", template, name, suggestVariable(name, template))
		}
	}
}

func checkVariables(p place, list Extractors, template Template) {
	if p.broken() {
		return // a list with a hole has other indexes
	}
	for i, e := range list {
		if e.Source == FromPath && !template.Has(e.Name) {
			at := p.item(i)
			if from := at.field("from"); from.written {
				at = from
			}
			at.faultf("%s has no variable %s%s", template, e.Name, suggestVariable(e.Name, template))
		}
	}
}

func suggestVariable(name string, template Template) string {
	variables := template.Variables()
	if near := didYouMean(name, variables); near != "" {
		return near
	}
	if len(variables) == 0 {
		return ": write it as {" + name + "} there"
	}
	return ": it has " + strings.Join(variables, ", ")
}

func (v *validator) limits(p place, r *RuleConfig) {
	limits := p.field("limits")
	for name, limit := range map[string]*LimitConfig{
		"slot": r.Limits.Slot, "subject": r.Limits.Subject, "client": r.Limits.Client, "rule": r.Limits.Rule,
	} {
		if at := limits.field(name); limit != nil && limit.Rate.Count == 0 {
			at.field("rate").faultf("is required: write one such as 50/s")
		}
	}
	if r.Limits.Slot != nil && len(r.Slot) == 0 && !p.field("slot").written {
		limits.field("slot").faultf("needs the rule's slot: write where the request says it, such as slot: path:lesson")
	}
	if r.Limits.Subject != nil && len(r.Subject) == 0 && !p.field("subject").written {
		limits.field("subject").faultf("needs the rule's subject: write where the request says it, such as subject: json:/student_id")
	}
}

func (v *validator) idempotency(p place, r *RuleConfig) {
	idem := r.Idempotency
	if len(idem.Key) == 0 && !p.field("key").broken() {
		p.field("key").faultf("is empty: write where the key is, such as header:Idempotency-Key")
	}
	if idem.Group != r.Name {
		checkName(p.field("group"), idem.Group)
	}
	checkOutcomes(p.field("store"), idem.Store, keptOutcomes[r.Action], "an answer can be kept when it is")
}

// keptOutcomes are what `store` may name, by action.
var keptOutcomes = map[string][]string{
	"book":    {"booked", "duplicate", "refused", "sold_out"},
	"guard":   {"done", "booked", "duplicate", "refused", "sold_out"},
	"cancel":  {"done", "refused"},
	"confirm": {"done", "refused"},
}

func checkOutcomes(p place, list []Outcome, allowed []string, meaning string) {
	for i, o := range list {
		if o != NoOutcome && !slices.Contains(allowed, o.String()) {
			p.item(i).faultf("%s has no place here: %s %s", o, meaning, either(allowed))
		}
	}
}

func (v *validator) retry(p place, rule *RuleConfig) {
	r := &rule.Retry
	if on := p.field("on"); rule.settles() && len(r.On) > 0 {
		on.faultf("has no place with action %s, whose answers are never busy: remove it, the client may try again", rule.Action)
	}
	checkOutcomes(p.field("on"), r.On, []string{"busy"}, "only what the backend did not execute may be sent again, that is")
	if r.Backoff > r.MaxBackoff {
		p.field("backoff").faultf("%s is more than max_backoff, which is %s", FormatDuration(r.Backoff), FormatDuration(r.MaxBackoff))
	}
}
