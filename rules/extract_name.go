package rules

import (
	"slices"
	"strings"
)

// namedValue gathers what a request says under one name.
type namedValue struct {
	label          string // what refusals call it
	value, alias   string
	found, aliased bool
	differs        bool
	reshaped       bool
}

// add takes a value from where the source reads.
func (v *namedValue) add(value string) {
	v.differs = v.differs || v.found && v.value != value
	v.value, v.found = value, true
}

// addAlias takes a value from where only some backends look for it: under another
// spelling, or in the query for a form field.
func (v *namedValue) addAlias(value string) {
	v.differs = v.differs || v.aliased && v.alias != value
	v.alias, v.aliased = value, true
}

// addName takes a value under a name that clashes with the source's: as an alias, or,
// where the name makes an array or a map of it, as what has no one value.
func (v *namedValue) addName(name string, s *source, value string) {
	v.addAlias(value)
	v.reshaped = v.reshaped || foldName(name) != s.folded
}

func (v *namedValue) result() (string, bool, *Refusal) {
	switch {
	case v.aliased && !v.found:
		return "", false, refuse(RefuseAmbiguous, "%s is not sent, but what some servers take for it", v.label)
	case v.reshaped:
		return "", false, refuse(RefuseAmbiguous, "%s is sent as an array too", v.label)
	case v.differs || v.aliased && v.alias != v.value:
		return "", false, refuse(RefuseAmbiguous, "%s, or what some servers take for it, is sent with different values", v.label)
	}
	return v.value, v.found, nil
}

// foldName maps a query, form or cookie name to what common backends take for it:
// PHP drops leading blanks, cuts at NUL, and turns blanks, dots and an unclosed
// bracket into "_"; ASP.NET ignores letter case.
func foldName(name string) string {
	if isFoldedName(name) {
		return name
	}
	name, _, _ = strings.Cut(name, "\x00")
	name = strings.TrimLeft(name, " ")
	base, bracket := name, ""
	if i := strings.IndexByte(name, '['); i >= 0 {
		base, bracket = name[:i], name[i:]
		if !strings.Contains(bracket, "]") {
			base, bracket = base+"_"+bracket[1:], ""
		}
	}
	base = strings.Map(func(r rune) rune {
		if r == '.' || r == ' ' {
			return '_'
		}
		return r
	}, base)
	return foldCase(base + bracket)
}

func isFoldedName(name string) bool {
	for i := 0; i < len(name); i++ {
		c := name[i]
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-' {
			continue
		}
		return false
	}
	return true
}

// nameClash tells whether a backend may take a field's name for the source's: the same
// after folding; one the array or parent of the other, as slot[] and slot, booking and
// booking[slot]; or the same to those who only look for what stands between brackets,
// which Rack, qs and PHP do each in a way of its own: slot], [slot], booking[slot]x.
func nameClash(name string, s *source) bool {
	folded := foldName(name)
	if folded == s.folded || isBelow(folded, s.folded) || isBelow(s.folded, folded) {
		return true
	}
	if !strings.ContainsAny(name, "[]") && !(s.nested && strings.Contains(name, ".")) {
		return false
	}
	wanted := foldCase(s.Name)
	name = foldCase(name)
	parts, path := keyParts(name, "[]"), keyParts(wanted, "[]")
	n := min(len(parts), len(path))
	return n > 0 && slices.Equal(parts[:n], path[:n]) || slices.Equal(keyParts(name, "[]."), keyParts(wanted, "[]."))
}

// isBelow reports whether a name is an array or map element of another.
func isBelow(name, parent string) bool {
	return len(name) > len(parent) && name[:len(parent)] == parent && name[len(parent)] == '['
}

// keyParts cuts a name at marks, however many there are: booking[slot], a.b.
func keyParts(name, marks string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(marks, r) })
}
