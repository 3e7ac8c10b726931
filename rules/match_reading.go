package rules

import (
	"slices"
	"strings"
)

// reading is one way a backend may take a path: segments in normal form, none of
// them empty. Dot segments are resolved, unless they are taken for text.
type reading struct {
	segments []string
	slash    bool   // a slash follows the last segment
	text     string // the normal form, where it is at hand
	is       readingKind
	cut      int // bytes of the last segment that are a format's suffix
}

// readingKind tells for what a reading counts.
type readingKind uint8

const (
	normalForm    readingKind = 1 << iota // for rules that match exactly
	readByDialect                         // for the others
	cutLiteral                            // the suffix may follow a literal
	cutVariable                           // the suffix may follow a variable
)

// segment is what the reading makes of a segment.
func (p *reading) segment(i int) string {
	s := p.segments[i]
	if i == len(p.segments)-1 {
		s = s[:len(s)-p.cut]
	}
	return s
}

func (p *reading) String() string {
	if p.text != "" && p.cut == 0 {
		return strings.Clone(p.text) // so that segments can live on the reader's stack
	}
	var b strings.Builder
	for i := range p.segments {
		b.WriteByte('/')
		b.WriteString(p.segment(i))
	}
	if p.slash {
		b.WriteByte('/')
	}
	return b.String()
}

// maxInlineSegments is how many segments a path may have before reading it
// allocates.
const maxInlineSegments = 16

// readings are the ways in which backends may take a path. They differ in
//   - ";parameters", dropped before dot segments are resolved, or text; an encoded
//     ";" begins some where a container decodes before it looks
//   - dot segments, resolved or text; and "//../", which goes up from the collapsed
//     or from the empty segment
//   - a host that two slashes begin with, to whoever parses URLs
//   - the session ids that ASP.NET takes out of paths
//   - what a script in it or a front controller takes for the path
//   - the suffix that names a format, see at
type readings struct {
	dialect *dialect
	normal  reading
	others  []reading
}

// readPath reads a raw path, with the segments of the normal form in buf where they
// fit. A path without a normal form is an error; see suspectPaths.
func readPath(raw string, d *dialect, buf []string) (readings, error) {
	if isNormalPath(raw) && strings.IndexByte(raw, ';') < 0 {
		return readPlain(raw, d, buf), nil
	}
	text, err := normalizeEscapes(raw)
	if err != nil {
		return readings{}, err
	}
	return readText(text, d, buf), nil
}

// readPlain reads a path with nothing encoded, no parameters, no empty and no dot
// segment, as nearly all are. Only names in it may be read in more than one way.
func readPlain(text string, d *dialect, buf []string) readings {
	rs := readings{dialect: d, normal: splitPath(text, buf, collapseFirst)}
	rs.normal.text, rs.normal.is = text, normalForm|readByDialect
	rs.others = d.nameReadings(rs.others, &rs.normal, text)
	return rs
}

// readText reads a path with normal escapes.
func readText(text string, d *dialect, buf []string) readings {
	rs := readings{dialect: d, normal: splitPath(text, buf, collapseFirst)}
	rs.normal.is = normalForm
	if d.keepsParameters || !hasParameters(text) {
		rs.normal.is |= readByDialect
	}
	rs.others = d.otherReadings(nil, text)
	if behind, ok := behindHost(text); ok && d.hosts {
		if d.keepsParameters || !hasParameters(behind) {
			rs.others = append(rs.others, asRead(splitPath(behind, nil, collapseFirst)))
		}
		rs.others = d.otherReadings(rs.others, behind)
	}
	rs.others = d.nameReadings(rs.others, &rs.normal, text)
	return rs
}

// nameReadings adds what names in the path may be: session ids and scripts.
func (d *dialect) nameReadings(list []reading, normal *reading, text string) []reading {
	if d.windows {
		if plain := dropSessionIDs(text); plain != text {
			list = append(list, asRead(splitPath(plain, nil, collapseFirst)))
		}
	}
	if d.mayFront(text) {
		list = d.frontReadings(list, normal)
		for i := range list {
			list = d.frontReadings(list, &list[i])
		}
	}
	return list
}

// count bounds the argument of at.
func (rs *readings) count() int { return 2 + 2*len(rs.others) }

