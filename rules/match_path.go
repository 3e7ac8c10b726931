package rules

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// NormalizePath returns the normal form of a raw, percent-encoded path without
// its query (RFC 3986, 6.2.2): unreserved characters are decoded, the hex digits
// of what stays encoded are upper case, characters that a path may not hold are
// encoded, empty and dot segments are resolved. A trailing slash is kept. It is
// idempotent.
//
// What backends are known to read differently has no normal form and is an error:
// an encoded or bare backslash, an encoded slash, control characters, invalid
// escapes, invalid UTF-8, and "?" or "#", which belong to other parts of a URL.
func NormalizePath(raw string) (normal string, err error) {
	if isNormalPath(raw) {
		return raw, nil
	}
	text, err := normalizeEscapes(raw)
	if err != nil {
		return "", err
	}
	p := splitPath(text, nil, collapseFirst)
	return p.String(), nil
}

// reading is one way a backend may take a path: segments in normal form, none of
// them empty or a dot segment.
type reading struct {
	segments []string
	slash    bool   // a slash follows the last segment
	text     string // the normal form, where it is at hand
}

func (p *reading) String() string {
	if p.text != "" {
		return strings.Clone(p.text) // so that segments can live on the reader's stack
	}
	var b strings.Builder
	for _, s := range p.segments {
		b.WriteByte('/')
		b.WriteString(s)
	}
	if p.slash {
		b.WriteByte('/')
	}
	return b.String()
}

// maxInlineSegments is how many segments a path may have before reading it
// allocates.
const maxInlineSegments = 16

// readPath lists the ways in which backends may take a raw path. The first is the
// normal form, the only one for rules that match exactly; the others exist where
// common backends are known to differ:
//   - ";parameters" are part of a segment for PHP, Rails and Express, and dropped,
//     before dot segments are resolved, by servlet containers
//   - "//../" goes up from the collapsed or from the empty segment
//
// A path without a normal form is an error; see suspectPaths.
func readPath(raw string, buf []string) (first reading, others []reading, err error) {
	if isNormalPath(raw) {
		first = splitPath(raw, buf, collapseFirst)
		first.text = raw
		if strings.IndexByte(raw, ';') >= 0 {
			others = append(others, splitPath(dropParameters(raw), nil, collapseFirst))
		}
		return first, others, nil
	}
	text, err := normalizeEscapes(raw)
	if err != nil {
		return reading{}, nil, err
	}
	first = splitPath(text, buf, collapseFirst)
	texts := []string{text}
	if bare := dropParameters(text); bare != text {
		others = append(others, splitPath(bare, nil, collapseFirst))
		texts = append(texts, bare)
	}
	for _, t := range texts {
		if strings.Contains(t, "//") && strings.Contains(t, "/..") {
			others = append(others, splitPath(t, nil, resolveFirst))
		}
	}
	return first, others, nil
}

// suspect stands, in a suspect reading, for what cannot be read: any text, or none.
const suspect = '\x00'

// mayBe reports whether a suspect segment could be a literal.
func mayBe(segment, literal string) bool {
	known := strings.Split(foldCase(segment), string(suspect))
	last := len(known) - 1
	rest, ok := strings.CutPrefix(foldCase(literal), known[0])
	if !ok || last == 0 {
		return ok && rest == ""
	}
	if rest, ok = strings.CutSuffix(rest, known[last]); !ok {
		return false
	}
	for _, k := range known[1:last] {
		i := strings.Index(rest, k)
		if i < 0 {
			return false
		}
		rest = rest[i+len(k):]
	}
	return true
}

// suspectPaths lists what a path without a normal form might be taken for: with
// encoded slashes and backslashes kept inside their segment, with them as
// separators, and cut at the first fault as C strings and URL parsers do.
func suspectPaths(raw string) []reading {
	opaque := suspectText(raw, suspect)
	texts := []string{opaque, suspectText(raw, '/')}
	if i := strings.IndexByte(opaque, suspect); i >= 0 {
		texts = append(texts, opaque[:i])
	}
	var list []reading
	for _, text := range texts {
		list = append(list, splitPath(text, nil, collapseFirst), splitPath(dropParameters(text), nil, collapseFirst))
	}
	return list
}

// isNormalPath is the quick test for a path that is its own normal form: nothing
// encoded, no empty and no dot segment. False says nothing.
func isNormalPath(raw string) bool {
	if raw == "" || raw[0] != '/' {
		return false
	}
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if !isPathChar(c) && c != '/' {
			return false
		}
		if i > 0 && raw[i-1] == '/' && (c == '/' || c == '.') {
			return false
		}
	}
	return true
}

var (
	errPathStart   = errors.New(`a path begins with "/"`)
	errPathUTF8    = errors.New("a path has to be UTF-8")
	errPathControl = errors.New("a path may not hold control characters, plain or encoded")
	errPathSlash   = errors.New(`an encoded "/" in a path is read differently by different servers`)
	errPathBack    = errors.New(`a "\" in a path, plain or encoded, is read differently by different servers`)
)

