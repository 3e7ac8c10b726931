package rules

import (
	"regexp"
	"slices"
	"strings"
)

// shadowed compares a rule with those above it: first match wins, so one above
// may take some of its requests, or all.
func (w *warner) shadowed(rules place, index int) {
	r := w.cfg.Rules[index]
	at := rules.item(index).field("match").field("path")
	var overlaps []*RuleConfig
	for i, above := range w.cfg.Rules[:index] {
		if rules.item(i).broken() {
			continue
		}
		if takesAll(above, r) {
			off := ""
			if above.Mode == "off" {
				off = " and lets it through ungated, its mode being off"
			}
			at.warnf("rule %s can never match: rule %s above takes all of it%s", r.Name, above.Name, off)
			return
		}
		if meet(above, r) {
			overlaps = append(overlaps, above)
		}
	}
	for i, above := range w.cfg.Rules[:index] {
		if !rules.item(i).broken() && w.twins(above, r) {
			at.warnf("rule %s and rule %s above can be one path to backends, which drop a suffix, a script's name or what follows it: what fits both goes to %s or is refused as ambiguous; set match.exact on both if the backend tells them apart", r.Name, above.Name, above.Name)
		}
	}
	for _, above := range overlaps {
		at.warnf("rule %s overlaps rule %s above: what fits both goes to %s", r.Name, above.Name, above.Name)
	}
}

// takesAll reports whether every request that fits b fits a. It may say no where
// only an analysis of regular expressions could tell.
func takesAll(a, b *RuleConfig) bool {
	at, errA := ParseTemplate(a.Match.Path)
	bt, errB := ParseTemplate(b.Match.Path)
	return errA == nil && errB == nil && at.Covers(bt) &&
		(!a.Match.Exact || b.Match.Exact && at.text == bt.text) &&
		(len(a.Match.Params) == 0 || at.text == bt.text && mapContains(b.Match.Params, a.Match.Params)) &&
		len(a.Match.Except) == 0 &&
		methodsCover(a.Match.Methods, b.Match.Methods) &&
		hostsCover(a.Match.Hosts, b.Match.Hosts) &&
		headersCover(a.Match.Headers, b.Match.Headers)
}

// meet reports whether some request fits both.
func meet(a, b *RuleConfig) bool {
	at, errA := ParseTemplate(a.Match.Path)
	bt, errB := ParseTemplate(b.Match.Path)
	return errA == nil && errB == nil && at.Overlaps(bt) &&
		!(a.Match.Exact && b.Match.Exact && literalCaseDiffers(at, bt)) &&
		paramsMeet(at, a.Match.Params, bt, b.Match.Params) &&
		!excepts(a.Match.Except, bt) && !excepts(b.Match.Except, at) &&
		methodsMeet(a.Match.Methods, b.Match.Methods) &&
		hostsMeet(a.Match.Hosts, b.Match.Hosts) &&
		headersMeet(a.Match.Headers, b.Match.Headers)
}

// twins reports whether backends of the dialect may take a path of one rule for one
// of the other: without its suffix, a script's name or what follows it, a folder's
// index.
func (w *warner) twins(a, b *RuleConfig) bool {
	loose := func(r *RuleConfig) bool { return !r.Match.Exact && (r.Action == "book" || r.Action == "guard") }
	at, errA := ParseTemplate(a.Match.Path)
	bt, errB := ParseTemplate(b.Match.Path)
	return errA == nil && errB == nil && loose(a) && loose(b) && !at.Overlaps(bt) &&
		(w.leads(a, at, b, bt) || w.leads(b, bt, a, at)) &&
		methodsMeet(a.Match.Methods, b.Match.Methods) && hostsMeet(a.Match.Hosts, b.Match.Hosts) && headersMeet(a.Match.Headers, b.Match.Headers)
}

var templateVariable = regexp.MustCompile(`\{[^}]*\}`)

