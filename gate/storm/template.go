package storm

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

// placeholders is what a user is told when a template is wrong.
const placeholders = "known are {n}, {subject}, {key}, with numbers also as {n%20} and {n%20+1}; write {{ for a plain {"

// field is what a part of a template stands for.
type field int

const (
	literalField field = iota
	numberField
	subjectField
	keyField
)

// part is a piece of a template: literal text, or a field. Numbers become
// value%modulus + offset; a modulus of 0 means none.
type part struct {
	field   field
	literal string
	modulus uint64
	offset  uint64
}

// template is compiled text with placeholders. The zero value renders nothing.
type template []part

// placeholder matches what is meant as one. A brace followed by anything else
// is plain text, so that a JSON body needs no escapes.
var placeholder = regexp.MustCompile(`^\{([A-Za-z_][A-Za-z0-9_]*)([^{}"'\s]*)\}`)

var arithmetic = regexp.MustCompile(`^(?:%(\d+))?(?:\+(\d+))?$`)

// parseTemplate compiles text. `{{` is a plain brace.
func parseTemplate(text string) (template, error) {
	var t template
	var plain []byte
	flush := func() {
		if len(plain) > 0 {
			t = append(t, part{literal: string(plain)})
			plain = plain[:0]
		}
	}
	for i := 0; i < len(text); {
		if text[i] != '{' {
			plain = append(plain, text[i])
			i++
			continue
		}
		if i+1 < len(text) && text[i+1] == '{' {
			plain = append(plain, '{')
			i += 2
			continue
		}
		match := placeholder.FindStringSubmatch(text[i:])
		if match == nil {
			plain = append(plain, '{')
			i++
			continue
		}
		p, err := parsePlaceholder(match[1], match[2])
		if err != nil {
			return nil, fmt.Errorf("%s at byte %d: %w", match[0], i, err)
		}
		flush()
		t = append(t, p)
		i += len(match[0])
	}
	flush()
	return t, nil
}

func parsePlaceholder(name, suffix string) (part, error) {
	var p part
	switch name {
	case "n":
		p.field = numberField
	case "subject":
		p.field = subjectField
	case "key":
		p.field = keyField
	default:
		return p, errors.New("unknown placeholder: " + placeholders)
	}
	if suffix == "" {
		return p, nil
	}
	match := arithmetic.FindStringSubmatch(suffix)
	if match == nil || p.field == keyField {
		return p, errors.New("unknown placeholder: " + placeholders)
	}
	var err error
	if match[1] != "" {
		if p.modulus, err = strconv.ParseUint(match[1], 10, 32); err != nil || p.modulus == 0 {
			return p, errors.New("the number after % must be 1 to 4294967295")
		}
	}
	if match[2] != "" {
		if p.offset, err = strconv.ParseUint(match[2], 10, 32); err != nil {
			return p, errors.New("the number after + must be 0 to 4294967295")
		}
	}
	return p, nil
}

// values are what the placeholders of one request stand for.
type values struct {
	n       int
	subject int
	key     string
}

// number is the value of a numeric field.
func (p part) number(v values) uint64 {
	x := uint64(v.n)
	if p.field == subjectField {
		x = uint64(v.subject)
	}
	if p.modulus > 0 {
		x %= p.modulus
	}
	return x + p.offset
}

// append renders t to dst.
func (t template) append(dst []byte, v values) []byte {
	for _, p := range t {
		switch p.field {
		case literalField:
			dst = append(dst, p.literal...)
		case keyField:
			dst = append(dst, v.key...)
		default:
			dst = strconv.AppendUint(dst, p.number(v), 10)
		}
	}
	return dst
}

// namesKey reports whether t contains {key}.
func (t template) namesKey() bool {
	for _, p := range t {
		if p.field == keyField {
			return true
		}
	}
	return false
}

// slot finds the part that spreads requests over slots: the first {n…} with a
// modulus, or where plain is allowed the first {n…} of any form.
func (t template) slot(plain bool) (part, bool) {
	for _, p := range t {
		if p.field == numberField && (plain || p.modulus > 0) {
			return p, true
		}
	}
	return part{}, false
}
