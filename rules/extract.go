package rules

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxFact is the size of a slot or subject text in bytes.
const maxFact = 1 << 10

// Extract reads the facts of a request that fell under the rule. The request's Body
// must be complete where ReadsBody says so; maxBody bounds it after inflation, in
// bytes. A Refusal is the answer for what could be read two ways, is missing or is
// malformed; no input makes it panic.
func (r *Rule) Extract(req *Request, m *Match, maxBody int64) (Facts, *Refusal) {
	var x Extraction
	f, refusal := x.Read(r, req, m, maxBody)
	if refusal == nil {
		f.Fingerprint = x.Fingerprint(&f)
	}
	return f, refusal
}

// Extraction is the reading of one request by one rule; the body is parsed once, by
// the first source that needs it. It is for one request, as is what it was given.
type Extraction struct {
	rule    *Rule
	req     *Request
	match   *Match
	maxBody int64

	body    bodyText
	json    jsonBody
	form    formBody
	printed []byte // what the rule's own list adds to the fingerprint
}

// Read is Rule.Extract without the fingerprint, which is most of the work and not
// needed by a request that is refused for other reasons. It is there where the key was
// derived from it.
func (x *Extraction) Read(r *Rule, req *Request, m *Match, maxBody int64) (Facts, *Refusal) {
	x.rule, x.req, x.match, x.maxBody = r, req, m, maxBody
	f := Facts{Units: 1, Client: req.Client}
	var refusal *Refusal
	if f.Slot, refusal = x.fact("slot", r.slot); refusal != nil {
		return Facts{}, refusal
	}
	if f.Subject, refusal = x.fact("subject", r.subject); refusal != nil {
		return Facts{}, refusal
	}
	if f.HoldRef, refusal = x.fact("hold", r.hold); refusal != nil {
		return Facts{}, refusal
	}
	if len(r.units) > 0 {
		if f.Units, refusal = x.unitsOf(&r.units[0]); refusal != nil {
			return Facts{}, refusal
		}
	}
	if idem := r.Idempotency; idem != nil {
		if f.Group = idem.Group; f.Group == "" {
			f.Group = r.Name
		}
		if f.Key, refusal = x.idempotencyKey(&f); refusal != nil {
			return Facts{}, refusal
		}
		if f.Partition, refusal = x.identity(r.partition); refusal != nil {
			return Facts{}, refusal
		}
	}
	if f.Scope, refusal = x.identity(r.scope); refusal != nil {
		return Facts{}, refusal
	}
	if refusal = x.checkBodyMethod(); refusal != nil {
		return Facts{}, refusal
	}
	if refusal = x.readPrinted(); refusal != nil {
		return Facts{}, refusal
	}
	if r.derives(&f) {
		f.Fingerprint = x.Fingerprint(&f)
		f.Key = derivedKey(&f)
	}
	return f, nil
}

// source is an extractor made ready.
type source struct {
	Extractor
	label   string // what a refusal calls it: json:/student_id
	pointer int    // FromJSON: its place among the rule's pointers
	count   bool   // of units: a number that is read in two ways is none that can be had
	issued  bool   // FromCookie, of a key: the gate's own cookie
	folded  string // FromQuery, FromForm, FromCookie: the name as backends fold it
	nested  bool   // … and it has parts
}

// setName prepares what names of fields are compared with.
func (s *source) setName(name string) {
	s.folded, s.nested = foldName(name), strings.ContainsAny(name, "[].")
}

// sourceCompiler turns extractors into sources and gathers what they share.
type sourceCompiler struct {
	root      *jsonNode
	pointers  int
	pathNames []string
	body      bool
	err       error
}

var sourceNames = map[Source]string{
	FromPath: "path", FromQuery: "query", FromHeader: "header", FromCookie: "cookie",
	FromForm: "form", FromJSON: "json", FromIP: "ip", FromConst: "const",
}

// sources compiles a list. Sole marks facts that a request names once: an array on
// their pointer's way with elements that no pointer reads names several.
func (c *sourceCompiler) sources(list Extractors, sole bool) []source {
	var out []source
	for _, e := range list {
		s := source{Extractor: e, label: sourceNames[e.Source] + ":" + e.Name}
		switch e.Source {
		case FromPath:
			c.pathNames = append(c.pathNames, e.Name)
		case FromJSON:
			if c.root == nil {
				c.root = newJSONNode("")
			}
			n, err := c.root.add(e.Name, c.pointers, sole)
			if err != nil && c.err == nil {
				c.err = err
			}
			if n == c.pointers {
				c.pointers++
			}
			s.pointer, c.body = n, true
		case FromQuery, FromForm:
			s.setName(e.Name)
			c.body = true
		case FromCookie:
			s.setName(e.Name)
		}
		out = append(out, s)
	}
	return out
}

