package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// document is a configuration file as YAML nodes, with what was found wrong so
// far. The root is a mapping, or nil when the file cannot be read at all.
type document struct {
	file   string
	root   *yaml.Node
	faults Faults

	origin     map[*yaml.Node]string // nodes that an override brought, by its path
	expanded   map[*yaml.Node]bool   // scalars that held a variable
	unreadable map[*yaml.Node]bool   // have a fault that hides their value
	faulty     map[*yaml.Node]bool   // have any fault that is no warning
}

func parseDocument(file string, src []byte) *document {
	d := &document{
		file:       file,
		origin:     map[*yaml.Node]string{},
		expanded:   map[*yaml.Node]bool{},
		unreadable: map[*yaml.Node]bool{},
		faulty:     map[*yaml.Node]bool{},
	}
	src = bytes.TrimPrefix(src, []byte("\uFEFF"))
	if !d.checkText(src) {
		return d
	}
	decoder := yaml.NewDecoder(bytes.NewReader(src))
	var first, second yaml.Node
	err := decoder.Decode(&first)
	switch {
	case errors.Is(err, io.EOF):
		d.report(1, 1, "the file is empty: upstream.url and one rule are the least it can say")
		return d
	case err != nil:
		d.syntaxFault(src, err)
		return d
	}
	switch err = decoder.Decode(&second); {
	case err == nil:
		d.report(second.Line, second.Column, "a second document starts here: one file is one configuration, remove what follows the ---")
	case !errors.Is(err, io.EOF):
		d.syntaxFault(src, err)
	}
	root := first.Content[0]
	switch {
	case root.Kind == yaml.MappingNode:
		d.root = root
	case root.Kind == yaml.ScalarNode && root.Value == "":
		d.report(1, 1, "the file is empty: upstream.url and one rule are the least it can say")
	default:
		d.report(root.Line, root.Column, "the file must be a mapping of server, upstream, pools, rules and so on, not "+describe(root))
	}
	return d
}

