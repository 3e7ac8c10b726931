package rules

import (
	"strings"
	"testing"
)

func TestConsiderSaysWhatKeepsARuleFromFitting(t *testing.T) {
	cfg := load(t, `version: 1
upstream: { url: http://127.0.0.1:9000 }
pools: { lessons: { capacity: 6 } }
rules:
  - { name: other, match: { methods: [POST], path: "/other" }, action: guard }
  - { name: method, match: { methods: [PUT], path: "/l/{lesson}" }, pool: lessons, slot: path:lesson }
  - { name: host, match: { methods: [POST], path: "/l/{lesson}", hosts: [b.example] }, pool: lessons, slot: path:lesson }
  - { name: header, match: { methods: [POST], path: "/l/{lesson}", headers: { X-Kind: "a*" } }, pool: lessons, slot: path:lesson }
  - { name: params, match: { methods: [POST], path: "/l/{lesson}", params: { lesson: "[0-9]+" } }, pool: lessons, slot: path:lesson }
  - { name: except, match: { methods: [POST], path: "/l/{lesson}", except: ["/l/search"] }, pool: lessons, slot: path:lesson }
  - { name: exact, match: { methods: [POST], path: "/L/search", exact: true }, action: guard }
  - { name: fits, match: { methods: [POST], path: "/l/{lesson}" }, pool: lessons, slot: path:lesson }
`, LoadOptions{})
	set, err := NewSet(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := &Request{Method: "POST", Path: "/L/search/", Host: "a.example:80"}
	want := map[string]string{
		"other":  "does not fit /other",
		"method": "the method is POST, and match.methods are PUT",
		"host":   `the host is "a.example:80", and match.hosts are b.example`,
		"header": "match.headers ask for X-Kind",
		"params": "match.params, lesson: [0-9]+",
		"except": "",
		"exact":  "which matches exactly",
		"fits":   "POST /L/search",
	}
	m, _ := set.Match(r)
	first := true
	for _, c := range set.Consider(r) {
		if !strings.Contains(c.Why, want[c.Rule.Name]) {
			t.Errorf("%s: %q, want %q", c.Rule.Name, c.Why, want[c.Rule.Name])
		}
		if c.Fits && first {
			first = false
			if m.Rule != c.Rule {
				t.Errorf("Match says %v, Consider %s", m.Rule, c.Rule.Name)
			}
		}
	}
	r.Path = "/l/search"
	for _, c := range set.Consider(r) {
		if c.Rule.Name == "except" && (c.Fits || !strings.Contains(c.Why, "match.except: /l/search")) {
			t.Errorf("except: %+v", c)
		}
	}
	r.Path = "/l/%zz"
	for _, c := range set.Consider(r) {
		if c.Fits || !strings.Contains(c.Why, "cannot be read") {
			t.Errorf("%s: %+v", c.Rule.Name, c)
		}
	}
}
