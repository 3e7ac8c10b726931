package rules

import (
	"strings"
	"unicode/utf8"
)

// answerSource is the extractor of a reference, made ready for answers.
type answerSource struct {
	Extractor
	pointer int // FromJSON: its place among the rule's pointers into answers
}

// ExtractReference reads the booking's id from the answer of a book rule, in the
// form in which Facts.HoldRef has it: a string as it is, a JSON number as its exact
// decimal text. "" where the rule names none, and where the answer has none that
// could be named again: no value, several, no scalar, above 1 KiB, not UTF-8.
func (r *Rule) ExtractReference(resp *Response) string {
	if r.reference == nil {
		return ""
	}
	text, ok := r.reference.find(&answer{rule: r, resp: resp})
	if !ok || text == "" || len(text) > maxFact || strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text) {
		return ""
	}
	if r.reference.Integer && !isPlainInteger(text) {
		return ""
	}
	if r.reference.Fold {
		text = foldCase(text)
	}
	if text = joinParts([]string{text}); len(text) > maxFact {
		return ""
	}
	return text
}

func (s *answerSource) find(a *answer) (text string, ok bool) {
	if s.Source == FromHeader {
		return a.onlyField(s.Name)
	}
	raw, found := a.value(s.pointer)
	if !found {
		return "", false
	}
	switch c := raw[0]; {
	case c == '"':
		return string(unquoteJSON(raw)), true
	case c == '-' || '0' <= c && c <= '9':
		return numberText(string(raw))
	}
	return "", false
}

// onlyField is the value of a header field that the answer has once, or several
// times with one value.
func (a *answer) onlyField(name string) (value string, found bool) {
	for i := range a.resp.Header {
		f := &a.resp.Header[i]
		switch {
		case !strings.EqualFold(f.Name, name):
		case found && f.Value != value:
			return "", false
		default:
			value, found = f.Value, true
		}
	}
	return value, found
}