// at returns the readings by number: each of them, and behind it the same without
// the suffix that may name a format, where it has one. (An iterator would allocate.)
func (rs *readings) at(i int) (p reading, ok bool) {
	p = rs.normal
	if i >= 2 {
		p = rs.others[i/2-1]
	}
	if i%2 == 1 {
		return rs.dialect.withoutFormat(&p)
	}
	return p, true
}

func asRead(p reading) reading {
	p.is = readByDialect
	return p
}

// behindHost is what follows the host in a path that is read as a URL: /a of //host/a.
func behindHost(text string) (path string, ok bool) {
	rest, ok := strings.CutPrefix(text, "//")
	i := strings.IndexByte(rest, '/')
	if !ok || i < 1 {
		return "", false
	}
	return rest[i:], true
}

// otherReadings adds what ";parameters" and dot segments may be.
func (d *dialect) otherReadings(list []reading, text string) []reading {
	bare := !hasParameters(text)
	if bare || d.keepsParameters {
		list = d.dotReadings(list, text)
	}
	if !bare && d.dropsParameters {
		plain := dropParameters(text, ";")
		for _, t := range []string{plain, dropParameters(plain, "%3B")} {
			list = d.dotReadings(append(list, asRead(splitPath(t, nil, collapseFirst))), t)
		}
	}
	return list
}

// dotReadings adds what else dot segments may be.
func (d *dialect) dotReadings(list []reading, text string) []reading {
	if !strings.Contains(text, "/.") {
		return list
	}
	if strings.Contains(text, "//") && strings.Contains(text, "/..") {
		list = append(list, asRead(splitPath(text, nil, resolveFirst)))
	}
	if d.keepsDots {
		list = append(list, asRead(splitPath(text, nil, keepDots)))
	}
	return list
}

// withoutFormat cuts the suffix off the last segment, if a backend may.
func (d *dialect) withoutFormat(p *reading) (reading, bool) {
	if len(p.segments) == 0 || p.is&readByDialect == 0 {
		return reading{}, false
	}
	last := p.segments[len(p.segments)-1]
	dot := strings.LastIndexByte(last, '.')
	if dot < 1 {
		return reading{}, false
	}
	cut := reading{segments: p.segments, slash: p.slash, is: readByDialect, cut: len(last) - dot}
	switch {
	case d.formats.every && isVersion(last, dot):
		cut.is |= cutVariable
	case d.formats.every:
		cut.is |= cutLiteral | cutVariable
	case slices.ContainsFunc(d.formats.literals, func(s string) bool { return strings.EqualFold(s, last[dot:]) }):
		cut.is |= cutLiteral
	default:
		return reading{}, false
	}
	return cut, true
}

// isVersion: v1.5 is not v1 in the format 5.
func isVersion(segment string, dot int) bool {
	c := segment[dot-1]
	return '0' <= c && c <= '9' && isDigits(segment[dot+1:])
}

// dotOrder is what a server does with dot segments, and when.
type dotOrder uint8

const (
	collapseFirst dotOrder = iota // nginx, Apache, Tomcat, Go: empty segments go first
	resolveFirst                  // RFC 3986, 5.2.4; Kestrel
	keepDots                      // Rack, Express
)

// splitPath cuts a path with normal escapes into segments, in buf where they fit.
func splitPath(text string, buf []string, order dotOrder) reading {
	p := reading{segments: buf[:0]}
	for rest, more := strings.TrimPrefix(text, "/"), true; more; {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		p.slash = !more && (segment == "" || order != keepDots && (segment == "." || segment == ".."))
		switch {
		case segment == "." && order != keepDots:
		case segment == ".." && order != keepDots:
			if n := len(p.segments); n > 0 {
				p.segments = p.segments[:n-1]
			}
		case segment == "":
			if order == resolveFirst && more {
				p.segments = append(p.segments, "")
			}
		default:
			p.segments = append(p.segments, segment)
		}
	}
	if order == resolveFirst {
		p.segments = slices.DeleteFunc(p.segments, func(s string) bool { return s == "" })
	}
	p.slash = p.slash || len(p.segments) == 0
	return p
}

func hasParameters(text string) bool {
	return strings.IndexByte(text, ';') >= 0 || strings.Contains(text, "%3B")
}

// dropParameters removes what begins with mark from each segment (RFC 3986, 3.3).
func dropParameters(text, mark string) string {
	segments := strings.Split(text, "/")
	for i, s := range segments {
		segments[i], _, _ = strings.Cut(s, mark)
	}
	return strings.Join(segments, "/")
}
