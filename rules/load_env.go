package rules

import (
	"fmt"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

var variable = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\}`)

// expand replaces ${NAME} and ${NAME:-default} in every value, after parsing: what
// a variable holds can be another number or text, never other YAML. The default
// counts when the variable is not set or empty, as in a shell.
func (d *document) expand(node *yaml.Node, env func(string) (string, bool)) {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if !d.unreadable[node.Content[i]] {
				d.expand(node.Content[i+1], env)
			}
		}
	case yaml.SequenceNode:
		for _, item := range node.Content {
			d.expand(item, env)
		}
	case yaml.ScalarNode:
		if !strings.Contains(node.Value, "${") || d.unreadable[node] {
			return
		}
		text, err := expandText(node.Value, env)
		if err != nil {
			d.hide(node, err.Error())
			return
		}
		d.expanded[node] = true
		node.Value = text
	}
}

func expandText(text string, env func(string) (string, bool)) (string, error) {
	var out strings.Builder
	for {
		i := strings.Index(text, "${")
		if i < 0 {
			out.WriteString(text)
			return out.String(), nil
		}
		if i > 0 && text[i-1] == '$' {
			out.WriteString(text[:i-1] + "${")
			text = text[i+2:]
			continue
		}
		out.WriteString(text[:i])
		text = text[i:]
		found := variable.FindStringSubmatchIndex(text)
		if found == nil {
			return "", fmt.Errorf("a ${ that is no variable: write ${NAME} or ${NAME:-default}, or $${ for the characters themselves")
		}
		name, value, set := text[found[2]:found[3]], "", false
		if env != nil {
			value, set = env(name)
		}
		hasDefault := found[4] >= 0
		switch {
		case value == "" && hasDefault:
			value = text[found[4]:found[5]]
		case !set:
			return "", fmt.Errorf("the environment variable %s is not set: set it, or write ${%s:-default}", name, name)
		}
		out.WriteString(value)
		text = text[found[1]:]
	}
}