// checkText refuses what is not UTF-8, and characters that editors, YAML 1.1 and
// YAML 1.2 do not agree on: with them a line number would mean two lines.
func (d *document) checkText(src []byte) bool {
	line, col := 1, 1
	for i := 0; i < len(src); {
		r, size := utf8.DecodeRune(src[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			d.report(line, col, fmt.Sprintf("byte 0x%02x is not UTF-8: save the file as UTF-8", src[i]))
			return false
		case r == '\r' && !bytes.HasPrefix(src[i:], []byte("\r\n")):
			d.report(line, col, "a carriage return without a line feed: end lines with LF or CRLF")
			return false
		case !textual(r):
			d.report(line, col, fmt.Sprintf("the character U+%04X cannot stand in a configuration: remove it, or write it as \"\\u%04X\"", r, r))
			return false
		}
		i += size
		col++
		if r == '\n' {
			line, col = line+1, 1
		}
	}
	return true
}

func textual(r rune) bool {
	switch {
	case r == '\t', r == '\n', r == '\r':
		return true
	case r < 0x20, r >= 0x7f && r < 0xa0, r == 0x2028, r == 0x2029, r == 0xfeff, r == 0xfffe, r == 0xffff:
		return false
	}
	return true
}

var yamlErrorLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?`)

// syntaxFault finds the line of a syntax error. The parser tells the line at which
// the construct began that it could not finish, which may be far above; what a
// person looks for is the first line from which on nothing can be read.
func (d *document) syntaxFault(src []byte, err error) {
	said := yamlErrorLine.FindStringSubmatch(err.Error())
	message := strings.TrimPrefix(err.Error(), said[0])
	line, _ := strconv.Atoi(said[1])
	lines := bytes.SplitAfter(src, []byte("\n"))
	if len(lines) <= 1000 { // the search reads the file once for each line below the error
		line = 1 + readableLines(src)
	}
	line = min(max(line, 1), len(lines))
	text := lines[line-1]
	indent := len(text) - len(bytes.TrimLeft(text, " \t"))
	if tab := bytes.IndexByte(text[:indent], '\t'); tab >= 0 {
		d.report(line, tab+1, "a tab cannot indent YAML: use spaces")
		return
	}
	d.report(line, 1, "not YAML: "+message+syntaxHint(message, text))
}

// bareBraces is a template, or a variable, without quotes.
var bareBraces = regexp.MustCompile(`\{.*:\s+[^"'\s,{}]+\{`)

// syntaxHint says what most often makes the parser say so.
func syntaxHint(message string, line []byte) string {
	switch {
	case bareBraces.Match(line):
		return " (inside { } a value that holds braces must be quoted)"
	case strings.Contains(message, "mapping values are not allowed"):
		return " (a value that ends in a colon, or holds one before a blank, must be quoted)"
	case strings.Contains(message, "cannot start any token"):
		return " (a value that begins with @ or ` must be quoted)"
	}
	return ""
}

// readableLines counts the lines of the longest beginning that is valid YAML.
func readableLines(src []byte) int {
	for len(src) > 0 {
		src = src[:1+bytes.LastIndexByte(src[:len(src)-1], '\n')]
		if readable(src) {
			break
		}
	}
	return bytes.Count(src, []byte("\n"))
}

func readable(src []byte) bool {
	decoder := yaml.NewDecoder(bytes.NewReader(src))
	for {
		var node yaml.Node
		if err := decoder.Decode(&node); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

func (d *document) report(line, col int, message string) {
	d.faults = append(d.faults, Fault{File: d.file, Line: line, Col: col, Message: message})
}

// fault reports what is wrong with a node. A second fault of a node that could not
// be read would only follow from the first.
func (d *document) fault(node *yaml.Node, message string) {
	d.faulty[node] = true
	d.note(node, message, false)
}

func (d *document) note(node *yaml.Node, message string, warning bool) {
	d.faults = append(d.faults, d.at(node, message, warning))
}

// at is a fault where the node stands.
func (d *document) at(node *yaml.Node, message string, warning bool) Fault {
	f := Fault{File: d.file, Line: node.Line, Col: node.Column, Message: message, Warning: warning}
	if set, ok := d.origin[node]; ok {
		f.File, f.Line, f.Col = "--set "+set, 0, 0
	}
	return f
}

// checkStructure refuses what YAML allows and a configuration should not: keys
// given twice, keys that are no text, and one place speaking for another.
func (d *document) checkStructure(node *yaml.Node) {
	d.checkProperties(node)
	if node.Kind != yaml.MappingNode {
		for _, item := range node.Content {
			d.checkStructure(item)
		}
		return
	}
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		first, repeated := seen[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			d.hide(key, "a key must be plain text, not "+describe(key))
		case key.Tag == "!!merge":
			d.hide(key, "merge keys (<<) are not supported: write the fields out")
		case strings.Contains(key.Value, "${"):
			d.hide(key, fmt.Sprintf("key %s: variables are expanded in values only, write the name itself", key.Value))
		case repeated:
			d.hide(key, fmt.Sprintf("key %s is repeated, first on line %d: keep one of them", key.Value, first.Line))
		default:
			seen[key.Value] = key
			d.checkProperties(key)
		}
		if !d.unreadable[key] {
			d.checkStructure(value)
		}
	}
}

// checkProperties refuses aliases, anchors and tags.
func (d *document) checkProperties(node *yaml.Node) {
	switch {
	case node.Kind == yaml.AliasNode:
		d.hide(node, fmt.Sprintf("aliases (*%s) are not supported: write the value out, or quote the text", node.Value))
	case node.Anchor != "":
		d.fault(node, fmt.Sprintf("anchors (&%s) are not supported: remove it, or quote the text", node.Anchor))
	case node.Style&yaml.TaggedStyle != 0:
		d.hide(node, fmt.Sprintf("tags (%s) are not supported: remove it, or quote the text", node.Tag))
	}
}

// hide reports a fault and keeps the node from being looked at again.
func (d *document) hide(node *yaml.Node, message string) {
	d.fault(node, message)
	d.unreadable[node] = true
}

// describe names the kind of a node in a message.
func describe(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	if node.Tag == "!!null" {
		return "nothing"
	}
	return "a single value"
}
