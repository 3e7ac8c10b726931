package rules

import (
	"strings"
	"unicode/utf8"
)

// sameHeader compares header names as a CGI environment does: letter case ignored,
// "_" and "." taken for "-".
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
		case c == '_' || c == '.':
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
// one session are one subject.
func findCookie(fields []Field, s *source) (value string, found bool, refusal *Refusal) {
	line, found, refusal := findHeader(fields, "Cookie", "the header Cookie")
	if refusal != nil || !found {
		return "", false, refusal
	}
	v := namedValue{label: s.label}
	for rest, more := line, true; more; {
		var item string
		item, rest, more = strings.Cut(rest, ";")
		name, text, _ := strings.Cut(item, "=")
		name = strings.Trim(name, " \t")
		switch {
		case name == s.Name:
			v.add(cookieText(strings.Trim(text, " \t")))
		case nameClash(name, s.folded):
			v.addName(name, s, cookieText(strings.Trim(text, " \t")))
		}
	}
	return v.result()
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
