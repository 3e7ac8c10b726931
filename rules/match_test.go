package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// matchCases: what each rule set makes of a request, as "rule METHOD path k=v…",
// "-" for no rule, or the kind of a refusal.
type matchCase struct{ request, want string }

func checkMatches(t *testing.T, s *Set, cases []matchCase) {
	t.Helper()
	for _, c := range cases {
		line, header, _ := strings.Cut(c.request, "\n")
		var lines []string
		if header != "" {
			lines = strings.Split(header, "\n")
		}
		r := testRequest(line, "", lines...)
		if i := slices.IndexFunc(r.Header, func(f Field) bool { return f.Name == "Host" }); i >= 0 {
			r.Host = r.Header[i].Value
		}
		if got := matchText(s.Match(r)); got != c.want {
			t.Errorf("%q: %s; want %s", c.request, got, c.want)
		}
	}
}

func matchText(m Match, refusal *Refusal) string {
	if refusal != nil {
		return string(refusal.Kind)
	}
	if m.Rule == nil {
		return "-"
	}
	text := m.Rule.Name + " " + m.Method + " " + m.Path
	for _, p := range m.Params.All() {
		text += " " + p.Name + "=" + p.Value
	}
	return text
}

// referenceSet is R1 to R6 of the reference rules, on a cancel rule more.
func referenceSet(t testing.TB, dialect string) *Set {
	user := extractors("header:X-User-Id")
	rule := func(name, path, slot string, methods ...string) *RuleConfig {
		rc := testRule(name, methods[0], path)
		rc.Match.Methods, rc.Slot, rc.Subject = methods, extractors(slot), user
		return rc
	}
	r2 := rule("R2", "/api/bookings", "json:/slot_id", "POST")
	r2.Idempotency = &IdempotencyConfig{Fingerprint: Fingerprint{Mode: FingerprintBody}}
	r6 := &RuleConfig{Name: "R6", Match: MatchConfig{Methods: []string{"DELETE"}, Path: "/api/bookings/{id}"}, Action: "guard", Subject: user}
	return setFor(t, dialect,
		rule("R1", "/api/slots/{slot_id}/reservations", "path:slot_id", "POST"),
		r2,
		rule("R3", "/book.php", "form:slot_id", "POST"),
		rule("R4", "/reserve", "query:slot_id", "GET", "POST"),
		rule("R5", "/api/bookings/{slot_id}", "path:slot_id", "PUT"),
		r6,
	)
}

