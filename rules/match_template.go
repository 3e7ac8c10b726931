package rules

import (
	"fmt"
	"slices"
	"strings"
)

// Template is a parsed match.path: "/api/lessons/{lesson}/bookings". A variable
// takes one whole segment; {rest...} at the end takes all that follow, none
// included. Templates are immutable.
type Template struct {
	text     string
	segments []templateSegment
	names    []string // of the variables, in order
	rest     string   // the name of a final {rest...}
	slash    bool     // ended in "/"
}

// templateSegment is a literal, decoded, or a variable when name is set.
type templateSegment struct {
	literal, name string
	script        bool // names a script, after which a path may go on
	bare          bool // … without its extension, so that no other may follow
}

// ParseTemplate reads a path template. Literal parts are paths in normal form;
// other letters may stand plain or percent-encoded.
func ParseTemplate(text string) (Template, error) {
	if text == "" || text[0] != '/' {
		return Template{}, errPathStart
	}
	t := Template{text: text}
	for rest, more := text[1:], true; more; {
		var s string
		s, rest, more = strings.Cut(rest, "/")
		switch {
		case s == "" && !more:
			t.slash = true
		case s == "" || s == "." || s == "..":
			return Template{}, fmt.Errorf("path %q holds the segment %q, so no request could match it; leave it out", text, s)
		case strings.ContainsAny(s, "{}"):
			name, all, err := parseVariable(s)
			if err != nil {
				return Template{}, err
			}
			if t.Has(name) {
				return Template{}, fmt.Errorf("path variable %q stands twice", name)
			}
			t.names = append(t.names, name)
			if !all {
				t.segments = append(t.segments, templateSegment{name: name})
				break
			}
			if more {
				return Template{}, fmt.Errorf("%q takes the rest of the path, so nothing may follow it", s)
			}
			t.rest = name
		default:
			literal, err := parseLiteral(s)
			if err != nil {
				return Template{}, err
			}
			t.segments = append(t.segments, templateSegment{literal: literal})
		}
	}
	return t, nil
}

// parseVariable reads "{name}" or "{name...}".
func parseVariable(s string) (name string, all bool, err error) {
	inner, ok := strings.CutPrefix(s, "{")
	inner, closed := strings.CutSuffix(inner, "}")
	if !ok || !closed {
		return "", false, fmt.Errorf("%q: a variable takes a whole segment; write {name} between two slashes", s)
	}
	name, all = strings.CutSuffix(inner, "...")
	if !isVariableName(name) {
		return "", false, fmt.Errorf("%q: a variable is {name} or {name...}, of letters, digits, _ and -; a pattern for it belongs in match.params", s)
	}
	return name, all, nil
}

func isVariableName(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isUnreserved(s[i]) || s[i] == '.' || s[i] == '~' {
			return false
		}
	}
	return s != "" && (s[0] < '0' || s[0] > '9') && s[0] != '-'
}

// parseLiteral refuses what looks like a glob, a regular expression or another
// router's variable: as a literal it would never match, and the route stay open.
func parseLiteral(s string) (string, error) {
	if s[0] == ':' || strings.ContainsAny(s, "*^$|()[]+?") {
		return "", fmt.Errorf("%q is no literal segment; a variable is {name}, a pattern for it belongs in match.params, and a special character is written percent-encoded", s)
	}
	text, err := normalizeEscapes("/" + s)
	if err != nil {
		return "", err
	}
	if text == "/." || text == "/.." {
		return "", fmt.Errorf("%q is a dot segment, so no request could match it", s)
	}
	return decodeSegment(text[1:]), nil
}

// String is the template as it was written.
func (t Template) String() string { return t.text }

// Variables are the names in the template, in order.
func (t Template) Variables() []string { return slices.Clone(t.names) }

// Has reports whether the template has a variable of that name.
func (t Template) Has(name string) bool { return slices.Contains(t.names, name) }

// Overlaps reports whether some path fits both templates, letter case and a
// trailing slash aside.
func (t Template) Overlaps(other Template) bool {
	shared := min(len(t.segments), len(other.segments))
	for i := range shared {
		a, b := t.segments[i], other.segments[i]
		if a.name == "" && b.name == "" && !strings.EqualFold(a.literal, b.literal) {
			return false
		}
	}
	return (len(t.segments) == shared || other.rest != "") && (len(other.segments) == shared || t.rest != "")
}

// Covers reports whether every path that fits other fits t too, letter case and
// a trailing slash aside.
func (t Template) Covers(other Template) bool {
	if len(t.segments) > len(other.segments) {
		return false
	}
	for i, s := range t.segments {
		o := other.segments[i]
		if s.name == "" && (o.name != "" || !strings.EqualFold(s.literal, o.literal)) {
			return false
		}
	}
	return t.rest != "" || len(t.segments) == len(other.segments) && other.rest == ""
}

// fits reports whether a reading of a path has the template's shape: as backends of
// a dialect route it, or, without one, letter for letter, the trailing slash included.
func (t *Template) fits(p *reading, d *dialect) bool {
	if d == nil && t.rest == "" && p.slash != t.slash {
		return false
	}
	return t.shaped(p, d, func(segment, literal string) bool {
		text := decodeSegment(segment)
		return text == literal || d != nil && d.sameLiteral(text, literal)
	})
}

// mayFit is fits for a suspect reading.
func (t *Template) mayFit(p *reading, d *dialect) bool {
	return t.shaped(p, d, func(segment, literal string) bool {
		return mayBe(segment, literal) || d.windows && mayBe(windowsName(segment), literal)
	})
}

func (t *Template) shaped(p *reading, d *dialect, same func(segment, literal string) bool) bool {
	n := len(t.segments)
	extra := len(p.segments) > n && t.rest == ""
	if len(p.segments) < n || extra && (d == nil || len(d.scripts) == 0) {
		return false
	}
	if p.cut > 0 && !t.endsFor(p) {
		return false
	}
	script := false
	for i := range t.segments {
		s := &t.segments[i]
		if s.name != "" {
			continue
		}
		if !same(p.segment(i), s.literal) {
			return false
		}
		script = script || s.script
	}
	return !extra || script
}

// endsFor reports whether the segment that lost its suffix may have had one.
func (t *Template) endsFor(p *reading) bool {
	last := len(p.segments) - 1
	if last < len(t.segments) && t.segments[last].name == "" {
		return p.is&cutLiteral != 0 && !t.segments[last].bare
	}
	return p.is&cutVariable != 0
}

// bind returns the decoded variables of a reading that fits.
func (t *Template) bind(p *reading, params *Params) {
	for i := range t.segments {
		if name := t.segments[i].name; name != "" {
			params.add(Param{Name: name, Value: decodeSegment(p.segment(i))})
		}
	}
	if t.rest != "" {
		parts := make([]string, 0, 4)
		for i := len(t.segments); i < len(p.segments); i++ {
			parts = append(parts, decodeSegment(p.segment(i)))
		}
		params.add(Param{Name: t.rest, Value: strings.Join(parts, "/")})
	}
}
