package rules

import (
	"fmt"
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"
)

// place is where a field is, or would be: its path for messages, and the nodes
// that give its position. Of a field that was not written, it has the nodes of the
// nearest thing around it that was.
type place struct {
	doc     *document
	path    string
	key     *yaml.Node // nil at the root and for entries of a list
	value   *yaml.Node
	written bool
}

func (d *document) top() place { return place{doc: d, value: d.root, written: true} }

// field is the entry of a mapping.
func (p place) field(name string) place {
	path := name
	if p.path != "" {
		path = p.path + "." + name
	}
	if p.written && p.value.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(p.value.Content); i += 2 {
			if key := p.value.Content[i]; key.Value == name && !p.doc.unreadable[key] {
				return place{p.doc, path, key, p.value.Content[i+1], true}
			}
		}
	}
	return place{p.doc, path, p.key, p.value, false}
}

// item is an entry of a list, or the value itself where one stands for a list of
// one. Its path has the entry's name if it has one.
func (p place) item(i int) place {
	if !p.written || p.value.Kind != yaml.SequenceNode || i >= len(p.value.Content) {
		return p
	}
	item := place{doc: p.doc, value: p.value.Content[i], written: true}
	label := strconv.Itoa(i)
	if name := item.field("name"); name.written && name.value.Kind == yaml.ScalarNode && name.value.Value != "" {
		label = name.value.Value
	}
	item.path = p.path + "." + label
	return item
}

// node is what a message about the place points at: a value, or the key of what
// is not a single value or not there.
func (p place) node() *yaml.Node {
	_, set := p.doc.origin[p.value]
	if p.key == nil || set || p.written && p.value.Kind == yaml.ScalarNode {
		return p.value
	}
	return p.key
}

// faultf reports an error at the place, unless what stands there could not be
// read: that has its fault already.
func (p place) faultf(format string, args ...any) {
	if p.doc.unreadable[p.value] {
		return
	}
	p.doc.faulty[p.value] = true
	p.doc.fault(p.node(), p.message(format, args))
}

// unreadablef reports an error that hides the value of the place.
func (p place) unreadablef(format string, args ...any) {
	p.faultf(format, args...)
	p.doc.unreadable[p.value] = true
}

// warnf reports a warning at the place.
func (p place) warnf(format string, args ...any) {
	p.doc.note(p.node(), p.message(format, args), true)
}

func (p place) message(format string, args []any) string {
	text := fmt.Sprintf(format, args...)
	if p.path == "" {
		return text
	}
	return p.path + ": " + text
}

// hidesKeys reports whether the mapping, or a key of it, could not be read: then
// nobody can say what it does not hold.
func (p place) hidesKeys() bool {
	bad := func(n *yaml.Node) bool { return p.doc.unreadable[n] }
	return p.written && (bad(p.value) || slices.ContainsFunc(p.value.Content, bad))
}

// refuseNull reports a value that was left out.
func (p place) refuseNull() bool {
	if !p.doc.isNull(p.value) {
		return false
	}
	p.unreadablef("has no value: write one, or leave the line out for the default")
	return true
}

// broken reports whether the place, or anything in it, has a fault: then warnings
// about its meaning would be guesses.
func (p place) broken() bool { return p.doc.broken(p.value) }

// faulty reports whether something is written at the place that has a fault: then
// the default that stands in for it says nothing.
func (p place) faulty() bool { return p.written && p.broken() }

func (d *document) broken(node *yaml.Node) bool {
	if d.faulty[node] || d.unreadable[node] {
		return true
	}
	for _, child := range node.Content {
		if d.broken(child) {
			return true
		}
	}
	return false
}
