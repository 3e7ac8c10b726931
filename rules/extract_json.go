package rules

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// jsonNode is a set of JSON Pointers (RFC 6901) as a tree of their tokens, so that
// one walk over a text finds them all.
type jsonNode struct {
	token    string
	folding  []byte // token, for bytes.EqualFold
	index    int    // the token as an array index, -1 if it is none
	pointer  int    // which pointer ends here, -1 for none
	sole     bool
	children []*jsonNode
}

func newJSONNode(token string) *jsonNode {
	n := &jsonNode{token: token, folding: []byte(token), index: -1, pointer: -1}
	if isPlainInteger(token) {
		if i, err := strconv.Atoi(token); err == nil {
			n.index = i
		}
	}
	return n
}

// add enters a pointer under a number and returns the number it is known by: another
// one if the same pointer was there. Sole, see sourceCompiler.sources.
func (n *jsonNode) add(pointer string, number int, sole bool) (int, error) {
	if pointer != "" && pointer[0] != '/' {
		return 0, fmt.Errorf(`json:%s is not a JSON Pointer; it begins with "/"`, pointer)
	}
	for pointer != "" {
		var token string
		token, pointer = cutToken(pointer)
		n.sole = n.sole || sole
		n = n.child(token)
	}
	if n.pointer < 0 {
		n.pointer = number
	}
	return n.pointer, nil
}

// cutToken takes the first token, unescaped, off a pointer that begins with "/".
func cutToken(pointer string) (token, rest string) {
	token = pointer[1:]
	if i := strings.IndexByte(token, '/'); i >= 0 {
		token, rest = token[:i], token[i:]
	}
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~"), rest
}

func (n *jsonNode) child(token string) *jsonNode {
	for _, c := range n.children {
		if c.token == token {
			return c
		}
	}
	c := newJSONNode(token)
	n.children = append(n.children, c)
	return c
}

// jsonState is what a text says about one pointer.
type jsonState uint8

const (
	jsonAbsent   jsonState = iota
	jsonFound              // start and end are its value's
	jsonVariant            // only a member in other letter case is on the way
	jsonRepeated           // a member on the way is repeated, other letter case counting
	jsonSeveral            // an array on the way has elements that no pointer reads
)

// jsonValue is where in a text a value stands. It has no pointer into the text, so that
// values can live on the reader's stack.
type jsonValue struct {
	state      jsonState
	start, end int
}

// raw is the value as it stands there, still quoted and escaped.
func (v jsonValue) raw(text []byte) []byte { return text[v.start:v.end] }

// jsonBody is a request body read as JSON.
type jsonBody struct {
	checked bool
	valid   bool
	located bool
	values  jsonValues
}

// jsonValues are values by pointer number. Up to maxInlinePointers of them take no
// memory of their own.
type jsonValues struct {
	few  [maxInlinePointers]jsonValue
	many []jsonValue
}

const maxInlinePointers = 6

// of is all of them, for a rule with so many pointers.
func (v *jsonValues) of(pointers int) []jsonValue {
	if pointers <= len(v.few) {
		return v.few[:pointers]
	}
	if v.many == nil {
		v.many = make([]jsonValue, pointers)
	}
	return v.many
}

// isJSON validates a whole text (RFC 8259): one value, UTF-8, no lone surrogates, no
// BOM. Repeated members pass; only those on a pointer's way matter, and more strictly.
func isJSON(text []byte) bool {
	return jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true))
}

func (j *jsonBody) check(text []byte) bool {
	if !j.checked {
		j.checked, j.valid = true, isJSON(text)
	}
	return j.valid
}

// findJSON reads a JSON Pointer. Strings are taken as they are, numbers as their
// exact decimal text; other types are no value.
func (x *Extraction) findJSON(s *source) (string, bool, *Refusal) {
	if refusal := x.body.load(x); refusal != nil {
		return "", false, refusal
	}
	text := x.body.text
	switch kind := x.body.kind; {
	case kind == bodyEmpty:
		return "", false, nil
	case kind == bodyUnlabelled:
		return "", false, refuseUnlabelled(s)
	case kind.isForm() && !looksLikeJSON(text):
		return "", false, nil
	case kind != bodyJSON:
		return "", false, refuse(RefuseAmbiguous, "%s cannot be read: the Content-Type is not JSON's", s.label)
	case !x.json.check(text):
		return "", false, refuse(RefuseAmbiguous, "%s cannot be read: the body is not valid JSON in UTF-8", s.label)
	}
	values := x.json.values.of(x.rule.pointerCount)
	if !x.json.located {
		x.json.located = true
		locate(text, x.rule.pointers, values)
	}
	v := values[s.pointer]
	switch v.state {
	case jsonVariant:
		return "", false, refuse(RefuseAmbiguous, "%s: the body has the member in other letter case", s.label)
	case jsonRepeated:
		return "", false, refuse(RefuseAmbiguous, "%s: the body repeats a member on the way", s.label)
	case jsonSeveral:
		return "", false, refuse(RefuseUnidentified, "%s: the body names several", s.label)
	case jsonAbsent:
		return "", false, nil
	}
	raw := v.raw(text)
	switch c := raw[0]; {
	case c == '"':
		return x.req.Texts.Of(unquoteJSON(raw)), true, nil
	case c == '-' || '0' <= c && c <= '9':
		literal := x.req.Texts.Of(raw)
		text, ok := numberText(literal)
		if !ok {
			return "", false, refuse(RefuseUnidentified, "%s: the number is out of bounds", s.label)
		}
		if !s.count && !isReadAlike(literal, text, x.rule.set.dialect.doubles) {
			return "", false, refuse(RefuseAmbiguous, "%s: the number has more digits than some servers keep; send it as a string", s.label)
		}
		return text, true, nil
	}
	return "", false, nil
}