// normalizeEscapes rewrites each character of a path to its normal spelling and
// leaves the segments alone.
func normalizeEscapes(raw string) (string, error) {
	if raw == "" || raw[0] != '/' {
		return "", errPathStart
	}
	var b strings.Builder
	b.Grow(len(raw) + 16)
	plain := make([]byte, 0, len(raw)) // the decoded text, for the UTF-8 check
	ascii := true
	for i := 0; i < len(raw); i++ {
		c, encoded := raw[i], false
		if c == '%' {
			decoded, ok := unhexPair(raw, i+1)
			if !ok {
				return "", fmt.Errorf("a path may not hold an invalid %% escape, as at byte %d", i)
			}
			c, encoded = decoded, true
			i += 2
		}
		switch {
		case c < 0x20 || c == 0x7f:
			return "", errPathControl
		case c == '\\':
			return "", errPathBack
		case encoded && c == '/':
			return "", errPathSlash
		case !encoded && (c == '?' || c == '#'):
			return "", fmt.Errorf("a path may not hold %q", c)
		case c == '/' || isUnreserved(c) || !encoded && isPathChar(c):
			b.WriteByte(c)
		default:
			writeEscape(&b, c)
		}
		plain = append(plain, c)
		ascii = ascii && c < utf8.RuneSelf
	}
	if !ascii && !utf8.Valid(plain) {
		return "", errPathUTF8
	}
	return b.String(), nil
}

// suspectText is normalizeEscapes for a path with faults: each becomes a suspect
// byte, except that slashes and backslashes in disguise become separator.
func suspectText(raw string, separator byte) string {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		c, encoded := raw[i], false
		if c == '%' {
			decoded, ok := unhexPair(raw, i+1)
			if !ok {
				out = append(out, suspect)
				if isUnicodeEscape(raw[i:]) {
					i += len("%uXXXX") - 1
				}
				continue
			}
			c, encoded = decoded, true
			i += 2
		}
		switch {
		case c == '\\' || encoded && c == '/':
			out = append(out, separator)
		case isUnreserved(c) || !encoded && (c == '/' || isPathChar(c)):
			out = append(out, c)
		default:
			out = append(out, suspect)
		}
	}
	return string(out)
}

// isUnicodeEscape reports whether s begins with %uXXXX, which old IIS decodes.
func isUnicodeEscape(s string) bool {
	if len(s) < len("%uXXXX") || s[1] != 'u' && s[1] != 'U' {
		return false
	}
	_, ok1 := unhexPair(s, 2)
	_, ok2 := unhexPair(s, 4)
	return ok1 && ok2
}

// dotOrder is which of two clean-ups a server does first.
type dotOrder uint8

const (
	collapseFirst dotOrder = iota // nginx, Apache, Go
	resolveFirst                  // RFC 3986, 5.2.4
)

// splitPath cuts a path with normal escapes into segments, in buf where they fit.
func splitPath(text string, buf []string, order dotOrder) reading {
	p := reading{segments: buf[:0]}
	for rest, more := strings.TrimPrefix(text, "/"), true; more; {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		p.slash = !more && (segment == "" || segment == "." || segment == "..")
		switch segment {
		case ".":
		case "..":
			if n := len(p.segments); n > 0 {
				p.segments = p.segments[:n-1]
			}
		case "":
			if order == resolveFirst && more {
				p.segments = append(p.segments, "")
			}
		default:
			p.segments = append(p.segments, segment)
		}
	}
	if order == resolveFirst {
		kept := p.segments[:0]
		for _, s := range p.segments {
			if s != "" {
				kept = append(kept, s)
			}
		}
		p.segments = kept
	}
	p.slash = p.slash || len(p.segments) == 0
	return p
}

// dropParameters removes ";…" from each segment, encoded ";" too: some containers
// decode before they look (RFC 3986, 3.3).
func dropParameters(text string) string {
	if !strings.Contains(text, ";") && !strings.Contains(text, "%3B") {
		return text
	}
	segments := strings.Split(text, "/")
	for i, s := range segments {
		s, _, _ = strings.Cut(s, ";")
		s, _, _ = strings.Cut(s, "%3B")
		segments[i] = s
	}
	return strings.Join(segments, "/")
}

// decodeSegment is the text of a segment in normal form.
func decodeSegment(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if c, ok := unhexPair(s, i+1); ok && s[i] == '%' {
			out = append(out, c)
			i += 2
			continue
		}
		out = append(out, s[i])
	}
	return string(out)
}

// isUnreserved: RFC 3986, 2.3.
func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}

// isPathChar: what a segment may hold as it is (RFC 3986, 3.3).
func isPathChar(c byte) bool {
	if isUnreserved(c) {
		return true
	}
	switch c {
	case '!', '$', '&', '\'', '(', ')', '*', '+', ',', ';', '=', ':', '@':
		return true
	}
	return false
}

const upperHex = "0123456789ABCDEF"

func writeEscape(b *strings.Builder, c byte) {
	b.WriteByte('%')
	b.WriteByte(upperHex[c>>4])
	b.WriteByte(upperHex[c&15])
}

// unhexPair reads the two hex digits at s[i:].
func unhexPair(s string, i int) (byte, bool) {
	if i+2 > len(s) {
		return 0, false
	}
	hi, ok1 := unhex(s[i])
	lo, ok2 := unhex(s[i+1])
	return hi<<4 | lo, ok1 && ok2
}

func unhex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