func TestMatchPaths(t *testing.T) {
	checkMatches(t, referenceSet(t, "any"), []matchCase{
		{"POST /api/slots/S1/reservations", "R1 POST /api/slots/S1/reservations slot_id=S1"},
		{"GET /api/slots/S1/reservations", "-"},
		{"POST /api/slots/S1", "-"},
		{"POST /other", "-"},
		{"OPTIONS *", "-"},
		{"POST *", "ambiguous"},
		// What common backends route to the same handler.
		{"POST //api/slots/S1/reservations", "R1 POST /api/slots/S1/reservations slot_id=S1"},
		{"POST /api/slots//reservations", "-"},
		{"POST /api/slots/%531/reservations", "R1 POST /api/slots/S1/reservations slot_id=S1"},
		{"POST /%61pi/slots/S1/reservations", "R1 POST /api/slots/S1/reservations slot_id=S1"},
		{"POST /api/slots/caf%C3%A9/reservations", "R1 POST /api/slots/caf%C3%A9/reservations slot_id=café"},
		{"POST /api/slots/caf%c3%a9/reservations", "R1 POST /api/slots/caf%C3%A9/reservations slot_id=café"},
		{"POST /api/slots/café/reservations", "R1 POST /api/slots/caf%C3%A9/reservations slot_id=café"},
		{"POST /API/Slots/s1/RESERVATIONS", "R1 POST /API/Slots/s1/RESERVATIONS slot_id=s1"},
		{"POST /api/slots/S1/reservations/", "R1 POST /api/slots/S1/reservations/ slot_id=S1"},
		{"POST /api/x/../slots/S1/./reservations", "R1 POST /api/slots/S1/reservations slot_id=S1"},
		{"POST /api/slots/S2/%2e%2e/S1/reservations", "R1 POST /api/slots/S1/reservations slot_id=S1"},
		{"POST /api/slots/S1/reservations;jsessionid=0A1B", "R1 POST /api/slots/S1/reservations slot_id=S1"},
		{"POST /api;a=b/slots/S1/reservations", "R1 POST /api/slots/S1/reservations slot_id=S1"},
		{"POST /api/slots/S1/reservations%3Bx=1", "R1 POST /api/slots/S1/reservations slot_id=S1"},
		{"POST /x/..;/api/slots/S1/reservations", "R1 POST /api/slots/S1/reservations slot_id=S1"},
		{"POST /api/slots/S1%3Fx=1/reservations", "R1 POST /api/slots/S1%3Fx=1/reservations slot_id=S1?x=1"},
		{"POST /api/slots/S1%23/reservations", "R1 POST /api/slots/S1%23/reservations slot_id=S1#"},
		{"POST /api/slots/S1%252F/reservations", "R1 POST /api/slots/S1%252F/reservations slot_id=S1%2F"},
		// Collapsing first or resolving first gives different paths.
		{"POST /api//../slots/S1/reservations", "R1 POST /api/slots/S1/reservations slot_id=S1"},
		{"POST /api/slots/S1//../reservations", "R1 POST /api/slots/S1/reservations slot_id=S1"},
		{"POST /api/slots/S1/x//../S2/reservations", "-"},
		{"POST /api/slots/S0/S1//../reservations", "R1 POST /api/slots/S0/reservations slot_id=S0"},
		// Two slots, by who reads it.
		{"POST /api/slots/S1;v=2/reservations", "ambiguous"},
		{"POST /api/slots/S1%3bv=2/reservations", "ambiguous"},
		{"POST /api/slots/A/B//../../S1/reservations", "R1 POST /api/slots/S1/reservations slot_id=S1"},
		{"POST /api/slots/A//../S1/reservations", "R1 POST /api/slots/S1/reservations slot_id=S1"},
		// No normal form, and a rule could match.
		{"POST /api/slots/S1%2Fx/reservations", "ambiguous"},
		{"POST /api/slots/S1%5Cx/reservations", "ambiguous"},
		{"POST /api%5Cslots%5CS1/reservations", "ambiguous"},
		{"POST /api%2Fslots%2fS1/reservations", "ambiguous"},
		{`POST /api\slots\S1\reservations`, "ambiguous"},
		{"POST /api/slots/S1%c0%afx/reservations", "ambiguous"},
		{"POST /api/slots/S1%zz/reservations", "ambiguous"},
		{"POST /api/slots/S1/reservations%00.html", "ambiguous"},
		{"POST /api/slots/S1/reservations%", "ambiguous"},
		{"POST /api/slots/S1/reservations#x", "ambiguous"},
		{"POST /api/slots/S1%0d%0aX-User-Id:%20bob/reservations", "ambiguous"},
		{"POST /api;x/slots/S1%2Fx/reservations", "ambiguous"},
		{"POST /x/..%2Fapi/slots/S1/reservations", "ambiguous"},
		{"POST api/slots/S1/reservations", "ambiguous"},
		{"POST ", "ambiguous"},
		// No normal form, and no rule could match: other traffic goes by.
		{"GET /projects/group%2Fname/files", "-"},
		{"GET /api/slots/S1%2Fx/reservations", "-"},
		{"POST /files/%zz", "-"},
		{"POST /files/100%/x", "-"},
		{"POST /apx%2F/slots/S1/reservations", "-"},
		{"POST /api/slots/S1/reserv%u0061tions", "ambiguous"},
	})
}

