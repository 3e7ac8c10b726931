package rules

import (
	"regexp"
	"strings"
)

func (v *validator) match(p place, m *MatchConfig) {
	checkPath(p.field("path"), m.Path)
	for i, method := range m.Methods {
		at := p.field("methods").item(i)
		switch {
		case !tokenPattern.MatchString(method):
			at.faultf("%q is not a method", method)
		case method != strings.ToUpper(method):
			at.faultf("methods are upper case: write %s", strings.ToUpper(method))
		}
	}
	for _, name := range sortedKeys(m.Params) {
		if _, err := regexp.Compile(`^(?:` + m.Params[name] + `)$`); err != nil {
			reason := err.Error()
			if _, after, ok := strings.Cut(reason, "error parsing regexp: "); ok {
				reason = after
			}
			p.field("params").field(name).faultf("not a regular expression (RE2 syntax): %s", reason)
		}
	}
	for i, path := range m.Except {
		checkPath(p.field("except").item(i), path)
	}
	for i, host := range m.Hosts {
		checkHostName(p.field("hosts").item(i), host)
	}
	checkFields(p.field("headers"), m.Headers)
}

// foreignPath recognises the patterns of other routers. As literals they would
// never match, and what they were meant to gate would pass ungated.
var foreignPath = []struct {
	found   *regexp.Regexp
	explain string
}{
	{regexp.MustCompile(`^https?://`), "is a URL: write its path only, and the host in match.hosts"},
	{regexp.MustCompile(`\?`), "holds a ?: a path ends before the query, which no rule looks at"},
	{regexp.MustCompile(`#`), "holds a #: fragments are never sent to a server, end the path before it"},
	{regexp.MustCompile(`/:[A-Za-z_]`), "has a variable in another router's style: write {name} for :name"},
	{regexp.MustCompile(`<[^/]*>`), "has a variable in another router's style: write {name} for <name>"},
	{regexp.MustCompile(`\{[^}/]*:`), "has a pattern inside a variable: write {name}, and the pattern in match.params"},
	{regexp.MustCompile(`\(|\)|\[|\]|\^|\$|\||\\[dwsDWSb.]|\.\*`), "looks like a regular expression: write {name} for one segment, and its pattern in match.params"},
	{regexp.MustCompile(`\*`), "looks like a glob: write {name} for one segment, {rest...} at the end for all that follow"},
}

// checkPath checks a path template, and says how to write what was probably meant.
func checkPath(p place, path string) {
	if !p.written {
		p.faultf("is required: write a path such as /api/lessons/{lesson}/bookings")
		return
	}
	for _, foreign := range foreignPath {
		if foreign.found.MatchString(path) {
			p.faultf("%q %s", path, foreign.explain)
			return
		}
	}
	if !strings.HasPrefix(path, "/") {
		p.faultf("%q must begin with /: write /%s", path, path)
		return
	}
	if normal := normalTemplate(path); normal != path {
		p.faultf("%q is not in normal form, so that no request could match it: write %s", path, normal)
		return
	}
	if _, err := ParseTemplate(path); err != nil {
		p.faultf("%s", err)
	}
}

// normalTemplate removes empty and dot segments, and the trailing slash that came
// with them. A path that has only a trailing slash keeps it: for an exact rule it
// is part of the path.
func normalTemplate(path string) string {
	var kept []string
	changed := false
	segments := strings.Split(path[1:], "/")
	for i, s := range segments {
		switch {
		case s == "" && i == len(segments)-1:
		case s == "" || s == ".":
			changed = true
		case s == "..":
			changed = true
			kept = kept[:max(len(kept)-1, 0)]
		default:
			kept = append(kept, s)
		}
	}
	if !changed {
		return path
	}
	return "/" + strings.Join(kept, "/")
}

func checkHostName(p place, host string) {
	name := strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	name = strings.TrimPrefix(name, "*.")
	switch {
	case strings.Contains(name, "*"):
		p.faultf("%q: a * can only stand for the first part of a name, as in *.example.com", host)
	case strings.Contains(host, "/"):
		p.faultf("%q is not a host name: write it without scheme and path, such as www.example.com", host)
	case !isHost(name) && strings.Contains(host, ":"):
		p.faultf("%q: a host is compared without its port, write %s", host, host[:strings.LastIndex(host, ":")])
	case !isHost(name):
		p.faultf("%q is not a host name, such as www.example.com", host)
	}
}
