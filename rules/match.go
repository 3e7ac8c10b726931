package rules

import (
	"slices"
	"strings"
)

// Match finds the rule a request falls under, the first in the file that fits. A
// request without a rule gives a zero Match.
//
// While r.Body is nil, method, path, host and headers decide, so that it works
// before the body has been read. Match.NeedsBody then tells that the body may change
// the result, by a _method field: read it and call Match again.
//
// A request that backends may route in more than one way (its path has several
// readings, its method an override) is tried in every way. One rule in all of them
// decides; different rules, or different path variables that the rule reads, are
// refused as ambiguous.
func (s *Set) Match(r *Request) (m Match, refusal *Refusal) {
	if r.Path == "*" && r.Method == "OPTIONS" {
		return m, nil // about the server, not about a resource (RFC 9110, 9.3.7)
	}
	refusal = s.match(r, &m)
	if refusal == nil && s.dialect.rewrites {
		refusal = s.matchRewritten(r, &m)
	}
	return m, refusal
}

// match goes by the request's own path. What it finds is written to m, which is zero before,
// and after a refusal. (A result would have a place on the stack at each step on the way, and
// the stack is that of a connection.)
func (s *Set) match(r *Request, m *Match) *Refusal {
	t := trial{set: s, req: r}
	var segmentBuf [maxInlineSegments]string
	paths, err := readPath(r.Path, s.dialect, segmentBuf[:0])
	var asked overrides
	var methodBuf [maxMethods]string
	s.dialect.inHead(r, &asked)
	methods := s.dialect.methodsOf(r.Method, &asked, methodBuf[:0])
	bodyMay := s.dialect.bodyMayOverride(r)
	if err != nil {
		if asked.malformed || bodyMay {
			methods = append(methodBuf[:0], anyMethod)
		}
		if s.dialect.optional && methods[0] != anyMethod {
			methods = append(methods, r.Method)
		}
		if r.Path == "" || r.Path[0] != '/' || t.mayMatch(methods) {
			return refuse(RefuseAmbiguous, "the path cannot be read: %v", err)
		}
		return nil
	}
	bodyMay = bodyMay && t.bodyMatters(methods, &paths)
	if bodyMay && r.Body != nil {
		if refusal := s.dialect.inBody(r, &asked, s.maxBody); refusal != nil {
			return refusal
		}
		methods = s.dialect.methodsOf(r.Method, &asked, methodBuf[:0])
	}
	refusal := t.decideOr(r.Method, methods, &paths, asked.malformed, m)
	m.NeedsBody = bodyMay && r.Body == nil && refusal == nil
	return refusal
}

// decideOr is decide that goes by the method that was sent where the overriding one
// has no rule and the backend may know no overriding.
func (t *trial) decideOr(sent string, methods []string, paths *readings, malformed bool, found *Match) *Refusal {
	refusal := t.decide(methods, paths, malformed, found)
	if t.set.dialect.optional && found.Rule == nil && refusal == nil {
		var one [1]string
		return t.decide(append(one[:0], strings.ToUpper(sent)), paths, malformed, found)
	}
	return refusal
}

// decide tries every method with every reading of the path.
func (t *trial) decide(methods []string, paths *readings, malformed bool, found *Match) (refusal *Refusal) {
	var tried [1]string
	if malformed {
		methods = append(tried[:0], anyMethod)
	}
	for _, method := range methods {
		for i := range paths.count() {
			p, ok := paths.at(i)
			switch {
			case !ok:
			case found.Rule != nil:
				refusal = t.compare(found, method, &p)
			case t.match(method, &p, found) && malformed:
				refusal = refuse(RefuseAmbiguous, "a method override is not a method, or there are too many")
			}
			if refusal != nil {
				*found = Match{}
				return refusal
			}
		}
	}
	return nil
}

// compare refuses what fits another rule than the one that was found, or that with other values.
func (t *trial) compare(found *Match, method string, p *reading) *Refusal {
	var m Match
	switch {
	case !t.match(method, p, &m):
	case found.Rule != m.Rule:
		return refuse(RefuseAmbiguous, "the request fits two rules, by different readings of its path or method")
	case !m.Rule.sameParams(&found.Params, &m.Params):
		return refuse(RefuseAmbiguous, "the path can be read with different values")
	}
	return nil
}

// bodyMatters reports whether another method than these could change the rule.
func (t *trial) bodyMatters(methods []string, paths *readings) bool {
	lax := t.set.dialect.lax
	for i := range paths.count() {
		p, ok := paths.at(i)
		if !ok {
			continue
		}
		for _, r := range t.set.Rules {
			admitted := slices.ContainsFunc(methods, r.admitsMethod)
			// With lax, a rule that fits already goes on to fit.
			if (!admitted || !lax && len(r.Match.Methods) > 0) && t.fits(r, anyMethod, &p) != nil {
				return true
			}
		}
	}
	return false
}

