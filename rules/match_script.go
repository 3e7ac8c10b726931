package rules

import (
	"regexp"
	"slices"
	"strings"
)

// Servers find one script by several paths: with and without its extension (Apache
// MultiViews, nginx try_files, ASP.NET FriendlyUrls), by its folder where it is the
// folder's index (DirectoryIndex), with more path behind it (AcceptPathInfo), and a
// front controller with or without its own name (mod_rewrite). Requests are read for
// the names they may hold or lack (frontReadings), rules for those that they hold
// (routesOf).

// isScript reports whether a segment names a script, after which a path may go on.
func (d *dialect) isScript(segment string) bool {
	_, ok := d.scriptName(segment)
	return ok
}

// scriptName is what a segment that names a script is called without its extension.
func (d *dialect) scriptName(segment string) (name string, ok bool) {
	if d.windows {
		segment = windowsName(segment)
	}
	dot := strings.LastIndexByte(segment, '.')
	if dot < 1 || !slices.ContainsFunc(d.scripts, func(s string) bool { return strings.EqualFold(s, segment[dot:]) }) {
		return "", false
	}
	return segment[:dot], true
}

// isIndex reports whether servers look for a script of that name in a folder.
func isIndex(name string) bool {
	return strings.EqualFold(name, "index") || strings.EqualFold(name, "default")
}

// frontName is a front controller's that Apache's MultiViews find without its
// extension, at the begin of a path.
const frontName = "index"

// mayFront is a quick test for what frontReadings looks for.
func (d *dialect) mayFront(text string) bool {
	return len(d.scripts) > 0 && (strings.IndexByte(text, '.') >= 0 ||
		len(text) > len(frontName) && strings.EqualFold(text[1:1+len(frontName)], frontName))
}

// frontReadings adds what the scripts in a path make of it.
func (d *dialect) frontReadings(list []reading, p *reading) []reading {
	if len(p.segments) == 0 || p.is&readByDialect == 0 {
		return list
	}
	if d.multiViews && len(p.segments) > 1 && strings.EqualFold(p.segments[0], frontName) {
		list = d.frontReading(list, p, 0)
	}
	if i := slices.IndexFunc(p.segments, d.isScript); i >= 0 {
		list = d.frontReading(list, p, i)
	}
	return list
}

// frontReading adds what the script in a segment makes of a path: its own path, as
// servers find it, and what a front controller routes by, the path after it, behind
// the application's folder or without it; of the index of a folder, the folder.
func (d *dialect) frontReading(list []reading, p *reading, at int) []reading {
	before, after := p.segments[:at], p.segments[at+1:]
	if len(after) == 0 {
		if name, _ := d.scriptName(p.segments[at]); isIndex(name) {
			list = append(list, reading{segments: slices.Clone(before), slash: true, is: readByDialect})
		}
		return list
	}
	list = append(list, reading{segments: slices.Clone(p.segments[:at+1]), is: readByDialect})
	list = append(list, reading{segments: slices.Clone(after), slash: p.slash, is: readByDialect})
	if at > 0 {
		list = append(list, reading{segments: slices.Concat(before, after), slash: p.slash, is: readByDialect})
	}
	return list
}

// routesOf returns a template and, where a literal of it names a script, what else
// servers run that script for.
func (d *dialect) routesOf(t Template) []Template {
	i := len(t.segments) - 1
	for i >= 0 && (t.segments[i].name != "" || !d.isScript(t.segments[i].literal)) {
		i--
	}
	if i < 0 {
		return []Template{t}
	}
	with := func(rest ...templateSegment) Template {
		route := t
		route.segments = slices.Concat(t.segments[:i], rest)
		return route
	}
	name, _ := d.scriptName(t.segments[i].literal)
	script := templateSegment{literal: t.segments[i].literal, script: true}
	bare := templateSegment{literal: name, script: true, bare: true}
	after := t.segments[i+1:]
	routes := []Template{
		with(append([]templateSegment{script}, after...)...),
		with(append([]templateSegment{bare}, after...)...),
	}
	switch {
	case len(after) == 0 && t.rest == "" && isIndex(name):
		routes = append(routes, with())
	case slices.ContainsFunc(after, func(s templateSegment) bool { return s.name == "" }):
		// With nothing but variables left it would be a route to everything.
		routes = append(routes, with(after...))
	}
	return routes
}

// keepApart takes from each rule the routes that are the path of another rule for as
// many requests: who writes a rule for each means two handlers.
func keepApart(rules []*Rule) {
	for _, r := range rules {
		for i := len(r.routes) - 1; i > 0; i-- {
			own := func(other *Rule) bool {
				return other != r && other.loose && other.takesAllOf(r) &&
					other.template.Covers(r.routes[i]) && r.routes[i].Covers(other.template)
			}
			if slices.ContainsFunc(rules, own) {
				r.routes = slices.Delete(r.routes, i, i+1)
			}
		}
	}
}

// takesAllOf reports whether the rule takes every request, its path aside, that other
// takes.
func (r *Rule) takesAllOf(other *Rule) bool {
	if len(r.hosts)+len(r.condition)+len(r.params)+len(r.except) > 0 {
		return false
	}
	return len(r.Match.Methods) == 0 || len(other.Match.Methods) > 0 && !slices.ContainsFunc(other.Match.Methods, func(m string) bool { return !r.admitsMethod(m) })
}

// sameLiteral reports whether a segment, decoded, names what a literal does.
func (d *dialect) sameLiteral(text, literal string) bool {
	if d.windows && len(text) > len(literal) {
		text = windowsName(text)
	}
	return text == literal || d.foldsCase && strings.EqualFold(text, literal)
}

// windowsName is the name by which Windows opens a file: without dots and blanks at
// the end, and without the type of its main stream (book.aspx::$DATA).
func windowsName(name string) string {
	name, _, _ = strings.Cut(name, "::$")
	for {
		shorter := strings.TrimRight(strings.TrimSuffix(name, "%20"), ". ")
		if shorter == name || shorter == "" {
			return name
		}
		name = shorter
	}
}

// sessionID is what ASP.NET puts into paths for clients without cookies, and takes
// out of every path: /(S(lit3py55))/lessons, /les(S(x))sons with a slash before.
var sessionID = regexp.MustCompile(`/\((?:[A-Za-z]\([^()/]*\))+\)`)

var parentheses = strings.NewReplacer("%28", "(", "%29", ")")

// dropSessionIDs removes the session ids from a path with normal escapes.
func dropSessionIDs(text string) string {
	if !strings.Contains(text, "/(") && !strings.Contains(text, "/%28") {
		return text
	}
	plain := parentheses.Replace(text)
	if short := sessionID.ReplaceAllString(plain, ""); short != plain {
		if short == "" || short[0] != '/' {
			short = "/" + short
		}
		return short
	}
	return text
}
