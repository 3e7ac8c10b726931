package rules

import "strings"

// Places tells where the settings of a configuration file stand, for warnings about what
// shows only after it was loaded. It is safe for concurrent use.
type Places struct{ doc *document }

// ReadPlaces reads a file that Load has taken, with the same name, text and overrides.
func ReadPlaces(name string, src []byte, set []string) Places {
	doc := parseDocument(name, src)
	if doc.root != nil {
		doc.override(set)
	}
	return Places{doc}
}

// Warning is a warning at a setting, or at what is nearest to one that was not written.
// path leads there from the top, such as "pools", "lessons".
func (p Places) Warning(message string, path ...string) Fault {
	if p.doc == nil || p.doc.root == nil {
		return Fault{File: "configuration", Message: strings.Join(path, ".") + ": " + message, Warning: true}
	}
	at := p.doc.top()
	for _, name := range path {
		at = at.field(name)
	}
	return p.doc.at(at.node(), at.message("%s", []any{message}), true)
}
