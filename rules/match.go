package rules

import (
	"slices"
	"strings"
)

// Match finds the rule a request falls under, the first in the file that fits. It
// looks at method, path, host and headers only, so it works before the body has
// been read. A request without a rule gives a zero Match.
//
// A request that backends may route in more than one way (its path has several
// readings, its method an override) is tried in every way. One rule in all of them
// decides; different rules, or different path variables, are refused as ambiguous.
func (s *Set) Match(r *Request) (Match, *Refusal) {
	if r.Path == "*" && r.Method == "OPTIONS" {
		return Match{}, nil // about the server, not about a resource (RFC 9110, 9.3.7)
	}
	t := trial{set: s, req: r}
	var methodBuf [maxMethods]string
	methods, malformed := effectiveMethods(r, methodBuf[:0])
	if malformed {
		methods = append(methodBuf[:0], anyMethod)
	}
	var segmentBuf [maxInlineSegments]string
	first, others, err := readPath(r.Path, segmentBuf[:0])
	if err != nil {
		if r.Path == "" || r.Path[0] != '/' || t.mayMatch(methods) {
			return Match{}, refuse(RefuseAmbiguous, "the path cannot be read: %v", err)
		}
		return Match{}, nil
	}
	var found Match
	for _, method := range methods {
		for i := -1; i < len(others); i++ {
			p := &first
			if i >= 0 {
				p = &others[i]
			}
			m := t.match(method, p, i < 0)
			switch {
			case m.Rule == nil:
			case found.Rule == nil:
				found = m
			case found.Rule != m.Rule:
				return Match{}, refuse(RefuseAmbiguous, "the request fits two rules, by different readings of its path or method")
			case !slices.Equal(found.Params, m.Params):
				return Match{}, refuse(RefuseAmbiguous, "the path can be read with different values")
			}
		}
	}
	if malformed && found.Rule != nil {
		return Match{}, refuse(RefuseAmbiguous, "a method override is not a method, or there are too many")
	}
	return found, nil
}

// trial holds a request against the rules of a set.
type trial struct {
	set  *Set
	req  *Request
	host string // canonical, "" until a rule asks
}

// anyMethod stands for a method that could not be read.
const anyMethod = ""

// match returns the first rule that fits one method and one reading of the path.
// Only the normal form counts for rules that match exactly.
func (t *trial) match(method string, p *reading, normal bool) Match {
	for _, r := range t.set.Rules {
		if !normal && !r.loose || !r.template.fits(p, !r.loose) || !t.headFits(r, method) {
			continue
		}
		params := r.template.bind(p)
		if !r.admitsParams(params) || r.excepts(p) {
			continue
		}
		return Match{Rule: r, Method: method, Path: p.String(), Params: params}
	}
	return Match{}
}

// mayMatch reports whether some rule could mean a path that has no normal form.
func (t *trial) mayMatch(methods []string) bool {
	suspects := suspectPaths(t.req.Path)
	for _, r := range t.set.Rules {
		fits := func(method string) bool { return t.headFits(r, method) }
		shape := func(p reading) bool { return r.template.mayFit(&p) }
		if slices.ContainsFunc(methods, fits) && slices.ContainsFunc(suspects, shape) {
			return true
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

func (r *Rule) admitsParams(params []Param) bool {
	for name, pattern := range r.params {
		i := slices.IndexFunc(params, func(p Param) bool { return p.Name == name })
		if i < 0 || !pattern.MatchString(params[i].Value) {
			return false
		}
	}
	return true
}

// excepts is always exact: a loose exception could be used to dodge the rule.
func (r *Rule) excepts(p *reading) bool {
	return slices.ContainsFunc(r.except, func(t Template) bool { return t.fits(p, true) })
}

// maxMethods bounds the different methods one request may ask for.
const maxMethods = 4

// effectiveMethods lists the methods a backend may see, in upper case: the one sent
// and what overrides it. Malformed reports an override that is no method at all, or
// too many of them.
func effectiveMethods(r *Request, buf []string) (methods []string, malformed bool) {
	methods = append(buf, strings.ToUpper(r.Method))
	add := func(value string) {
		if value == "" {
			return
		}
		method := strings.ToUpper(value)
		if slices.Contains(methods, method) {
			return
		}
		if !isToken(value) || len(methods) == maxMethods {
			malformed = true
			return
		}
		methods = append(methods, method)
	}
	for i := range r.Header {
		f := &r.Header[i]
		// Lengths first: this runs for every line of every request.
		switch len(f.Name) {
		case len("X-HTTP-Method-Override"), len("X-HTTP-Method"), len("X-Method-Override"):
			if sameHeader(f.Name, "X-HTTP-Method-Override") || sameHeader(f.Name, "X-HTTP-Method") || sameHeader(f.Name, "X-Method-Override") {
				add(f.Value)
			}
		}
	}
	for piece := range splitPairs(r.Query) {
		name, value, _ := strings.Cut(piece, "=")
		if name, ok := decodePercent(name, true); ok && foldName(name) == methodField {
			value, _ = decodePercent(value, true)
			add(value)
		}
	}
	return methods, malformed
}

// methodField is the query or form field by which many frameworks override POST.
const methodField = "_method"

// isToken: RFC 9110, 5.6.2.
func isToken(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' {
			continue
		}
		if strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
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
