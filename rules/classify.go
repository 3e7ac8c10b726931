package rules

import (
	"bytes"
	"fmt"
	"strings"
)

// maxInspected bounds an answer's body after inflation, in bytes, for conditions on
// it to hold.
const maxInspected = 1 << 20

// outcomeLine is one line of outcomes, made ready.
type outcomeLine struct {
	is     Outcome
	status []StatusRange
	header []fieldCondition
	json   []jsonCondition
	text   []byte
}

// jsonCondition wants a scalar at a pointer.
type jsonCondition struct {
	pointer int
	want    Scalar
	number  decimal // want as a number
}

func (r *Rule) prepareAnswer() error {
	root := newJSONNode("")
	r.answerPointers = root
	if len(r.Reference) > 0 {
		r.reference = &answerSource{Extractor: r.Reference[0]}
		if r.reference.Source == FromJSON {
			if _, err := root.add(r.reference.Name, r.answerCount, false); err != nil {
				return err
			}
			r.reference.pointer = r.answerCount
			r.answerCount++
		}
	}
	for _, o := range r.Outcomes {
		line := outcomeLine{is: o.Is, status: o.When.Status, header: newFieldConditions(o.When.Header), text: []byte(o.When.Text)}
		for pointer, want := range o.When.JSON {
			n, err := root.add(pointer, r.answerCount, false)
			if err != nil {
				return err
			}
			if n == r.answerCount {
				r.answerCount++
			}
			c := jsonCondition{pointer: n, want: want}
			if want.Kind == ScalarNumber {
				var ok bool
				if c.number, ok = parseDecimalLiteral(want.Text); !ok {
					return fmt.Errorf("outcomes: json %s: %q is not a number", pointer, want.Text)
				}
			}
			line.json = append(line.json, c)
		}
		r.outcomes = append(r.outcomes, line)
	}
	return nil
}

// Classify tells what a complete answer meant: the first line of outcomes whose
// conditions all hold, else by status. Answers that were cut, or never came, are the
// caller's to call Unknown.
func (r *Rule) Classify(resp *Response) Outcome {
	a := answer{rule: r, resp: resp}
	for i := range r.outcomes {
		if a.fits(&r.outcomes[i]) {
			return r.outcomes[i].is
		}
	}
	switch {
	case 200 <= resp.Status && resp.Status <= 299:
		if r.settles() {
			return Done
		}
		return Booked
	case 400 <= resp.Status && resp.Status <= 499:
		return Refused
	case resp.Status == 503 && a.has("Retry-After") && !r.settles():
		return Busy
	}
	return Unknown
}

// answer is a response under classification; its body is read once, when a condition
// asks for it.
type answer struct {
	rule   *Rule
	resp   *Response
	read   bool
	text   []byte // nil where it cannot be read
	parsed bool
	json   []byte // text without a BOM
	isJSON bool
	values jsonValues // in json
}

func (a *answer) fits(line *outcomeLine) bool {
	if len(line.status) > 0 && !hasStatus(line.status, a.resp.Status) {
		return false
	}
	for i := range line.header {
		if !a.hasField(&line.header[i]) {
			return false
		}
	}
	if len(line.text) > 0 && !bytes.Contains(a.body(), line.text) {
		return false
	}
	for i := range line.json {
		if !a.hasValue(&line.json[i]) {
			return false
		}
	}
	return true
}

func hasStatus(ranges []StatusRange, status int) bool {
	for _, s := range ranges {
		if s.First <= status && status <= s.Last {
			return true
		}
	}
	return false
}

func (a *answer) has(name string) bool {
	return a.hasField(&fieldCondition{name: name, prefix: true})
}

func (a *answer) hasField(c *fieldCondition) bool {
	for i := range a.resp.Header {
		f := &a.resp.Header[i]
		if strings.EqualFold(f.Name, c.name) && c.holds(f.Value) {
			return true
		}
	}
	return false
}

func (a *answer) hasValue(c *jsonCondition) bool {
	raw, found := a.value(c.pointer)
	return found && c.holds(raw)
}

// value is the raw JSON at one of the rule's pointers.
func (a *answer) value(pointer int) (raw []byte, found bool) {
	if !a.parsed {
		a.parsed = true
		// Legacy PHP files saved with a BOM send it first.
		a.json = bytes.TrimPrefix(a.body(), []byte("\ufeff"))
		if a.isJSON = isJSON(a.json); a.isJSON {
			locate(a.json, a.rule.answerPointers, a.values.of(a.rule.answerCount))
		}
	}
	if !a.isJSON {
		return nil, false
	}
	v := a.values.of(a.rule.answerCount)[pointer]
	return v.raw(a.json), v.state == jsonFound
}

// holds compares a raw JSON value with the wanted scalar; numbers by exact value.
func (c *jsonCondition) holds(raw []byte) bool {
	switch first := raw[0]; {
	case first == '"':
		if bytes.IndexByte(raw, '\\') < 0 {
			return c.want.Kind == ScalarString && string(raw[1:len(raw)-1]) == c.want.Text
		}
		return c.want.Kind == ScalarString && string(unquoteJSON(raw)) == c.want.Text
	case first == 't' || first == 'f':
		return c.want.Kind == ScalarBool && string(raw) == c.want.Text
	case first == 'n':
		return c.want.Kind == ScalarNull
	case first == '{' || first == '[':
		return false
	}
	if c.want.Kind != ScalarNumber {
		return false
	}
	got, ok := parseDecimalLiteral(string(raw))
	return ok && got == c.number
}

// body is the answer's text out of its content coding, nil where it is broken, too
// large or in a coding that cannot be read.
func (a *answer) body() []byte {
	if !a.read {
		a.read = true
		a.text = a.inflate()
	}
	return a.text
}

func (a *answer) inflate() []byte {
	coding := ""
	for i := range a.resp.Header {
		if f := &a.resp.Header[i]; strings.EqualFold(f.Name, "Content-Encoding") {
			if coding != "" {
				return nil
			}
			coding = f.Value
		}
	}
	text, err := inflate(a.resp.Body, coding, maxInspected)
	if err != nil && strings.EqualFold(coding, "deflate") {
		text, err = inflateRaw(a.resp.Body, maxInspected)
	}
	if err != nil {
		return nil
	}
	return text
}