// No spelling of a path dodges its rule or makes a second slot of one.
func TestMatchWhateverTheSpelling(t *testing.T) {
	s := referenceSet(t, "any")
	slots := rapid.StringOfN(rapid.SampledFrom([]rune("aZ09-_~!$&'()*+,=:@ %?#\"<>é課😀")), 1, 8, -1)
	between := rapid.SampledFrom([]string{"/", "//", "/./", "/x/../", "/%2e/", "/x/%2E./", "/;v=1/", "/.;v/", "/x;v/..;w/"})
	rapid.Check(t, func(t *rapid.T) {
		slot := slots.Draw(t, "slot")
		path := ""
		for _, segment := range []string{"api", "slots", slot, "reservations"} {
			path += between.Draw(t, "between")
			for _, c := range []byte(segment) {
				if segment != slot && rapid.Bool().Draw(t, "upper") {
					c -= 'a' - 'A'
				}
				if escape := fmt.Sprintf("%%%02x", c); !isPathChar(c) && c < utf8.RuneSelf || rapid.Bool().Draw(t, "escape") {
					path += escape
				} else {
					path += string([]byte{c})
				}
			}
			if segment != slot {
				path += rapid.SampledFrom([]string{"", "", ";jsessionid=1", "%3Bx"}).Draw(t, "parameters")
			}
		}
		path += rapid.SampledFrom([]string{"", "/", "/.", "//"}).Draw(t, "end")
		m, refusal := s.Match(&Request{Method: "POST", Path: path})
		if refusal != nil || m.Rule == nil || m.Rule.Name != "R1" || m.Params.All()[0].Value != slot {
			t.Fatalf("%q for the slot %q: %s", path, slot, matchText(m, refusal))
		}
	})
}

func TestMatchMethods(t *testing.T) {
	checkMatches(t, referenceSet(t, "any"), []matchCase{
		{"GET /reserve?slot_id=S1", "R4 GET /reserve"},
		{"HEAD /reserve?slot_id=S1", "R4 HEAD /reserve"},
		{"post /reserve", "R4 POST /reserve"},
		{"QUERY /api/slots/S1/reservations", "-"},
		{"HEAD /api/bookings", "-"},
		// Overrides: one match decides, two rules are refused.
		{"POST /api/bookings/9\nX-HTTP-Method-Override: DELETE", "R6 DELETE /api/bookings/9 id=9"},
		{"POST /api/bookings/S1\nX-HTTP-Method: PUT", "R5 PUT /api/bookings/S1 slot_id=S1"},
		{"GET /api/slots/S1/reservations\nX-Method-Override: post", "R1 POST /api/slots/S1/reservations slot_id=S1"},
		{"GET /api/slots/S1/reservations\nX_Method_Override: POST", "R1 POST /api/slots/S1/reservations slot_id=S1"},
		{"POST /api/bookings/9?_method=delete", "R6 DELETE /api/bookings/9 id=9"},
		{"POST /api/bookings/9?%5fmethod=put", "R5 PUT /api/bookings/9 slot_id=9"},
		{"PUT /api/bookings/9\nX-HTTP-Method-Override: DELETE", "ambiguous"},
		{"POST /api/bookings/9?_method=put\nX-HTTP-Method: DELETE", "ambiguous"},
		{"POST /reserve\nX-HTTP-Method-Override: GET", "R4 POST /reserve"},
		{"POST /reserve\nX-HTTP-Method-Override: DELETE", "R4 POST /reserve"},
		{"POST /other\nX-HTTP-Method-Override: DELETE", "-"},
		{"POST /reserve?_method=a&_method=b&_method=c", "R4 POST /reserve"},
		{"POST /reserve?_method=a&_method=b&_method=c&_method=d", "ambiguous"},
		{"POST /reserve\nX-HTTP-Method-Override:", "R4 POST /reserve"},
		// No method at all.
		{"POST /reserve\nX-HTTP-Method-Override: PUT, DELETE", "ambiguous"},
		{"DELETE /api/slots/S1/reservations?_method=a%20b", "ambiguous"},
		{"POST /other?_method=a%20b", "-"},
	})
}

func TestMatchExact(t *testing.T) {
	exact := testRule("exact", "POST", "/a/{x}")
	exact.Match.Exact = true
	cancel := &RuleConfig{Name: "cancel", Match: MatchConfig{Methods: []string{"DELETE"}, Path: "/a/{x}"}, Action: "cancel", Pool: "lessons"}
	slash := testRule("slash", "PUT", "/b/")
	slash.Match.Exact = true
	checkMatches(t, testSet(t, exact, cancel, slash), []matchCase{
		{"POST /a/1", "exact POST /a/1 x=1"},
		{"POST /%61/./1", "exact POST /a/1 x=1"},
		{"POST /a/1;v=2", "exact POST /a/1;v=2 x=1;v=2"},
		{"POST /A/1", "-"},
		{"POST /a/1/", "-"},
		{"POST /a;v/1", "-"},
		{"POST /a/1%2F2", "ambiguous"},
		{"DELETE /a/1", "cancel DELETE /a/1 x=1"},
		{"DELETE /A/1", "-"},
		{"DELETE /a/1/", "-"},
		{"PUT /b/", "slash PUT /b/"},
		{"PUT /b", "-"},
	})
}

