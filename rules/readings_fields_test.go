package rules

import (
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"
)

// fields are decoded names with what a handler sees under them: one text, or, for
// arrays, the texts joined with a mark that no test value holds.
type fields map[string]string

const arrayMark = "\x01"

// list adds to an array; an array of equal texts is that text here, as handlers that
// take any of them take the same.
func (f fields) list(name, value string) {
	if old, ok := f[name]; ok && old != value {
		value = old + arrayMark + value
	}
	f[name] = value
}

func decodeLax(s string, plus bool) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if i+2 < len(s) && s[i] == '%' {
			if c, ok := new(big.Int).SetString(s[i+1:i+3], 16); ok && s[i+1] != '+' && s[i+1] != '-' {
				b.WriteByte(byte(c.Uint64()))
				i += 2
				continue
			}
		}
		if s[i] == '+' && plus {
			b.WriteByte(' ')
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func eachPair(raw, separators string, visit func(name, value string)) {
	for _, piece := range strings.FieldsFunc(raw, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
		name, value, _ := strings.Cut(piece, "=")
		visit(decodeLax(name, true), decodeLax(value, true))
	}
}

var phpArray = regexp.MustCompile(`^([^\[]+)\[[^\]]*\]`)

// phpField: the last wins, names are made variable names, name[] is an array.
func phpField(f fields, name, value string) {
	name, _, _ = strings.Cut(name, "\x00")
	name = strings.TrimLeft(name, " ")
	clean := strings.NewReplacer(".", "_", " ", "_").Replace
	if m := phpArray.FindStringSubmatch(name); m != nil {
		f.list(clean(m[1]), value+arrayMark)
		return
	}
	base, rest, open := strings.Cut(name, "[")
	if name = clean(base); open {
		name += "_" + rest
	}
	f[name] = value
}

// rackName is the first part of a name and what follows it, to Rack 2.
var rackName = regexp.MustCompile(`(?s)^[\[\]]*([^\[\]]+)\]*(.*)$`)

// rackField: the last wins, brackets make arrays and hashes.
func rackField(f fields, name, value string) {
	m := rackName.FindStringSubmatch(name)
	switch {
	case m == nil:
	case m[2] == "":
		f[m[1]] = value
	case m[2] == "[":
		f[name] = value
	default: // an array or a hash
		f.list(m[1], value+arrayMark)
	}
}

func firstField(f fields, name, value string) {
	if _, ok := f[name]; !ok {
		f[name] = value
	}
}

func pairsWith(separators string, take func(f fields, name, value string)) func(string) fields {
	return func(raw string) fields {
		f := fields{}
		eachPair(raw, separators, func(name, value string) { take(f, name, value) })
		return f
	}
}

var indexed = regexp.MustCompile(`\[\d*\]$`)

// arrayPairs reads as qs does, in which [name] is name.
func arrayPairs(raw string) fields {
	f := fields{}
	eachPair(raw, "&", func(name, value string) {
		name = indexed.ReplaceAllString(name, "")
		if inner, ok := strings.CutPrefix(name, "["); ok {
			name, _, _ = strings.Cut(inner, "]")
		}
		f.list(name, value)
	})
	return f
}

// foldNames is for backends that ignore the letter case of names.
func foldNames(read func(string) fields) func(string) fields {
	return func(raw string) fields {
		f := fields{}
		all := read(raw)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			f.list(strings.ToLower(name), all[name])
		}
		return f
	}
}

var (
	boundaryPattern = regexp.MustCompile(`boundary="?([^";,]+)"?`)
	partName        = regexp.MustCompile(`(?i)[; ]name=\s*("[^"]*"|'[^']*'|[^;\s]+)`)
)

// laxParts reads multipart as leniently as any of them: bare line feeds, text before
// the first part, a missing end. Quotes are the marks around names.
func laxParts(quotes string, take func(f fields, name, value string)) func(string, string) fields {
	return func(label, body string) fields {
		f := fields{}
		m := boundaryPattern.FindStringSubmatch(label)
		if m == nil {
			return f
		}
		pieces := strings.Split("\n"+body+"\n", "\n--"+m[1])[1:] // a boundary may be no text
		for i, piece := range pieces {
			if i == len(pieces)-1 { // nothing but the end of the body ends it
				piece = strings.TrimSuffix(strings.TrimSuffix(piece, "\n"), "\n")
			}
			piece = strings.TrimSuffix(piece, "\r")
			head, value, ok := strings.Cut(piece, "\r\n\r\n")
			if !ok {
				head, value, _ = strings.Cut(piece, "\n\n")
			}
			names := partName.FindAllStringSubmatch(head, -1)
			if len(names) == 0 || strings.Contains(strings.ToLower(head), "filename") {
				continue
			}
			take(f, strings.Trim(names[len(names)-1][1], quotes), value)
		}
		return f
	}
}

func noParts(string, string) fields { return fields{} }
