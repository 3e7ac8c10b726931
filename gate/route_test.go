package gate

import (
	"testing"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

// A form's _method can put a POST under a rule for another method, so Route reads the
// body where that could be, and nowhere else.
func TestRouteReadsFormsThatMayOverride(t *testing.T) {
	f := newFixtureYAML(t, `
upstream: { url: "http://127.0.0.1:9" }
rules:
  - { name: move, match: { methods: [PUT], path: "/bookings/{id}" }, action: guard, subject: path:id }
`)
	const form = "application/x-www-form-urlencoded"
	for _, test := range []struct {
		name, path, kind, body string
		err                    error
		reads                  bool
		rule                   string
		refused                decision.Decision
	}{
		{name: "names the rule's method", path: "/bookings/7", kind: form, body: "a=1&_method=put", reads: true, rule: "move"},
		{name: "names none", path: "/bookings/7", kind: form, body: "a=1", reads: true},
		{name: "is empty", path: "/bookings/7", kind: form, reads: true},
		{name: "is JSON", path: "/bookings/7", kind: "application/json", body: `{"_method":"put"}`, reads: true, rule: "move"},
		{name: "is no form", path: "/bookings/7", kind: "text/plain", body: "_method=put"},
		{name: "is for another path", path: "/other", kind: form, body: "_method=put"},
		{name: "names no method", path: "/bookings/7", kind: form, body: "_method=p+t", reads: true, refused: decision.DecisionAmbiguous},
		{name: "is too long", path: "/bookings/7", kind: form, err: &rules.Refusal{Kind: rules.RefuseTooLarge}, reads: true, refused: decision.DecisionTooLarge},
		{name: "finds no room", path: "/bookings/7", kind: form, err: ErrOverloaded, reads: true, refused: decision.DecisionBusy},
		{name: "breaks off", path: "/bookings/7", kind: form, err: ErrClientGone, reads: true, refused: decision.DecisionUnidentified},
	} {
		t.Run(test.name, func(t *testing.T) {
			read := false
			r := &Request{
				Request: rules.Request{Method: "POST", Path: test.path, Header: []rules.Field{{Name: "Content-Type", Value: test.kind}}},
				ReadBody: func() ([]byte, error) {
					read = true
					if test.body == "" {
						return nil, test.err // as the edge does for an empty body
					}
					return []byte(test.body), test.err
				},
			}
			m, off, reply := f.Route(r)
			rule, refused := "", decision.Decision("")
			if m.Rule != nil && reply == nil {
				rule = m.Rule.Name
			}
			if reply != nil {
				refused = reply.Decision
			}
			if read != test.reads || rule != test.rule || refused != test.refused || off {
				t.Fatalf("read %v, rule %q, refused %q, off %v", read, rule, refused, off)
			}
		})
	}
}
