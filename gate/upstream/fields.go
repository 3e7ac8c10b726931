package upstream

import (
	"strings"

	"github.com/slotgate/slotgate/rules"
)

// EndToEnd returns the fields that a proxy hands on, in their order: without
// those that belong to one connection (RFC 9110 section 7.6.1), the fields that
// the Connection list names among them. It reuses the memory of fields.
func EndToEnd(fields []rules.Field) []rules.Field {
	named := connectionOptions(fields)
	kept := fields[:0]
	for _, f := range fields {
		if !HopByHop(f.Name) && !containsFold(named, f.Name) {
			kept = append(kept, f)
		}
	}
	return kept
}

// connectionOptions lists what the Connection fields name; nil without one.
func connectionOptions(fields []rules.Field) []string {
	var options []string
	for _, f := range fields {
		if SameName(f.Name, "Connection") {
			for option := range strings.SplitSeq(f.Value, ",") {
				options = append(options, strings.Trim(option, " \t"))
			}
		}
	}
	return options
}

// HopByHop reports the names that never cross a proxy. Expect is answered by the
// gate itself; Trailer is written anew with what TrailerNames lets through.
func HopByHop(name string) bool {
	switch len(name) {
	case len("TE"):
		return strings.EqualFold(name, "TE")
	case len("Expect"):
		return strings.EqualFold(name, "Expect")
	case len("Upgrade"): // and Trailer
		return strings.EqualFold(name, "Upgrade") || strings.EqualFold(name, "Trailer")
	case len("Connection"): // and Keep-Alive
		return strings.EqualFold(name, "Connection") || strings.EqualFold(name, "Keep-Alive")
	case len("HTTP2-Settings"):
		return strings.EqualFold(name, "HTTP2-Settings")
	case len("Proxy-Connection"):
		return strings.EqualFold(name, "Proxy-Connection")
	case len("Transfer-Encoding"):
		return strings.EqualFold(name, "Transfer-Encoding")
	case len("Proxy-Authenticate"):
		return strings.EqualFold(name, "Proxy-Authenticate")
	case len("Proxy-Authorization"):
		return strings.EqualFold(name, "Proxy-Authorization")
	}
	return false
}

func containsFold(names []string, name string) bool {
	for _, n := range names {
		if SameName(n, name) {
			return true
		}
	}
	return false
}

// SameName reports whether two field names are the same (RFC 9110 section 5.1).
// Most that are not differ in length, and most that are do not differ in case.
func SameName(a, b string) bool {
	return len(a) == len(b) && (a == b || strings.EqualFold(a, b))
}

// TrimBlanks removes the optional whitespace around a value (RFC 9110 section 5.6.3).
func TrimBlanks(s string) string {
	for s != "" && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for s != "" && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

// ValidName reports whether a field name is a token (RFC 9110 section 5.6.2).
func ValidName(name string) bool {
	token, rest := CutToken(name)
	return token != "" && rest == ""
}

// CutToken cuts off the token that s begins with.
func CutToken(s string) (token, rest string) {
	n := 0
	for n < len(s) && tokenBytes[s[n]] {
		n++
	}
	return s[:n], s[n:]
}

var tokenBytes = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.IndexByte("!#$%&'*+-.^_`|~", byte(c)) >= 0
	}
	return t
}()

// ParseLength reads a Content-Length, in bytes: plain digits, no sign, no list,
// and no more than fit.
func ParseLength(value string) (int64, bool) {
	if value == "" || len(value) > 18 {
		return 0, false
	}
	var n int64
	for i := range len(value) {
		if value[i] < '0' || value[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(value[i]-'0')
	}
	return n, true
}
