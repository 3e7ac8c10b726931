package rules

import (
	"slices"
	"strings"
	"time"
)

// takes reports whether the key may be in a cookie.
func (c *IdempotencyConfig) takes(cookie string) bool { return c.Key.hasCookie(cookie) }

func (list Extractors) hasCookie(name string) bool {
	return slices.ContainsFunc(list, func(e Extractor) bool { return e.Source == FromCookie && e.Name == name })
}

// minIssueTTL is how long a booking page may at least stay open.
const minIssueTTL = 10 * time.Minute

// issue checks what hands out one-time ids, and that nothing else reads them.
func (v *validator) issue(rule place, r *RuleConfig) {
	idem := rule.field("idempotency")
	p, issue := idem.field("issue"), r.Idempotency.Issue
	on, cookie := p.field("on"), p.field("cookie")
	if issue == (IssueConfig{}) {
		return
	}
	if r.settles() {
		p.faultf("has no place with action %s: a page is issued an id for a booking", r.Action)
		return
	}
	switch {
	case issue.Cookie == "" && !cookie.faulty():
		cookie.faultf("is required: write the name of the cookie that the id is set in, such as sg_rid")
	case issue.Cookie != "" && (!tokenPattern.MatchString(issue.Cookie) || len(issue.Cookie) > 64):
		cookie.faultf("%q is not the name of a cookie: use up to 64 letters, digits, - and _", issue.Cookie)
	}
	if ttl := idem.field("ttl"); r.Idempotency.TTL < minIssueTTL && !ttl.faulty() {
		ttl.faultf("%s is too short for issue, whose ids live as long: a page may stay open for a while, write %s or more", FormatDuration(r.Idempotency.TTL), FormatDuration(minIssueTTL))
	}
	switch {
	case issue.On == "" && !on.faulty():
		on.faultf("is required: write the page that hands the id out, such as GET /lessons/{lesson}")
		return
	case issue.On == "" || on.faulty():
		return
	case len(r.Slot) == 0 && !rule.field("slot").written:
		p.faultf("needs the rule's slot, which an id is for: write where the request says it, such as slot: path:lesson")
		return
	}
	method, target, found := strings.Cut(issue.On, " ")
	if !found || method != "GET" {
		on.faultf("%q: %s", issue.On, errPageMethod)
		return
	}
	path, _, _ := strings.Cut(target, "?")
	if checkPath(on, path); on.broken() {
		return
	}
	page, err := parsePage(issue.On)
	if err == nil {
		_, err = page.slot(r.Slot)
	}
	if err != nil && !rule.field("slot").faulty() {
		on.faultf("%s", err)
	}
}

// ownCookies: the gate takes its cookies off a request, so that only a key can be in one,
// and that of a rule for which ids are handed out.
func (v *validator) ownCookies(rule place, r *RuleConfig) {
	lists := map[string]Extractors{"slot": r.Slot, "subject": r.Subject, "units": r.Units, "hold": r.Hold}
	idem := rule.field("idempotency")
	ofKeys := map[string]Extractors{}
	if r.Idempotency != nil {
		ofKeys["partition"], ofKeys["scope"] = r.Idempotency.Partition, r.Idempotency.Scope
		ofKeys["fingerprint"] = r.Idempotency.Fingerprint.Extractors
	}
	for _, cookie := range issuedCookies(v.cfg.Rules) {
		refuse := func(p place, lists map[string]Extractors) {
			for _, name := range sortedKeys(lists) {
				if lists[name].hasCookie(cookie) {
					p.field(name).faultf("cookie:%s is the gate's own, set by issue: only key can name it", cookie)
				}
			}
		}
		refuse(rule, lists)
		refuse(idem, ofKeys)
		if r.Idempotency != nil && r.Idempotency.Issue.Cookie != cookie && r.Idempotency.takes(cookie) && !v.issues(cookie, r) {
			idem.field("key").faultf("cookie:%s is set by the issue of rules of another group or pool: write issue here, or the same group and pool", cookie)
		}
	}
}

// issues reports whether some rule hands out ids that the rule can take.
func (v *validator) issues(cookie string, to *RuleConfig) bool {
	return slices.ContainsFunc(v.cfg.Rules, func(r *RuleConfig) bool {
		idem := r.Idempotency
		return idem != nil && idem.Issue.Cookie == cookie && idem.Group == to.Idempotency.Group && r.Pool == to.Pool
	})
}

// derive: what a request says is taken for its key only where that names one subject.
func (v *validator) derive(rule place, r *RuleConfig) {
	idem := r.Idempotency
	p := rule.field("idempotency").field("derive")
	switch {
	case idem.Derive == 0 || p.faulty():
	case len(r.Subject) == 0 && !rule.field("subject").faulty():
		p.faultf("needs the rule's subject, else equal requests of two people are taken for one: write where the request says it, such as subject: json:/student_id")
	case idem.Required:
		p.faultf("has no place with required: true, by which no request goes without a key: remove one of them")
	case idem.Derive < time.Second:
		p.faultf("%s is shorter than a double click and its answer may take: write 1s or more", FormatDuration(idem.Derive))
	case idem.Derive > idem.TTL:
		p.faultf("%s is more than ttl, which is %s: a derived key is no better than one that was sent", FormatDuration(idem.Derive), FormatDuration(idem.TTL))
	}
}