// find reads one source. Absent is not an error here.
func (x *Extraction) find(s *source) (value string, found bool, refusal *Refusal) {
	switch s.Source {
	case FromPath:
		for _, p := range x.match.Params.All() {
			if p.Name == s.Name {
				return p.Value, true, nil
			}
		}
	case FromQuery:
		return x.findQuery(s)
	case FromHeader:
		return findHeader(x.req.Header, s.Name, s.label)
	case FromCookie:
		return findCookie(x.req.Header, s)
	case FromForm:
		return x.findForm(s)
	case FromJSON:
		return x.findJSON(s)
	case FromIP:
		if x.req.Client.IsValid() {
			return x.req.Client.Unmap().String(), true, nil
		}
	case FromConst:
		return s.Name, true, nil
	}
	return "", false, nil
}

// text is find with the source's `as` and `case` applied; ok is false for a text
// that `as: integer` refuses.
func (x *Extraction) text(s *source) (value string, found, ok bool, refusal *Refusal) {
	value, found, refusal = x.find(s)
	if refusal != nil || !found {
		return "", false, false, refusal
	}
	if s.Integer && !isPlainInteger(value) {
		return "", true, false, nil
	}
	if s.Fold {
		value = foldCase(value)
	}
	return value, true, true, nil
}

// fact reads the slot, the subject or the hold: every part must be there. A rule
// that names none gives "".
func (x *Extraction) fact(what string, sources []source) (string, *Refusal) {
	if len(sources) == 0 {
		return "", nil
	}
	var one [1]string
	parts := one[:0]
	size := 0
	for i := range sources {
		s := &sources[i]
		value, found, ok, refusal := x.text(s)
		size += len(value)
		switch {
		case refusal != nil:
			return "", refusal
		case !found:
			return "", refuse(RefuseUnidentified, "%s: %s has no value", what, s.label)
		case !ok:
			return "", refuse(RefuseUnidentified, "%s: %s is not a whole number in plain digits", what, s.label)
		case value == "":
			return "", refuse(RefuseUnidentified, "%s: %s is empty", what, s.label)
		case size > maxFact:
			return "", refuse(RefuseUnidentified, "%s: %s is longer than 1 KiB", what, s.label)
		case strings.IndexByte(value, 0) >= 0:
			return "", refuse(RefuseAmbiguous, "%s: %s holds a NUL, where some servers end a text", what, s.label)
		case !utf8.ValidString(value):
			return "", refuse(RefuseAmbiguous, "%s: %s is not UTF-8", what, s.label)
		}
		parts = append(parts, value)
	}
	text := joinParts(parts)
	if len(text) > maxFact {
		return "", refuse(RefuseUnidentified, "%s is longer than 1 KiB", what)
	}
	return text, nil
}

// unitsOf reads how many units the request is for.
func (x *Extraction) unitsOf(s *source) (int64, *Refusal) {
	value, found, _, refusal := x.text(s)
	switch {
	case refusal != nil:
		return 0, refusal
	case !found:
		return 0, refuse(RefuseUnidentified, "units: %s has no value", s.label)
	case !isPlainInteger(value):
		return 0, refuse(RefuseUnidentified, "units: %s is not a whole number in plain digits", s.label)
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n > x.rule.maxUnits {
		return 0, refuse(RefuseUnidentified, "units: %s is above %d, the most one request may take", s.label, x.rule.maxUnits)
	}
	if n < 1 {
		return 0, refuse(RefuseUnidentified, "units: %s is below 1", s.label)
	}
	return n, nil
}

// identity joins the values of scope or partition, absent ones marked; "" when all
// are absent or empty, which identify nobody.
func (x *Extraction) identity(sources []source) (string, *Refusal) {
	var stack [256]byte
	b := stack[:0]
	known := false
	for i := range sources {
		value, found, ok, refusal := x.text(&sources[i])
		switch {
		case refusal != nil:
			return "", refusal
		case found && !ok:
			return "", refuse(RefuseUnidentified, "%s is not a whole number in plain digits", sources[i].label)
		case value == "":
			b = append(b, partMark, '-')
			continue
		}
		known = true
		b = appendPart(b, value)
	}
	if !known {
		return "", nil
	}
	return x.req.Texts.Of(b), nil
}

// partMark begins each part of a joined text.
const partMark = '|'

// joinParts makes one text of a list so that no two lists give the same: |3:abc|2:xy.
// A single part is the text itself, unless it could be taken for a joined one.
func joinParts(parts []string) string {
	if len(parts) == 1 && !strings.HasPrefix(parts[0], string(partMark)) {
		return parts[0]
	}
	var b []byte
	for _, p := range parts {
		b = appendPart(b, p)
	}
	return string(b)
}

func appendPart(b []byte, part string) []byte {
	b = append(b, partMark)
	b = strconv.AppendInt(b, int64(len(part)), 10)
	b = append(b, ':')
	return append(b, part...)
}

func refuse(kind RefusalKind, format string, args ...any) *Refusal {
	return &Refusal{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}
