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

// isNormalPath is the quick test for a path that is its own normal form: nothing
// encoded, no empty and no dot segment. False says nothing.
func isNormalPath(raw string) bool {
	if raw == "" || raw[0] != '/' {
		return false
	}
	begins := true // a segment
	for i := 1; i < len(raw); i++ {
		c := raw[i]
		if c != '/' && !isPathChar(c) || begins && (c == '/' || c == '.') {
			return false
		}
		begins = c == '/'
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
func isPathChar(c byte) bool { return pathChars[c] }

var pathChars = func() (t [256]bool) {
	for c := range t {
		t[c] = isUnreserved(byte(c)) || strings.IndexByte("!$&'()*+,;=:@", byte(c)) >= 0
	}
	return t
}()

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
