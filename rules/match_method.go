package rules

import (
	"slices"
	"strings"
)

// methodField is the field, of the query, a form or JSON, by which many frameworks
// override POST.
const methodField = "_method"

// maxMethods bounds the different methods one request may ask for.
const maxMethods = 4

// overrides are the different methods, in upper case, that a request asks for in
// place of its own.
type overrides struct {
	list      [maxMethods - 1]string
	count     int
	malformed bool // one is no method at all, or there are too many
	doubtful  bool // one stands where only some backends look for it
}

func (o *overrides) methods() []string { return o.list[:o.count] }

func (o *overrides) add(value string) {
	if value == "" {
		o.doubtful = true // whoever takes the first of several may see none
		return
	}
	method := strings.ToUpper(value)
	switch {
	case slices.Contains(o.methods(), method):
	case !isToken(value), o.count == len(o.list):
		o.malformed = true
	default:
		o.list[o.count] = method
		o.count++
	}
}

// inHead gathers the overrides of a request's header and query that a backend of the
// dialect reads.
func (d *dialect) inHead(r *Request, o *overrides) {
	post := strings.EqualFold(r.Method, "POST")
	if !d.lax && !d.onAll && !post {
		return
	}
	defer func() { o.doubtful = o.doubtful || !post }()
	for i := range r.Header {
		f := &r.Header[i]
		for _, name := range d.headers {
			// Lengths first: this runs for every line of every request.
			if len(f.Name) == len(name) && sameHeader(f.Name, name) {
				o.add(f.Value)
				o.doubtful = o.doubtful || !strings.EqualFold(f.Name, name)
			}
		}
	}
	if !d.query {
		return
	}
	for piece := range splitPairs(r.Query) {
		name, value, _ := strings.Cut(piece, "=")
		if name, ok := decodePercent(name, true); ok && nameClash(name, &methodSource) {
			value, _ = decodePercent(value, true)
			o.add(value)
			o.doubtful = o.doubtful || name != methodField
		}
	}
}

// methodsOf lists, in buf, the methods by which a backend may run a request: where it
// is sure to follow overrides, only theirs. What is no method there overrides nothing,
// and a doubtful one may.
func (d *dialect) methodsOf(sent string, o *overrides, buf []string) []string {
	buf = buf[:0]
	sent = strings.ToUpper(sent)
	follows := func(method string) bool { return d.lax || slices.Contains(d.methods, method) }
	ignores := func(method string) bool { return !follows(method) }
	if d.lax || o.doubtful || o.count == 0 || slices.ContainsFunc(o.methods(), ignores) {
		buf = append(buf, sent)
	}
	for _, method := range o.methods() {
		if follows(method) && !slices.Contains(buf, method) {
			buf = append(buf, method)
		}
	}
	return buf
}

// bodyMayOverride reports whether the body could have a _method field that overrides
// the method, as far as the head tells. Rack reads a body without a label as a form;
// Laravel reads JSON wherever the label has the word.
func (d *dialect) bodyMayOverride(r *Request) bool {
	if !d.form || !strings.EqualFold(r.Method, "POST") {
		return false
	}
	label, _, refusal := findHeader(r.Header, "Content-Type", "")
	var b bodyText
	_, ok := b.classify(label)
	return refusal != nil || !ok || b.kind.isForm() || b.kind == bodyUnlabelled ||
		d.json && (b.kind == bodyJSON || b.kind == bodyOther && strings.Contains(strings.ToLower(label), "json"))
}

// inBody gathers the override of the body that r.Body is. It is sure to count only in
// a plain form with a label: few backends undo a content coding, one reads a form
// without a label, Express needs a module for multipart, and a function of the
// application's own for JSON, which in PHP only Laravel makes fields of.
func (d *dialect) inBody(r *Request, o *overrides, maxBody int64) *Refusal {
	x := Extraction{rule: methodRule, req: r, maxBody: maxBody}
	if refusal := x.body.load(&x); refusal != nil {
		return refusal
	}
	read := x.readFormMethod
	if x.body.kind == bodyJSON || x.body.kind == bodyOther {
		read = x.readJSONMethod
	}
	value, found, refusal := read()
	if refusal != nil || !found {
		return refusal
	}
	o.add(value)
	o.doubtful = o.doubtful || !x.body.kind.isForm() || x.body.kind == bodyMultipart && d.plainForms ||
		countHeader(r.Header, "Content-Encoding") > 0
	return nil
}

// methodRule reads nothing but _method, of a body that is a form unless its label says
// another thing.
var methodRule = &Rule{anyCharset: true, pointers: methodPointer, pointerCount: 1}

var methodSource = source{Extractor: Extractor{Source: FromForm, Name: methodField}, label: "form:" + methodField, folded: methodField}

// methodMember is methodSource in JSON, where a number is no method anyway.
var methodMember = source{Extractor: Extractor{Source: FromJSON, Name: "/" + methodField}, label: "json:/" + methodField, count: true}

var methodPointer = &jsonNode{index: -1, pointer: -1, children: []*jsonNode{{token: methodField, folding: []byte(methodField), index: -1}}}

func (x *Extraction) readFormMethod() (value string, found bool, refusal *Refusal) {
	v := namedValue{label: methodSource.label}
	if refusal := x.scanForm(&v, &methodSource, true); refusal != nil {
		return "", false, refusal
	}
	return v.result()
}

func (x *Extraction) readJSONMethod() (value string, found bool, refusal *Refusal) {
	own := Extraction{rule: methodRule, req: x.req, body: x.body, json: jsonBody{checked: x.json.checked, valid: x.json.valid}}
	return own.findJSON(&methodMember)
}

// checkBodyMethod refuses a body whose _method field would make the request one of
// another rule than it was matched with, because the rule's body_as reads it as what
// its label does not say. A body that cannot be read is refused where a source needs
// it, not here.
func (x *Extraction) checkBodyMethod() *Refusal {
	d := x.rule.set.dialect
	if !x.rule.readsBody || !d.form || x.body.load(x) != nil {
		return nil
	}
	read := x.readFormMethod
	switch {
	case x.body.kind.isForm() && x.form.load(x) == nil:
	case d.json && x.body.kind == bodyJSON && x.rule.BodyAs == "json" && x.json.check(x.body.text):
		read = x.readJSONMethod
	default:
		return nil
	}
	value, found, refusal := read()
	if refusal != nil || !found || value == "" {
		return refusal
	}
	if !isToken(value) {
		return refuse(RefuseAmbiguous, "the body's %s is not a method", methodField)
	}
	other := *x.req
	other.Method = value
	if m, refusal := x.rule.set.Match(&other); refusal != nil || m.Rule != nil && m.Rule != x.rule {
		return refuse(RefuseAmbiguous, "the body's %s makes the request fit another rule", methodField)
	}
	return nil
}

// isToken: RFC 9110, 5.6.2.
func isToken(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' {
			continue
		}
		if strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}