func TestMatchConditions(t *testing.T) {
	number := testRule("number", "POST", "/lessons/{lesson}/bookings")
	number.Match.Params = map[string]string{"lesson": "[0-9]+"}
	number.Match.Except = []string{"/lessons/0/bookings"}
	host := testRule("host", "POST", "/h")
	host.Match.Hosts = []string{"Shop.Test:8080", "*.example.com", "[::1]"}
	header := testRule("header", "POST", "/v")
	header.Match.Headers = map[string]string{"X-Version": "2", "Accept": "application/*"}
	rest := testRule("rest", "POST", "/files/{path...}")
	root := testRule("root", "POST", "/")
	all := testRule("all", "POST", "/lessons/{lesson}/{verb}")
	all.Match.Methods = nil
	checkMatches(t, testSet(t, number, host, header, rest, root, all), []matchCase{
		{"POST /lessons/12/bookings", "number POST /lessons/12/bookings lesson=12"},
		{"POST /lessons/%31%32/bookings", "number POST /lessons/12/bookings lesson=12"},
		{"POST /lessons/12a/bookings", "all POST /lessons/12a/bookings lesson=12a verb=bookings"},
		{"POST /lessons/0/bookings", "all POST /lessons/0/bookings lesson=0 verb=bookings"},
		// An exception that matched loosely could be used to dodge the rule.
		{"POST /lessons/0/Bookings", "number POST /lessons/0/Bookings lesson=0"},
		// Servlets read 12, PHP reads another rule's path.
		{"POST /lessons/12;x/bookings", "ambiguous"},
		{"PATCH /lessons/1/x", "all PATCH /lessons/1/x lesson=1 verb=x"},
		{"POST /h", "host POST /h"},
		{"POST /h\nHost: SHOP.test.", "host POST /h"},
		{"POST /h\nHost: shop.test:80", "host POST /h"},
		{"POST /h\nHost: a.b.example.com", "host POST /h"},
		{"POST /h\nHost: [::1]:8080", "host POST /h"},
		{"POST /h\nHost: example.com", "-"},
		{"POST /h\nHost: shop.test.evil.org", "-"},
		{"POST /h%2F\nHost: evil.org", "-"},
		{"POST /v", "-"},
		{"POST /v\nX-Version: 2", "-"},
		{"POST /v\nX-Version: 2\nAccept: application/json", "header POST /v"},
		{"POST /v\nx_version: 2\nAccept: text/html\naccept: application/json", "header POST /v"},
		{"POST /v\nX-Version: 20\nAccept: application/json", "-"},
		{"POST /files/a/b%20c/", "rest POST /files/a/b%20c/ path=a/b c"},
		{"POST /files", "rest POST /files path="},
		{"POST /", "root POST /"},
		{"POST /x/..", "root POST /"},
	})
}

func TestMatchDoesNotAllocateForOtherTraffic(t *testing.T) {
	s := referenceSet(t, "any")
	r := testRequest("GET /static/app.js?v=12&x=y", "", "Accept: */*", "User-Agent: x", "X-Requested-By: browser")
	if n := testing.AllocsPerRun(100, func() {
		if m, refusal := s.Match(r); m.Rule != nil || refusal != nil {
			t.Fatal(m, refusal)
		}
	}); n != 0 {
		t.Errorf("Match allocates %v times for a path that no rule matches", n)
	}
}

func BenchmarkMatch(b *testing.B) {
	s := referenceSet(b, "any")
	for name, line := range map[string]string{
		"first rule": "POST /api/slots/S1/reservations",
		"last rule":  "DELETE /api/bookings/9",
		"no rule":    "GET /static/app.js",
		"not normal": "POST /api//slots/%531/reservations;x=1",
		"unreadable": "POST /files/a%2Fb",
	} {
		r := testRequest(line, "", "Accept: application/json", "User-Agent: bench", "X-User-Id: 7", "Authorization: Bearer x", "Content-Type: application/json")
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Match(r)
			}
		})
	}
}
