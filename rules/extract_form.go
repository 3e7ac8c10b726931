package rules

import (
	"iter"
	"strings"
)

// maxFields bounds the pairs of a query and the fields of a form: servers stop
// reading at different counts, many at this one.
const maxFields = 1000

// findQuery reads a query parameter. A form field of that name speaks too: PHP and
// Rack let it win.
func (x *Extraction) findQuery(s *source) (string, bool, *Refusal) {
	v := namedValue{label: s.label}
	if refusal := v.scanPairs(x.req.Query, x.rule.charset, s, true); refusal != nil {
		return "", false, refusal
	}
	refusal := x.body.load(x)
	switch {
	case x.body.kind == bodyUnlabelled:
		return "", false, refuseUnlabelled(s)
	case x.body.alien: // ASP.NET reads the query, too, in the body's charset
		return "", false, refusal
	case !x.body.kind.isForm():
	case refusal != nil:
		return "", false, refusal
	default:
		if refusal := x.scanForm(&v, s, false); refusal != nil {
			return "", false, refusal
		}
	}
	return v.result()
}

// findForm reads a form field, urlencoded or multipart. A JSON body has none. A query
// parameter of that name speaks too.
func (x *Extraction) findForm(s *source) (string, bool, *Refusal) {
	if refusal := x.body.load(x); refusal != nil {
		return "", false, refusal
	}
	v := namedValue{label: s.label}
	switch kind := x.body.kind; {
	case kind == bodyUnlabelled:
		return "", false, refuseUnlabelled(s)
	case kind == bodyOther:
		return "", false, refuse(RefuseAmbiguous, "%s cannot be read: the Content-Type is not a form's", s.label)
	case kind.isForm():
		if refusal := x.scanForm(&v, s, true); refusal != nil {
			return "", false, refusal
		}
	}
	if refusal := v.scanPairs(x.req.Query, x.rule.charset, s, false); refusal != nil {
		return "", false, refusal
	}
	return v.result()
}

func refuseUnlabelled(s *source) *Refusal {
	return refuse(RefuseAmbiguous, "%s cannot be read: the body has no Content-Type that can be read", s.label)
}

// formBody is a body read as a form.
type formBody struct {
	read    bool
	encoded string // urlencoded pairs
	parts   []part // multipart
	refusal *Refusal
}

func (f *formBody) load(x *Extraction) *Refusal {
	if f.read {
		return f.refusal
	}
	f.read = true
	if x.body.kind == bodyMultipart {
		f.parts, f.refusal = splitMultipart(x.body.text, x.body.boundary, x.body.charset)
	} else {
		f.encoded = string(x.body.text)
	}
	return f.refusal
}

// scanForm gathers from the form body; own tells that the source is a form source.
func (x *Extraction) scanForm(v *namedValue, s *source, own bool) *Refusal {
	if refusal := x.form.load(x); refusal != nil {
		return refusal
	}
	if x.body.kind == bodyMultipart {
		return v.scanParts(x.form.parts, s, own)
	}
	return v.scanPairs(x.form.encoded, x.body.charset, s, own)
}

// scanPairs gathers from a query or urlencoded text. Pairs end at "&"; where some
// servers also end them at ";" and that would change the source's value, the text is
// refused, as is a name that cannot be decoded.
func (v *namedValue) scanPairs(raw string, c charset, s *source, own bool) *Refusal {
	count := 0
	for piece := range splitPairs(raw) {
		if count++; count > maxFields {
			return refuse(RefuseAmbiguous, "%s cannot be read: more than %d fields", v.label, maxFields)
		}
		if strings.IndexByte(piece, ';') >= 0 {
			for sub := range strings.SplitSeq(piece, ";") {
				name, _, _ := strings.Cut(sub, "=")
				if name, ok := decodePercent(name, true); !ok || nameClash(c.name(name), s) {
					return refuse(RefuseAmbiguous, `%s is next to a ";", which some servers take for a separator`, v.label)
				}
			}
			continue
		}
		rawName, rawValue, _ := strings.Cut(piece, "=")
		name, ok := decodePercent(rawName, true)
		if !ok {
			return refuse(RefuseAmbiguous, "%s cannot be read: a name has an invalid %% escape", v.label)
		}
		name = c.name(name)
		exact := name == s.Name
		if !exact && !nameClash(name, s) {
			continue
		}
		value, ok := decodePercent(rawValue, true)
		if ok {
			value, ok = c.text(value)
		}
		if !ok {
			return refuse(RefuseAmbiguous, "%s has an invalid %% escape or is not in the charset", v.label)
		}
		if exact && own {
			v.add(value)
		} else {
			v.addName(name, s, value)
		}
	}
	return nil
}

// scanParts gathers from multipart parts. A part with a file name is a file to some
// servers and a field to others.
func (v *namedValue) scanParts(parts []part, s *source, own bool) *Refusal {
	for i := range parts {
		p := &parts[i]
		exact := p.name == s.Name
		if !exact && !nameClash(p.name, s) {
			continue
		}
		value, ok := p.charset.text(string(p.content))
		switch {
		case p.file:
			return refuse(RefuseAmbiguous, "%s is sent as a file", v.label)
		case !p.readable || !ok:
			return refuse(RefuseAmbiguous, "%s is not plain text in the charset", v.label)
		case exact && own:
			v.add(value)
		default:
			v.addName(p.name, s, value)
		}
	}
	return nil
}

// splitPairs yields the non-empty pieces between "&".
func splitPairs(raw string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for more := raw != ""; more; {
			var piece string
			piece, raw, more = strings.Cut(raw, "&")
			if piece != "" && !yield(piece) {
				return
			}
		}
	}
}

// decodePercent undoes percent-encoding, and "+" for a blank where plus says so. It
// fails on an invalid escape.
func decodePercent(s string, plus bool) (string, bool) {
	if strings.IndexByte(s, '%') < 0 && !(plus && strings.IndexByte(s, '+') >= 0) {
		return s, true
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '%':
			decoded, ok := unhexPair(s, i+1)
			if !ok {
				return "", false
			}
			out = append(out, decoded)
			i += 2
		case c == '+' && plus:
			out = append(out, ' ')
		default:
			out = append(out, c)
		}
	}
	return string(out), true
}