// looksLikeJSON tells a JSON body under a form's label, which some backends would
// read all the same.
func looksLikeJSON(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n\ufeff")
	return len(text) > 0 && (text[0] == '{' || text[0] == '[' || text[0] == '"')
}

// unquoteJSON decodes a valid JSON string.
func unquoteJSON(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	text, _ := jsontext.AppendUnquote(nil, raw)
	return text
}

// locate finds the pointers below root in a valid text.
func locate(text []byte, root *jsonNode, values []jsonValue) {
	w := jsonWalk{text: text, values: values}
	w.at = skipBlank(text, 0)
	w.value(root)
}

// jsonWalk reads a text that isJSON has passed, so it need not look out for errors.
type jsonWalk struct {
	text   []byte
	at     int
	values []jsonValue
}

// value reads one value at a node of the pointers and stops behind it.
func (w *jsonWalk) value(n *jsonNode) {
	start := w.at
	switch {
	case len(n.children) > 0 && w.text[start] == '{':
		w.object(n)
	case len(n.children) > 0 && w.text[start] == '[':
		w.array(n)
	default:
		w.at = skipValue(w.text, start)
	}
	if n.pointer >= 0 {
		w.values[n.pointer] = jsonValue{state: jsonFound, start: start, end: w.at}
	}
}

func (w *jsonWalk) object(n *jsonNode) {
	var inline [8]jsonState
	seen := inline[:0]
	for range n.children {
		seen = append(seen, jsonAbsent)
	}
	w.at = skipBlank(w.text, w.at+1)
	for w.text[w.at] != '}' {
		end := skipString(w.text, w.at)
		name := w.text[w.at+1 : end-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			name, _ = jsontext.AppendUnquote(nil, w.text[w.at:end])
		}
		w.at = skipBlank(w.text, skipBlank(w.text, end)+1)
		w.member(n, name, seen)
		w.at = skipBlank(w.text, w.at)
		if w.text[w.at] == ',' {
			w.at = skipBlank(w.text, w.at+1)
		}
	}
	w.at++
	for i, c := range n.children {
		if seen[i] == jsonVariant || seen[i] == jsonRepeated {
			c.mark(seen[i], w.values)
		}
	}
}

// member reads the value of a member, as the child's it belongs to.
func (w *jsonWalk) member(n *jsonNode, name []byte, seen []jsonState) {
	for i, c := range n.children {
		switch {
		case string(name) == c.token:
			if seen[i] == jsonAbsent {
				seen[i] = jsonFound
				w.value(c)
				return
			}
			seen[i] = jsonRepeated
		case bytes.EqualFold(name, c.folding):
			if seen[i] == jsonAbsent {
				seen[i] = jsonVariant
			} else {
				seen[i] = jsonRepeated
			}
		}
	}
	w.at = skipValue(w.text, w.at)
}

func (w *jsonWalk) array(n *jsonNode) {
	w.at = skipBlank(w.text, w.at+1)
	unread := false
	for i := 0; w.text[w.at] != ']'; i++ {
		read := false
		for _, c := range n.children {
			if c.index == i {
				w.value(c)
				read = true
			}
		}
		if !read {
			w.at = skipValue(w.text, w.at)
			unread = true
		}
		w.at = skipBlank(w.text, w.at)
		if w.text[w.at] == ',' {
			w.at = skipBlank(w.text, w.at+1)
		}
	}
	w.at++
	if unread && n.sole {
		for _, c := range n.children {
			c.mark(jsonSeveral, w.values)
		}
	}
}

// mark sets the state of every pointer through a node.
func (n *jsonNode) mark(state jsonState, values []jsonValue) {
	if n.pointer >= 0 {
		values[n.pointer] = jsonValue{state: state}
	}
	for _, c := range n.children {
		c.mark(state, values)
	}
}

func skipBlank(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\r' || text[i] == '\t') {
		i++
	}
	return i
}

// skipString returns the end of the string that begins at i.
func skipString(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// skipValue returns the end of the value that begins at i.
func skipValue(text []byte, i int) int {
	depth := 0
	for i < len(text) {
		switch text[i] {
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case '"':
			i = skipString(text, i)
		case ',', ':', ' ', '\n', '\r', '\t':
			i++
			continue
		default:
			for i < len(text) && strings.IndexByte(",:]} \n\r\t", text[i]) < 0 {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
	return i
}
