package rules

import (
	"net/netip"
	"strings"
	"testing"
)

// extractors reads the short form: "json:/id", "integer json:/id", "fold path:x".
func extractors(texts ...string) Extractors {
	var list Extractors
	for _, text := range texts {
		var e Extractor
		text, e.Integer = strings.CutPrefix(text, "integer ")
		text, e.Fold = strings.CutPrefix(text, "fold ")
		name, rest, _ := strings.Cut(text, ":")
		for source, word := range sourceNames {
			if word == name {
				e.Source = source
			}
		}
		e.Name = rest
		list = append(list, e)
	}
	return list
}

// testRule is a book rule with the sources that most tests ask for.
func testRule(name, method, path string) *RuleConfig {
	return &RuleConfig{
		Name:   name,
		Match:  MatchConfig{Methods: []string{method}, Path: path},
		Action: "book",
		Pool:   "lessons",
		Slot:   extractors("const:S1"),
	}
}

func testSet(t testing.TB, list ...*RuleConfig) *Set {
	t.Helper()
	return setFor(t, "any", list...)
}

// setFor is testSet before a backend of the given dialect.
func setFor(t testing.TB, name string, list ...*RuleConfig) *Set {
	t.Helper()
	s, err := NewSet(&Config{
		Server:   ServerConfig{MaxBody: 1 << 20},
		Upstream: UpstreamConfig{Dialect: name},
		Pools:    map[string]*PoolConfig{"lessons": {Capacity: Capacity{Kind: CapacityNumber, Units: 6}}, "learned": {Capacity: Capacity{Kind: CapacityLearned}}},
		Rules:    list,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// testRequest reads "POST /path?query" and header lines "Name: value".
func testRequest(line, body string, header ...string) *Request {
	method, target, _ := strings.Cut(line, " ")
	r := &Request{Method: method, Host: "shop.test", Body: []byte(body), Client: netip.MustParseAddr("192.0.2.7")}
	r.Path, r.Query, _ = strings.Cut(target, "?")
	for _, h := range header {
		name, value, _ := strings.Cut(h, ":")
		r.Header = append(r.Header, Field{Name: name, Value: strings.TrimSpace(value)})
	}
	return r
}

func TestNewSetRefuses(t *testing.T) {
	for name, change := range map[string]func(*RuleConfig){
		"unknown pool":  func(r *RuleConfig) { r.Pool = "nowhere" },
		"bad path":      func(r *RuleConfig) { r.Match.Path = "api" },
		"bad pattern":   func(r *RuleConfig) { r.Match.Params = map[string]string{"lesson": "("} },
		"bad exception": func(r *RuleConfig) { r.Match.Except = []string{"x"} },
		"bad pointer":   func(r *RuleConfig) { r.Slot = extractors("json:slot") },
		"bad number": func(r *RuleConfig) {
			r.Outcomes = []OutcomeConfig{{When: WhenConfig{JSON: map[string]Scalar{"/a": {ScalarNumber, "1x"}}}, Is: Booked}}
		},
		"bad answer pointer": func(r *RuleConfig) {
			r.Outcomes = []OutcomeConfig{{When: WhenConfig{JSON: map[string]Scalar{"a": {}}}, Is: Booked}}
		},
	} {
		rc := testRule("r", "POST", "/api/lessons/{lesson}")
		change(rc)
		_, err := NewSet(&Config{Pools: map[string]*PoolConfig{"lessons": {}}, Rules: []*RuleConfig{rc}})
		if err == nil || !strings.Contains(err.Error(), `rule "r"`) {
			t.Errorf("%s: NewSet gives %v; want an error that names the rule", name, err)
		}
	}
}

func TestReadsBody(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*RuleConfig)
		want   bool
	}{
		"path and header": {func(r *RuleConfig) {
			r.Slot, r.Subject = extractors("path:x"), extractors("header:X-User", "cookie:sid", "ip:")
		}, false},
		"json":             {func(r *RuleConfig) { r.Subject = extractors("json:/id") }, true},
		"form":             {func(r *RuleConfig) { r.Units = extractors("form:seats") }, true},
		"query":            {func(r *RuleConfig) { r.Slot = extractors("query:slot") }, true},
		"fingerprint auto": {func(r *RuleConfig) { r.Idempotency = &IdempotencyConfig{} }, true},
		"fingerprint body": {func(r *RuleConfig) {
			r.Idempotency = &IdempotencyConfig{Fingerprint: Fingerprint{Mode: FingerprintBody}}
		}, true},
		"fingerprint none": {func(r *RuleConfig) {
			r.Idempotency = &IdempotencyConfig{Fingerprint: Fingerprint{Mode: FingerprintNone}}
		}, false},
		"key in body": {func(r *RuleConfig) {
			r.Idempotency = &IdempotencyConfig{Key: extractors("header:K", "json:/k"), Fingerprint: Fingerprint{Mode: FingerprintNone}}
		}, true},
		"fingerprint of header": {func(r *RuleConfig) {
			r.Idempotency = &IdempotencyConfig{Fingerprint: Fingerprint{Mode: FingerprintList, Extractors: extractors("header:A")}}
		}, false},
		"fingerprint of field": {func(r *RuleConfig) {
			r.Idempotency = &IdempotencyConfig{Fingerprint: Fingerprint{Mode: FingerprintList, Extractors: extractors("json:/a")}}
		}, true},
	} {
		rc := testRule("r", "POST", "/a/{x}")
		c.change(rc)
		if got := testSet(t, rc).Rules[0].ReadsBody(); got != c.want {
			t.Errorf("%s: ReadsBody() = %v", name, got)
		}
	}
}

func TestRetryUnknown(t *testing.T) {
	duplicate := []OutcomeConfig{{Is: Duplicate}}
	for _, c := range []struct {
		idem     *IdempotencyConfig
		outcomes []OutcomeConfig
		want     bool
	}{
		{nil, nil, false},
		{nil, duplicate, true},
		{&IdempotencyConfig{Unknown: "auto"}, nil, false},
		{&IdempotencyConfig{Unknown: "auto"}, duplicate, true},
		{&IdempotencyConfig{Unknown: "retry"}, nil, true},
		{&IdempotencyConfig{Unknown: "reject"}, duplicate, false},
	} {
		rc := testRule("r", "POST", "/a")
		rc.Idempotency, rc.Outcomes = c.idem, c.outcomes
		if got := testSet(t, rc).Rules[0].RetryUnknown(); got != c.want {
			t.Errorf("RetryUnknown() with %+v and %v = %v", c.idem, c.outcomes, got)
		}
	}
}

func TestKeeps(t *testing.T) {
	all := []Outcome{Booked, Refused, SoldOut, Duplicate, Busy, Unknown, NeverSent, Done}
	for _, c := range []struct {
		idem *IdempotencyConfig
		want []Outcome
	}{
		{nil, nil},
		{&IdempotencyConfig{}, []Outcome{Booked, Duplicate, Done}},
		{&IdempotencyConfig{Store: []Outcome{}}, nil},
		{&IdempotencyConfig{Store: []Outcome{SoldOut, Refused}}, []Outcome{SoldOut, Refused}},
		{&IdempotencyConfig{Store: []Outcome{Booked}}, []Outcome{Booked, Done}},
	} {
		rc := testRule("r", "POST", "/a")
		rc.Idempotency = c.idem
		r := testSet(t, rc).Rules[0]
		want := map[Outcome]bool{}
		for _, o := range c.want {
			want[o] = true
		}
		for _, o := range all {
			if r.Keeps(o) != want[o] {
				t.Errorf("with %+v: Keeps(%v) = %v", c.idem, o, r.Keeps(o))
			}
		}
	}
}