// trial holds a request against the rules of a set.
type trial struct {
	set  *Set
	req  *Request
	host string // canonical, "" until a rule asks
}

// anyMethod stands for a method that could not be read.
const anyMethod = ""

// match finds the first rule that fits one method and one reading of the path.
func (t *trial) match(method string, p *reading, m *Match) bool {
	for _, r := range t.set.Rules {
		if route := t.fits(r, method, p); route != nil {
			m.Rule, m.Method, m.Path = r, method, t.path(p)
			route.bind(p, &m.Params)
			return true
		}
	}
	return false
}

// path is the text of a reading: the request's own where it is that.
func (t *trial) path(p *reading) string {
	if p.cut == 0 && p.text == t.req.Path {
		return t.req.Path
	}
	return p.String()
}

// fits returns the route by which a rule fits one method and one reading of the path.
func (t *trial) fits(r *Rule, method string, p *reading) *Template {
	d := t.set.dialect
	if r.loose && p.is&readByDialect == 0 || !r.loose && p.is&normalForm == 0 {
		return nil
	}
	if !r.loose {
		d = nil
	}
	for i := range r.routes {
		route := &r.routes[i]
		if route.fits(p, d) && t.headFits(r, method) &&
			(len(r.params) == 0 || r.admitsParams(route, p)) && !r.excepts(p) {
			return route
		}
	}
	return nil
}

// mayMatch reports whether some rule could mean a path that has no normal form.
func (t *trial) mayMatch(methods []string) bool {
	d := t.set.dialect
	for _, suspects := range suspectPaths(t.req.Path, d) {
		for i := range suspects.count() {
			p, ok := suspects.at(i)
			if !ok {
				continue
			}
			for _, r := range t.set.Rules {
				means := func(route Template) bool { return route.mayFit(&p, d) }
				fits := func(method string) bool { return t.headFits(r, method) }
				if slices.ContainsFunc(r.routes, means) && slices.ContainsFunc(methods, fits) {
					return true
				}
			}
		}
	}
	return false
}

// headFits checks all but the path.
func (t *trial) headFits(r *Rule, method string) bool {
	if !r.admitsMethod(method) {
		return false
	}
	if len(r.hosts) > 0 {
		if t.host == "" {
			t.host = canonicalHost(t.req.Host)
		}
		if !slices.ContainsFunc(r.hosts, func(h string) bool { return hostFits(h, t.host) }) {
			return false
		}
	}
	for i := range r.condition {
		c := &r.condition[i]
		if !slices.ContainsFunc(t.req.Header, func(f Field) bool { return sameHeader(f.Name, c.name) && c.holds(f.Value) }) {
			return false
		}
	}
	return true
}

// admitsMethod: a GET rule is for HEAD too, as servers run the same handler. Letter
// case is ignored, as some frameworks do.
func (r *Rule) admitsMethod(method string) bool {
	if method == anyMethod || len(r.Match.Methods) == 0 {
		return true
	}
	for _, m := range r.Match.Methods {
		if strings.EqualFold(m, method) || method == "HEAD" && strings.EqualFold(m, "GET") {
			return true
		}
	}
	return false
}

func (r *Rule) admitsParams(route *Template, p *reading) bool {
	var bound Params
	route.bind(p, &bound)
	params := bound.All()
	for name, pattern := range r.params {
		i := slices.IndexFunc(params, func(p Param) bool { return p.Name == name })
		if i < 0 || !pattern.MatchString(params[i].Value) {
			return false
		}
	}
	return true
}

// sameParams compares what the rule's extractors read.
func (r *Rule) sameParams(one, other *Params) bool {
	a, b := one.All(), other.All()
	for i := range a {
		if a[i].Value != b[i].Value && slices.Contains(r.pathNames, a[i].Name) {
			return false
		}
	}
	return true
}

// excepts is always exact: a loose exception could be used to dodge the rule.
func (r *Rule) excepts(p *reading) bool {
	return slices.ContainsFunc(r.except, func(t Template) bool { return t.fits(p, nil) })
}

// canonicalHost drops what does not tell hosts apart here: letter case, the port, a
// final dot.
func canonicalHost(host string) string {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host = host[:i]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// hostFits: "*.example.com" stands for every name below example.com.
func hostFits(pattern, host string) bool {
	if below, ok := strings.CutPrefix(pattern, "*."); ok {
		_, parent, found := strings.Cut(host, ".")
		for found && parent != below {
			_, parent, found = strings.Cut(parent, ".")
		}
		return found
	}
	return pattern == host
}
