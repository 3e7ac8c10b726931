package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// validator checks what one field alone cannot tell. Each method is given the
// place of what it checks, and reports there.
type validator struct {
	doc *document
	cfg *Config
	dsn func(driver, dsn string) error // LoadOptions.DSN
}

func validate(doc *document, cfg *Config, dsn func(driver, dsn string) error) {
	v := &validator{doc, cfg, dsn}
	top := doc.top()
	v.server(top.field("server"))
	v.admin(top.field("admin"))
	v.upstream(top.field("upstream"))
	v.store(top.field("store"))
	v.log(top.field("log"))
	v.tracing(top.field("tracing"))
	v.pools(top.field("pools"))
	v.rules(top.field("rules"))
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// checkName is for the names of pools, rules and key groups: they stand in header
// fields, metrics, admin paths and store keys.
func checkName(p place, name string) {
	if !namePattern.MatchString(name) {
		p.faultf("%q cannot be a name: use up to 64 letters, digits, -, _ and .", name)
	}
}

// checkFields checks names and values of header fields (RFC 9110, 5.1 and 5.5).
func checkFields(p place, fields map[string]string) {
	seen := map[string]string{}
	for _, name := range sortedKeys(fields) {
		at := p.field(name)
		lower := strings.ToLower(name)
		switch other, repeated := seen[lower]; {
		case !tokenPattern.MatchString(name):
			at.faultf("%q is not the name of a header field", name)
		case repeated:
			at.faultf("is the same header field as %s: keep one of them", other)
		case strings.ContainsFunc(fields[name], func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			at.faultf("the value holds a line end or another control character: a header field is one line")
		case strings.Trim(fields[name], " \t") != fields[name]:
			at.faultf("the value begins or ends with a blank, which is no part of a header field: remove it")
		}
		seen[lower] = name
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// either is "a", "a or b", "a, b or c".
func either(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return fmt.Sprintf("%s or %s", strings.Join(words[:last], ", "), words[last])
}
