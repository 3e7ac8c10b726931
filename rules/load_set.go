package rules

import (
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// override puts the values of LoadOptions.Set into the document, as if they had
// been written there. Whether a name exists is for the decoder to say.
func (d *document) override(sets []string) {
	for _, set := range sets {
		path, text, ok := strings.Cut(set, "=")
		if !ok || path == "" {
			d.setFault(set, "write path=value, such as upstream.timeout=2s")
			continue
		}
		value, err := overrideValue(text)
		if err != nil {
			d.setFault(path, "the value is not YAML: "+err.Error())
			continue
		}
		d.put(d.root, path, path, value)
	}
}

// setFault reports an override that could not be placed. It shows the path only:
// the value may be a password.
func (d *document) setFault(path, message string) {
	d.faults = append(d.faults, Fault{File: "--set " + path, Message: message})
}

// overrideValue is a list or mapping when it looks like one, else one scalar,
// whatever it holds.
func overrideValue(text string) (*yaml.Node, error) {
	if !strings.HasPrefix(text, "[") && !strings.HasPrefix(text, "{") {
		node := &yaml.Node{Kind: yaml.ScalarNode, Value: text}
		if text == "" {
			node.Style = yaml.DoubleQuotedStyle // nothing after the = is an empty text, not null
		}
		return node, nil
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, err
	}
	return doc.Content[0], nil
}

// put walks down from node along rest, makes the mappings that are missing, and
// sets the value at the end.
func (d *document) put(node *yaml.Node, path, rest string, value *yaml.Node) {
	if node.Kind == yaml.SequenceNode {
		d.putItem(node, path, rest, value)
		return
	}
	if node.Kind != yaml.MappingNode {
		d.setFault(path, fmt.Sprintf("there is no %s: what is above it is %s", rest, describe(node)))
		return
	}
	var keys []string
	for i := 0; i < len(node.Content); i += 2 {
		keys = append(keys, node.Content[i].Value)
	}
	key, below := nextName(rest, keys)
	at := -1
	for i, k := range keys {
		if k == key {
			at = 2*i + 1
			break
		}
	}
	if at < 0 {
		d.setOrigin(value, path)
		name := &yaml.Node{Kind: yaml.ScalarNode, Value: key}
		d.setOrigin(name, path)
		node.Content = append(node.Content, name, nil)
		at = len(node.Content) - 1
	}
	d.putBelow(&node.Content[at], path, below, value)
}

func (d *document) putItem(list *yaml.Node, path, rest string, value *yaml.Node) {
	names := make([]string, len(list.Content))
	for i, item := range list.Content {
		names[i] = strconv.Itoa(i)
		for k := 0; item.Kind == yaml.MappingNode && k+1 < len(item.Content); k += 2 {
			if item.Content[k].Value == "name" && item.Content[k+1].Value != "" {
				names[i] = item.Content[k+1].Value
			}
		}
	}
	name, below := nextName(rest, names)
	for i := range list.Content {
		if names[i] == name || strconv.Itoa(i) == name {
			d.putBelow(&list.Content[i], path, below, value)
			return
		}
	}
	d.setFault(path, fmt.Sprintf("the list has no entry %s%s", name, didYouMean(name, names)))
}

// putBelow sets the value here when the path ends, else goes on below.
func (d *document) putBelow(slot **yaml.Node, path, below string, value *yaml.Node) {
	if below == "" {
		d.setOrigin(value, path)
		*slot = value
		return
	}
	if *slot == nil || (*slot).Tag == "!!null" {
		*slot = &yaml.Node{Kind: yaml.MappingNode}
		d.setOrigin(*slot, path)
	}
	d.put(*slot, path, below, value)
}

// nextName cuts the first name off a path. Names may hold dots, so one that
// exists goes before the first dot.
func nextName(path string, names []string) (name, rest string) {
	for _, n := range names {
		if len(n) > len(name) && (path == n || strings.HasPrefix(path, n+".")) {
			name = n
		}
	}
	if name == "" {
		name, _, _ = strings.Cut(path, ".")
	}
	return name, strings.TrimPrefix(path[len(name):], ".")
}

func (d *document) setOrigin(node *yaml.Node, path string) {
	d.origin[node] = path
	for _, child := range node.Content {
		d.setOrigin(child, path)
	}
}
