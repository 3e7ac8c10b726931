package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Issued finds the one-time ids that a gate has handed out (idempotency.issue) among
// what a request brings.
type Issued interface {
	// ID is the id in the cookie, as configured, that was issued to this group of rules
	// for the slot of the pool; "" when the request has none that is good.
	ID(cookie, group, pool, slot string) string
}

// Page is a fetch of the page with which a rule hands out one-time ids.
type Page struct {
	Rule *Rule
	Slot string // that the page is about, as the rule's bookings name it
}

// IssuedCookies are the names, as configured, of the cookies in which ids are handed
// out. They are the gate's own: Request.Header must not have them.
func (s *Set) IssuedCookies() []string { return s.issued }

// Pages finds the rules whose ids a request is to be given.
func (s *Set) Pages(r *Request) []Page {
	if len(s.issuing) == 0 || r.Method != "GET" {
		return nil
	}
	var segments [maxInlineSegments]string
	paths, err := readPath(r.Path, s.dialect, segments[:0])
	if err != nil {
		return nil
	}
	t := trial{set: s, req: r}
	var pages []Page
	for _, rule := range s.issuing {
		if slot, ok := t.page(rule.page, &paths); ok {
			pages = append(pages, Page{rule, slot})
		}
	}
	return pages
}

// page reads the slot by the first reading of the path that fits.
func (t *trial) page(page *Rule, paths *readings) (slot string, ok bool) {
	for i := range paths.count() {
		p, ok := paths.at(i)
		if !ok {
			continue
		}
		route := t.fits(page, "GET", &p)
		if route == nil {
			continue
		}
		var m Match
		route.bind(&p, &m.Params)
		x := Extraction{rule: page, req: t.req, match: &m, maxBody: t.set.maxBody}
		slot, refusal := x.fact("slot", page.slot)
		return slot, refusal == nil
	}
	return "", false
}

// issuedCookies are the cookies of all rules, each once.
func issuedCookies(list []*RuleConfig) []string {
	var names []string
	for _, r := range list {
		if r.Idempotency != nil && r.Idempotency.Issue.Cookie != "" {
			names = append(names, r.Idempotency.Issue.Cookie)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// preparePage makes of the rule one that matches its page, and reads the slot there.
func (r *Rule) preparePage() error {
	if r.Idempotency == nil || r.Idempotency.Issue.On == "" {
		return nil
	}
	on, err := parsePage(r.Idempotency.Issue.On)
	if err != nil {
		return fmt.Errorf("idempotency.issue.on: %w", err)
	}
	slot, err := on.slot(r.Slot)
	if err != nil {
		return fmt.Errorf("idempotency.issue.on: %w", err)
	}
	page := &Rule{RuleConfig: r.RuleConfig, set: r.set, charset: r.charset}
	page.Action = "guard" // which has no need to be exact
	page.Match = MatchConfig{
		Methods: []string{"GET"}, Path: on.path, Params: map[string]string{},
		Except: r.Match.Except, Hosts: r.Match.Hosts, Exact: r.Match.Exact,
	}
	for name, pattern := range r.Match.Params {
		if slices.Contains(on.variables, name) {
			page.Match.Params[name] = pattern
		}
	}
	if err := page.prepareMatch(); err != nil {
		return err
	}
	c := sourceCompiler{}
	page.slot = c.sources(slot, true)
	r.page = page
	r.set.issuing = append(r.set.issuing, r)
	return c.err
}

// bookingPage is idempotency.issue.on made ready: "GET /lessons/{lesson}", or, where the
// slot is in the query, "GET /book?lesson={lesson}".
type bookingPage struct {
	path      string   // a template
	variables []string // of the path
	query     []string // variables of the query
	parameter []string // … and the parameters that have them
}

var errPageMethod = errors.New("write GET and a path, such as GET /lessons/{lesson}: ids are set where a page is fetched")

func parsePage(on string) (p bookingPage, err error) {
	method, target, found := strings.Cut(on, " ")
	if !found || method != "GET" {
		return p, errPageMethod
	}
	path, query, _ := strings.Cut(target, "?")
	p.path = path
	template, err := ParseTemplate(path)
	if err != nil {
		return p, err
	}
	p.variables = template.Variables()
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		parameter, value, _ := strings.Cut(pair, "=")
		name, all, err := parseVariable(value)
		if err != nil || all || parameter == "" {
			return p, fmt.Errorf("%q: a query is written with variables, as in GET /book?lesson={lesson}", pair)
		}
		if p.has(name) {
			return p, fmt.Errorf("variable %q stands twice", name)
		}
		p.query, p.parameter = append(p.query, name), append(p.parameter, parameter)
	}
	return p, nil
}

func (p *bookingPage) has(variable string) bool {
	return slices.Contains(p.variables, variable) || slices.Contains(p.query, variable)
}

// slot is where the page names the slot. Each of its parts is the variable that is
// called like it: json:/data/lesson_id is {lesson_id}.
func (p *bookingPage) slot(parts Extractors) (Extractors, error) {
	var list Extractors
	for _, e := range parts {
		name := e.Name
		if e.Source == FromJSON {
			name = name[strings.LastIndexByte(name, '/')+1:]
			name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		}
		on := e
		switch i := slices.Index(p.query, name); {
		case e.Source == FromConst:
		case slices.Contains(p.variables, name):
			on.Source, on.Name = FromPath, name
		case i >= 0:
			on.Source, on.Name = FromQuery, p.parameter[i]
		default:
			return nil, fmt.Errorf("the page does not tell the slot, whose %s needs a variable {%s}: write one such as GET /lessons/{%s} or GET /book?%s={%s}", e, name, name, name, name)
		}
		list = append(list, on)
	}
	return list, nil
}
