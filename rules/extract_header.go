package rules

import (
	"strings"
	"unicode/utf8"
)

// sameHeader compares header names as a CGI environment does: letter case ignored, and
// what is no letter or digit taken for "-": "_" by most servers, "." by PHP's own, all
// others by lighttpd.
func sameHeader(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := 0; i < len(a); i++ {
		if headerFold[a[i]] != headerFold[b[i]] {
			return false
		}
	}
	return true
}

var headerFold = func() (t [256]byte) {
	for i := range t {
		c := byte(i)
		switch {
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
		default:
			c = '-'
		}
		t[i] = c
	}
	return t
}()

// findHeader returns the value of a header, which refusals call label. Lines that
// differ are refused, and so is a name that some backends fold into this one when it
// stands alone or says otherwise.
func findHeader(fields []Field, name, label string) (value string, found bool, refusal *Refusal) {
	v := namedValue{label: label}
	for i := range fields {
		f := &fields[i]
		switch {
		case !sameHeader(f.Name, name):
		case strings.EqualFold(f.Name, name):
			v.add(f.Value)
		default:
			v.addAlias(f.Value)
		}
	}
	return v.result()
}

// countHeader counts the lines that some backend may take for a header.
func countHeader(fields []Field, name string) (lines int) {
	for i := range fields {
		if sameHeader(fields[i].Name, name) {
			lines++
		}
	}
	return lines
}

// findCookie reads one cookie (RFC 6265, 4.2). Quotes and percent-encoding are
// undone where they can be, as half of the frameworks do, so that two spellings of
// one session are one subject. Parsers of older standards (RFC 2109) end a cookie at
// a comma and none inside quotes; where that would change this one, it is refused.
func findCookie(fields []Field, s *source) (value string, found bool, refusal *Refusal) {
	line, found, refusal := findHeader(fields, "Cookie", "the header Cookie")
	if refusal != nil || !found {
		return "", false, refusal
	}
	v := namedValue{label: s.label}
	open := false // inside quotes, to those who know them
	for item := range strings.SplitSeq(line, ";") {
		for piece := range strings.SplitSeq(item, ",") {
			name, _, ok := strings.Cut(piece, "=")
			if ok && len(piece) < len(item) && !strings.HasPrefix(item, piece) && cookieClash(name, s) {
				return "", false, refuse(RefuseAmbiguous, "%s is next to a comma, which some servers take for a separator", s.label)
			}
		}
		name, text, _ := strings.Cut(item, "=")
		name, text = strings.Trim(name, " \t"), strings.Trim(text, " \t")
		closed := strings.HasSuffix(text, `"`)
		if !open && strings.HasPrefix(text, `"`) {
			closed = closed && len(text) > 1
			open = !closed
		}
		if clash := cookieClash(name, s); clash && open {
			return "", false, refuse(RefuseAmbiguous, "%s is next to a quote that some servers read on from", s.label)
		} else if clash && name == s.Name {
			v.add(cookieText(text))
		} else if clash {
			v.addName(name, s, cookieText(text))
		}
		open = open && !closed
	}
	return v.result()
}

// cookieClash is nameClash for cookies, whose names old PHP decodes.
func cookieClash(name string, s *source) bool {
	if decoded, ok := decodePercent(name, true); ok {
		name = decoded
	}
	return nameClash(strings.Trim(name, " \t"), s)
}

func cookieText(raw string) string {
	if len(raw) >= 2 && raw[0] == '"' && raw[len(raw)-1] == '"' {
		raw = raw[1 : len(raw)-1]
	}
	if decoded, ok := decodePercent(raw, false); ok && utf8.ValidString(decoded) {
		return decoded
	}
	return raw
}
