package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Considered is what Consider says of one rule.
type Considered struct {
	Rule *Rule
	// Fits: the rule takes such requests. The first that does is Match's.
	Fits bool
	// Why it does not, or by which method and reading of the path it does.
	Why string
}

// Consider tells of every rule, in the order of the file, whether a request fits it and
// why not. It is for people, and goes by the same matching as Match: what it leaves out
// of a rule until the request fits is the reason.
func (s *Set) Consider(r *Request) []Considered {
	t := trial{set: s, req: r}
	var segments [maxInlineSegments]string
	paths, unreadable := readPath(r.Path, s.dialect, segments[:0])
	var asked overrides
	s.dialect.inHead(r, &asked)
	if r.Body != nil && s.dialect.bodyMayOverride(r) {
		_ = s.dialect.inBody(r, &asked, s.maxBody) // Match has refused what cannot be read
	}
	methods := s.dialect.methodsOf(r.Method, &asked, nil)

	considered := make([]Considered, 0, len(s.Rules))
	for _, rule := range s.Rules {
		c := Considered{Rule: rule}
		if unreadable != nil {
			c.Why = fmt.Sprintf("the path cannot be read: %v", unreadable)
		} else {
			c.Fits, c.Why = t.explain(rule, methods, &paths)
		}
		considered = append(considered, c)
	}
	return considered
}

// condition is a part of match, in the order in which they are left out.
type condition struct {
	omit func(*Rule)
	why  func(*Rule, *Request) string
}

var conditions = []condition{
	{func(r *Rule) { r.except = nil }, func(r *Rule, _ *Request) string {
		return "the path is one of match.except: " + strings.Join(r.Match.Except, ", ")
	}},
	{func(r *Rule) { r.params = nil }, func(r *Rule, _ *Request) string {
		var patterns []string
		for _, name := range slices.Sorted(maps.Keys(r.Match.Params)) {
			patterns = append(patterns, fmt.Sprintf("%s: %s", name, r.Match.Params[name]))
		}
		return "a path variable does not fit match.params, " + strings.Join(patterns, ", ")
	}},
	{func(r *Rule) { r.condition = nil }, func(r *Rule, _ *Request) string {
		return "match.headers ask for " + strings.Join(slices.Sorted(maps.Keys(r.Match.Headers)), ", ") + " with other values, or they are missing"
	}},
	{func(r *Rule) { r.hosts = nil }, func(r *Rule, q *Request) string {
		return fmt.Sprintf("the host is %q, and match.hosts are %s", q.Host, strings.Join(r.Match.Hosts, ", "))
	}},
	{func(r *Rule) { r.Match.Methods = nil }, func(r *Rule, q *Request) string {
		return fmt.Sprintf("the method is %s, and match.methods are %s", q.Method, strings.Join(r.Match.Methods, ", "))
	}},
}

func (t *trial) explain(rule *Rule, methods []string, paths *readings) (fits bool, why string) {
	if why, ok := t.tryAll(rule, methods, paths); ok {
		return true, why
	}
	relaxed := *rule
	for _, c := range conditions {
		c.omit(&relaxed)
		if _, ok := t.tryAll(&relaxed, methods, paths); ok {
			return false, c.why(rule, t.req)
		}
	}
	why = fmt.Sprintf("the path %s does not fit %s", t.req.Path, rule.Match.Path)
	if !rule.loose {
		why += ", which matches exactly"
	}
	return false, why
}

// tryAll names the first method and reading of the path by which the rule fits.
func (t *trial) tryAll(rule *Rule, methods []string, paths *readings) (by string, fits bool) {
	for _, method := range methods {
		for i := range paths.count() {
			if p, ok := paths.at(i); ok && t.fits(rule, method, &p) != nil {
				return method + " " + p.String(), true
			}
		}
	}
	return "", false
}
