package gate

import (
	"strings"
	"testing"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

// manner is how a request goes on after Route.
func (f *fixture) manner(method, path, body string, fields ...string) string {
	f.t.Helper()
	req := newRequest(method, path, body, call{fields: fields})
	m, off, reply := f.Route(req)
	switch {
	case reply != nil:
		return string(reply.Decision)
	case req.Shadow != nil:
		defer req.Shadow.End()
		return "shadow"
	case off:
		return "off"
	case m.Rule == nil:
		return "none"
	}
	f.Serve(req, m)
	return m.Rule.Name
}

const twoRules = `
upstream: { url: "http://127.0.0.1:9" }
rules:
  - { name: first, match: { methods: [POST], path: "/a/{x}/b" }, action: guard, FIRST }
  - { name: second, match: { methods: [PUT], path: "/a/{x}/b" }, action: guard, SECOND }
  - { name: third, match: { methods: [POST], path: "/c" }, action: guard }
`

func newModesFixture(t *testing.T, first, second string) *fixture {
	t.Helper()
	return newFixtureYAML(t, strings.NewReplacer("FIRST", "mode: "+first, "SECOND", "mode: "+second).Replace(twoRules))
}

// No request is refused, nor its body waited for, for the sake of a rule that does not
// enforce.
func TestOnlyRulesInEnforceRefuse(t *testing.T) {
	const form = "Content-Type: application/x-www-form-urlencoded"
	for _, row := range []struct {
		first, second, method, path, body string
		fields                            []string
		want                              string
	}{
		{"enforce", "enforce", "POST", "/a/1/b", "", nil, "first"},
		{"shadow", "enforce", "POST", "/a/1/b", "", nil, "shadow"},
		{"off", "enforce", "POST", "/a/1/b", "", nil, "off"},
		{"off", "off", "GET", "/", "", nil, "none"},
		// A path that cannot be read.
		{"enforce", "off", "POST", "/a/1%2F2/b", "", nil, "ambiguous"},
		{"shadow", "off", "POST", "/a/1%2F2/b", "", nil, "shadow"},
		{"off", "off", "POST", "/a/1%2F2/b", "", nil, "off"},
		{"off", "enforce", "POST", "/a/1%2F2/b", "", nil, "ambiguous"}, // its body may say PUT
		// Two rules by two methods: the one in enforce decides.
		{"enforce", "enforce", "POST", "/a/1/b", "", []string{"X-HTTP-Method-Override: PUT"}, "ambiguous"},
		{"shadow", "enforce", "POST", "/a/1/b", "", []string{"X-HTTP-Method-Override: PUT"}, "second"},
		{"enforce", "off", "POST", "/a/1/b", "", []string{"X-HTTP-Method-Override: PUT"}, "first"},
		{"shadow", "off", "POST", "/a/1/b", "", []string{"X-HTTP-Method-Override: PUT"}, "shadow"},
		{"off", "off", "POST", "/a/1/b", "", []string{"X-HTTP-Method-Override: PUT"}, "off"},
		// A body that may name another method, and cannot be read.
		{"enforce", "enforce", "POST", "/a/1/b", "_method=PUT", []string{form}, "ambiguous"},
		{"shadow", "shadow", "POST", "/a/1/b", "_method=PUT", []string{form}, "shadow"},
		{"off", "off", "POST", "/a/1/b", "_method=PUT", []string{form}, "off"},
		{"off", "shadow", "POST", "/a/1/b", "_method=PUT", []string{form}, "shadow"},
		{"shadow", "enforce", "POST", "/a/1/b", "_method=PUT", []string{form}, "second"},
	} {
		f := newModesFixture(t, row.first, row.second)
		if got := f.manner(row.method, row.path, row.body, row.fields...); got != row.want {
			t.Errorf("%s %s, %s %s %s %v: %s, want %s", row.first, row.second, row.method, row.path, row.body, row.fields, got, row.want)
		}
	}
}

// Which rule of two in shadow is meant, the body tells on its way.
func TestTheBodyTellsWhichRuleInShadow(t *testing.T) {
	const form = "Content-Type: application/x-www-form-urlencoded"
	for _, row := range []struct{ first, second, body, rule string }{
		{"shadow", "off", "_method=PATCH", "first"},
		{"off", "shadow", "a=b", ""},
		{"shadow", "shadow", "a=b", "first"},
	} {
		f := newModesFixture(t, row.first, row.second)
		req := newRequest("POST", "/a/1/b", row.body, call{fields: []string{form}})
		if _, off, reply := f.Route(req); !off || reply != nil || req.Shadow == nil {
			t.Fatalf("%+v: not in shadow", row)
		}
		req.Shadow.Requested([]byte(row.body), nil)
		req.Shadow.Answered(&rules.Response{Status: 200}, BodyWhole)
		req.Shadow.End()
		rule := ""
		if r := req.Shadow.Reply(); r != nil {
			rule = r.Rule
		}
		if rule != row.rule {
			t.Errorf("%+v: %q", row, rule)
		}
	}
}

// reload returns a channel that is closed when the rules before are of no use any more.
func (f *fixture) reload(first, second string) (retired <-chan struct{}) {
	f.t.Helper()
	config, faults := rules.Load("test.yaml", []byte(strings.NewReplacer("FIRST", first, "SECOND", second).Replace(twoRules)), rules.LoadOptions{})
	if len(faults.Errors()) > 0 {
		f.t.Fatal(faults)
	}
	set, err := rules.NewSet(config)
	if err != nil {
		f.t.Fatal(err)
	}
	done := make(chan struct{})
	f.Reload(Rules{Config: config, Set: set, Backend: f.backend}, func() { close(done) })
	return done
}

func (f *fixture) modeOf(rule string) string {
	for _, r := range f.Rules() {
		if r.Name == rule {
			return r.Mode
		}
	}
	return ""
}

func TestModesSurviveReloadsUntilTheFileSaysOtherwise(t *testing.T) {
	f := newModesFixture(t, "enforce", "shadow")
	if err := f.SetMode("first", "shadow"); err != nil {
		t.Fatal(err)
	}
	if err := f.SetMode("second", "off"); err != nil {
		t.Fatal(err)
	}
	modes := func(first, second, third string) {
		t.Helper()
		if a, b, c := f.modeOf("first"), f.modeOf("second"), f.modeOf("third"); a != first || b != second || c != third {
			t.Fatalf("%s %s %s, want %s %s %s", a, b, c, first, second, third)
		}
	}
	f.reload("mode: enforce, timeout: 3s", "mode: shadow")
	modes("shadow", "off", "enforce")
	f.reload("mode: enforce", "mode: enforce") // the file says something new of the second
	modes("shadow", "enforce", "enforce")
	if err := f.SetModeAll("file"); err != nil {
		t.Fatal(err)
	}
	modes("enforce", "enforce", "enforce")

	if err := f.SetModeAll("off"); err != nil {
		t.Fatal(err)
	}
	policy := f.Policy()
	f.reload("mode: enforce, timeout: 3s", "mode: enforce")
	modes("off", "off", "off")
	if f.Policy() == policy {
		t.Error("the same policy with another rule")
	}
	for _, r := range []struct{ method, path string }{{"POST", "/a/1/b"}, {"POST", "/a/1%2F2/b"}, {"GET", "/"}} {
		if got := f.manner(r.method, r.path, ""); got != "off" {
			t.Errorf("%s %s while every rule is off: %s", r.method, r.path, got)
		}
	}
	f.reload("mode: shadow", "mode: enforce")
	modes("shadow", "off", "off")
}

// A rule that is added while all are switched is not stricter than they are.
func TestARuleThatIsNewKeepsToTheSwitchOfAll(t *testing.T) {
	f := newFixture(t, "capacity: 1", "")
	if err := f.SetModeAll("shadow"); err != nil {
		t.Fatal(err)
	}
	f.reload("mode: enforce", "mode: off")
	if a, b := f.modeOf("first"), f.modeOf("second"); a != "shadow" || b != "off" {
		t.Fatalf("%s %s", a, b)
	}
}

func TestCountsOfShadowSurviveReloads(t *testing.T) {
	f := newModesFixture(t, "shadow", "enforce")
	b := f.beside("POST", "/a/1/b", "", call{}).arrive()
	retired := f.reload("mode: shadow, timeout: 3s", "mode: enforce")
	f.would(b.answered(answers(200, ""), nil), decision.DecisionAdmitted, rules.Booked)
	<-retired
	if n := f.Status().Shadow["first"].Would[decision.DecisionAdmitted]; n != 1 {
		t.Fatalf("%d", n)
	}
	if _, there := f.Status().Shadow["third"]; there {
		t.Fatal("a rule that was never in shadow reports")
	}
}