// leads reports whether a path of one rule has a reading that fits the other.
func (w *warner) leads(from *RuleConfig, ft Template, to *RuleConfig, tt Template) bool {
	d := dialectNamed(w.cfg.Upstream.Dialect)
	paths, err := readPath(templateVariable.ReplaceAllString(ft.text, "0"), d, nil)
	if err != nil {
		return false
	}
	plain := len(from.Match.Hosts)+len(from.Match.Headers)+len(from.Match.Params)+len(from.Match.Except) == 0
	routes := slices.DeleteFunc(d.routesOf(tt), func(route Template) bool { // as keepApart does
		return plain && methodsCover(from.Match.Methods, to.Match.Methods) && ft.Covers(route) && route.Covers(ft)
	})
	return slices.ContainsFunc(routes, func(route Template) bool {
		for i := range paths.count() {
			if p, ok := paths.at(i); ok && p.is&readByDialect != 0 && route.fits(&p, d) {
				return true
			}
		}
		return slices.ContainsFunc(d.routesOf(ft), route.Overlaps)
	})
}

func literalCaseDiffers(a, b Template) bool {
	for i := range min(len(a.segments), len(b.segments)) {
		s, o := a.segments[i], b.segments[i]
		if s.name == "" && o.name == "" && s.literal != o.literal {
			return true
		}
	}
	return false
}

// paramsMeet is no where a pattern refuses the other's literal, and where both
// have different patterns at one place: those are there to tell two rules apart.
func paramsMeet(a Template, aParams map[string]string, b Template, bParams map[string]string) bool {
	for i := range min(len(a.segments), len(b.segments)) {
		s, o := a.segments[i], b.segments[i]
		sPattern, oPattern := aParams[s.name], bParams[o.name]
		switch {
		case s.name != "" && o.name != "" && sPattern != "" && oPattern != "" && sPattern != oPattern,
			s.name == "" && oPattern != "" && !patternFits(oPattern, s.literal),
			o.name == "" && sPattern != "" && !patternFits(sPattern, o.literal):
			return false
		}
	}
	return true
}

func patternFits(pattern, literal string) bool {
	re, err := regexp.Compile(`^(?i:` + pattern + `)$`)
	return err != nil || re.MatchString(literal)
}

func excepts(except []string, t Template) bool {
	return slices.ContainsFunc(except, func(path string) bool {
		e, err := ParseTemplate(path)
		return err == nil && e.Covers(t)
	})
}

// methodsCover: no methods are all methods, and GET takes HEAD.
func methodsCover(a, b []string) bool {
	if len(a) == 0 {
		return true
	}
	return len(b) > 0 && !slices.ContainsFunc(b, func(m string) bool { return !hasMethod(a, m) })
}

func methodsMeet(a, b []string) bool {
	has := func(in []string) func(string) bool { return func(m string) bool { return hasMethod(in, m) } }
	return len(a) == 0 || len(b) == 0 || slices.ContainsFunc(a, has(b)) || slices.ContainsFunc(b, has(a))
}

func hasMethod(list []string, method string) bool {
	return slices.Contains(list, method) || method == "HEAD" && slices.Contains(list, "GET")
}

func hostsCover(a, b []string) bool {
	if len(a) == 0 {
		return true
	}
	return len(b) > 0 && !slices.ContainsFunc(b, func(h string) bool { return !hasHost(a, h) })
}

func hostsMeet(a, b []string) bool {
	return len(a) == 0 || len(b) == 0 ||
		slices.ContainsFunc(b, func(h string) bool { return hasHost(a, h) }) ||
		slices.ContainsFunc(a, func(h string) bool { return hasHost(b, h) })
}

func hasHost(list []string, host string) bool {
	return slices.ContainsFunc(list, func(h string) bool { return hostFits(canonicalHost(h), canonicalHost(host)) })
}

// headersCover: what a asks for, b asks for too.
func headersCover(a, b map[string]string) bool {
	for name, value := range a {
		other, ok := headerIn(b, name)
		if !ok || !valueCovers(value, other) {
			return false
		}
	}
	return true
}

func headersMeet(a, b map[string]string) bool {
	for name, value := range a {
		if other, ok := headerIn(b, name); ok && !valueCovers(value, other) && !valueCovers(other, value) {
			return false
		}
	}
	return true
}

func headerIn(headers map[string]string, name string) (string, bool) {
	for n, value := range headers {
		if strings.EqualFold(n, name) {
			return value, true
		}
	}
	return "", false
}

// valueCovers compares conditions on a header field: a value, or prefix*.
func valueCovers(a, b string) bool {
	prefix, open := strings.CutSuffix(a, "*")
	return a == b || open && strings.HasPrefix(strings.TrimSuffix(b, "*"), prefix)
}

func mapContains(m, part map[string]string) bool {
	for key, value := range part {
		if m[key] != value {
			return false
		}
	}
	return true
}
