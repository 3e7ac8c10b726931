package rules

import "testing"

// dialectCase is what each dialect makes of a path or method; a name without an
// entry is as any.
type dialectCase struct {
	request string
	any     string
	but     map[string]string
}

func checkDialects(t *testing.T, list func() []*RuleConfig, cases []dialectCase) {
	t.Helper()
	for name := range dialects {
		t.Run(name, func(t *testing.T) {
			var own []matchCase
			for _, c := range cases {
				want, differs := c.but[name]
				if !differs {
					want = c.any
				}
				own = append(own, matchCase{c.request, want})
			}
			checkMatches(t, setFor(t, name, list()...), own)
		})
	}
}

func TestDialectPaths(t *testing.T) {
	list := func() []*RuleConfig {
		in := testRule("in", "POST", "/api/slots/{slot}/reservations")
		in.Slot = extractors("path:slot")
		last := testRule("last", "PUT", "/api/bookings/{slot}")
		last.Slot = extractors("path:slot")
		script := testRule("script", "POST", "/book.php")
		page := testRule("page", "POST", "/shop/book.aspx")
		version := testRule("version", "POST", "/api/v1")
		number := testRule("number", "POST", "/lessons/{lesson}")
		number.Match.Params = map[string]string{"lesson": "[0-9]+"}
		number.Slot = extractors("path:lesson")
		two := testRule("two", "POST", "/t/{tenant}/lessons/{lesson}")
		two.Slot = extractors("path:lesson")
		return []*RuleConfig{in, last, script, page, version, number, two}
	}
	in := "in POST /api/slots/S1/reservations slot=S1"
	checkDialects(t, list, []dialectCase{
		{"POST /api/slots/S1/reservations", in, nil},
		// Spellings that are one path to all of them.
		{"POST /api//slots/%531/reservations/", "in POST /api/slots/S1/reservations/ slot=S1", nil},
		{"POST /x/../api/slots/S1/./reservations", in, nil},
		// Letter case.
		{"POST /Api/slots/aB/reservations", "in POST /Api/slots/aB/reservations slot=aB", map[string]string{"rack": "-", "spring": "-"}},
		// Parameters.
		{"POST /api;x/slots/S1/reservations;jsessionid=1", in, map[string]string{"php": "-", "rack": "-", "express": "-", "aspnet": "-"}},
		{"POST /x/..;/api/slots/S1/reservations", in, map[string]string{"php": "-", "rack": "-", "express": "-", "aspnet": "-"}},
		{"POST /api/slots/S1;v=2/reservations", "ambiguous", map[string]string{
			"php": "in POST /api/slots/S1;v=2/reservations slot=S1;v=2", "rack": "in POST /api/slots/S1;v=2/reservations slot=S1;v=2",
			"express": "in POST /api/slots/S1;v=2/reservations slot=S1;v=2", "aspnet": "in POST /api/slots/S1;v=2/reservations slot=S1;v=2",
			"spring": in}},
		{"POST /api;x/slots/S1%3Bv/reservations", "ambiguous", map[string]string{"php": "-", "rack": "-", "express": "-", "aspnet": "-"}},
		// Dot segments as text.
		{"POST /t/../lessons/7", "two POST /t/../lessons/7 tenant=.. lesson=7", map[string]string{
			"php": "number POST /lessons/7 lesson=7", "spring": "number POST /lessons/7 lesson=7", "aspnet": "number POST /lessons/7 lesson=7",
			"any": "ambiguous", "rack": "ambiguous", "express": "ambiguous"}},
		{"POST /t/./lessons/7", "-", map[string]string{
			"any": "two POST /t/./lessons/7 tenant=. lesson=7", "rack": "two POST /t/./lessons/7 tenant=. lesson=7", "express": "two POST /t/./lessons/7 tenant=. lesson=7"}},
		// Formats after a literal.
		{"POST /api/slots/S1/reservations.json", in, map[string]string{"express": "-"}},
		{"POST /api/slots/S1/reservations.XML", in, map[string]string{"express": "-"}},
		{"POST /api/slots/S1/reservations.html", in, map[string]string{"express": "-", "aspnet": "-"}},
		{"POST /api/slots/S1/reservations.php", in, map[string]string{"express": "-", "aspnet": "-"}},
		{"POST /api/slots/S1/reservations.do", in, map[string]string{"express": "-", "aspnet": "-", "php": "-"}},
		{"POST /api/slots/S1/reservations.aspx", in, map[string]string{"express": "-", "php": "-"}},
		{"POST /api/slots/S1/reservations.csv", in, map[string]string{"express": "-", "aspnet": "-", "php": "-"}},
		{"POST /api/slots/S1/reservations.", "in POST /api/slots/S1/reservations. slot=S1", map[string]string{"express": "-", "php": "-", "rack": in, "spring": in}},
		{"POST /api/slots/S1/.json", "-", nil},
		{"POST /api/slots.json/S1/reservations", "-", nil},
		{"POST /api/slots/v1.5/reservations", "in POST /api/slots/v1.5/reservations slot=v1.5", nil},
		// A version is no format.
		{"POST /api/v1.5", "-", nil},
		{"POST /api/v1.json", "version POST /api/v1", map[string]string{"express": "-"}},
		// Formats after a variable.
		{"PUT /api/bookings/S1.json", "ambiguous", map[string]string{
			"php": "last PUT /api/bookings/S1.json slot=S1.json", "express": "last PUT /api/bookings/S1.json slot=S1.json", "aspnet": "last PUT /api/bookings/S1.json slot=S1.json"}},
		{"PUT /api/bookings/7.5", "ambiguous", map[string]string{
			"php": "last PUT /api/bookings/7.5 slot=7.5", "express": "last PUT /api/bookings/7.5 slot=7.5", "aspnet": "last PUT /api/bookings/7.5 slot=7.5"}},
		{"POST /lessons/7.json", "number POST /lessons/7 lesson=7", map[string]string{"php": "-", "express": "-", "aspnet": "-"}},
		{"POST /lessons/search", "-", nil},
		{"POST /lessons/search.json", "-", nil},
		{"POST /lessons/7x", "-", nil},
		// Front controllers.
		{"POST /index.php/api/slots/S1/reservations", in, map[string]string{"rack": "-", "express": "-", "spring": "-", "aspnet": "-"}},
		{"POST /app_dev.PHP/api/slots/S1/reservations.json", in, map[string]string{"rack": "-", "express": "-", "spring": "-", "aspnet": "-"}},
		{"POST /public/index.php/api/slots/S1/reservations", in, map[string]string{"rack": "-", "express": "-", "spring": "-", "aspnet": "-"}},
		{"POST /api/index.php/slots/S1/reservations", in, map[string]string{"rack": "-", "express": "-", "spring": "-", "aspnet": "-"}},
		{"POST /default.aspx/api/slots/S1/reservations", in, map[string]string{"rack": "-", "express": "-", "spring": "-", "php": "-"}},
		{"POST /index.html/api/slots/S1/reservations", "-", nil},
		// More path after a script.
		{"POST /book.php/extra/path", "script POST /book.php/extra/path", map[string]string{"rack": "-", "express": "-", "spring": "-", "aspnet": "-"}},
		{"POST /book.php/", "script POST /book.php/", nil},
		{"POST /shop/book.aspx/x", "page POST /shop/book.aspx/x", map[string]string{"rack": "-", "express": "-", "spring": "-", "php": "-"}},
		{"POST /book.phpx", "-", nil},
		{"POST /api/v1/extra", "-", nil},
		{"POST /api/v1.php/extra", "version POST /api/v1", map[string]string{"rack": "-", "express": "-", "spring": "-", "aspnet": "-"}},
		// What cannot be read, and could be meant.
		{"POST /index.php/api%2Fslots/S1/reservations", "ambiguous", map[string]string{"rack": "-", "express": "-", "spring": "-", "aspnet": "-"}},
		{"POST /api/slots/S1%2F2/reservations.json", "ambiguous", map[string]string{"express": "-"}},
		{"POST /book.php/a%2Fb", "ambiguous", map[string]string{"rack": "-", "express": "-", "spring": "-", "aspnet": "-"}},
		{"POST /other/a%2Fb", "-", nil},
	})
}

// Exact rules see the normal form and nothing else, under every dialect.
func TestDialectsLeaveExactRulesAlone(t *testing.T) {
	list := func() []*RuleConfig {
		exact := testRule("exact", "POST", "/a/{x}")
		exact.Match.Exact = true
		exact.Slot = extractors("path:x")
		cancel := &RuleConfig{Name: "cancel", Match: MatchConfig{Methods: []string{"DELETE"}, Path: "/book.php"}, Action: "cancel", Pool: "lessons"}
		return []*RuleConfig{exact, cancel}
	}
	checkDialects(t, list, []dialectCase{
		{"POST /a/v1.5", "exact POST /a/v1.5 x=v1.5", nil},
		{"POST /a/1.json", "exact POST /a/1.json x=1.json", nil},
		{"POST /a/1;v=2", "exact POST /a/1;v=2 x=1;v=2", nil},
		{"POST /b/../a/%31", "exact POST /a/1 x=1", nil},
		{"POST /A/1", "-", nil},
		{"POST /index.php/a/1", "-", nil},
		{"DELETE /book.php", "cancel DELETE /book.php", nil},
		{"DELETE /book.php/x", "-", nil},
		{"DELETE /book.php.json", "-", nil},
		{"DELETE /book.php;x", "-", nil},
	})
}

// Path variables that no extractor reads may be read in any way.
func TestUnreadVariablesAreNotAmbiguous(t *testing.T) {
	files := &RuleConfig{Name: "files", Match: MatchConfig{Path: "/files/{path...}"}, Action: "guard"}
	checkMatches(t, testSet(t, files), []matchCase{
		{"GET /files/2026/report.pdf", "files GET /files/2026/report.pdf path=2026/report.pdf"},
		{"GET /files/a;b/c", "files GET /files/a;b/c path=a;b/c"},
	})
}

func TestDialectMethods(t *testing.T) {
	list := func() []*RuleConfig {
		return []*RuleConfig{testRule("post", "POST", "/b/{x}"), testRule("put", "PUT", "/b/{x}"), testRule("delete", "DELETE", "/d/{x}"), testRule("get", "GET", "/b/{x}")}
	}
	post, put := "post POST /b/1 x=1", "put PUT /b/1 x=1"
	checkDialects(t, list, []dialectCase{
		{"POST /b/1", post, nil},
		{"POST /b/1\nX-HTTP-Method-Override: put", put, map[string]string{"any": "ambiguous", "spring": post}},
		{"POST /b/1\nX-HTTP-Method: PUT", post, map[string]string{"any": "ambiguous", "express": put}},
		{"POST /b/1\nX-Method-Override: PUT", post, map[string]string{"any": "ambiguous", "express": put}},
		{"POST /b/1?_method=PUT", put, map[string]string{"any": "ambiguous", "rack": post, "aspnet": post}},
		{"POST /d/1\nX-HTTP-Method-Override: DELETE", "delete DELETE /d/1 x=1", map[string]string{"spring": "-"}},
		{"POST /d/1?_method=delete", "delete DELETE /d/1 x=1", map[string]string{"rack": "-", "aspnet": "-"}},
		// The method that counts has no rule.
		{"POST /b/1\nX-HTTP-Method-Override: DELETE", "-", map[string]string{"any": post, "express": post, "spring": post, "aspnet": post}},
		{"POST /b/1\nX-HTTP-Method: DELETE", post, nil},
		{"POST /b/1?_method=DELETE", "-", map[string]string{"any": post, "rack": post, "express": post, "spring": post, "aspnet": post}},
		{"POST /b/1%2F2\nX-HTTP-Method-Override: PATCH", "ambiguous", nil},
		// Only POST can be overridden, but for any.
		{"GET /b/1\nX-HTTP-Method-Override: PUT", "get GET /b/1 x=1", map[string]string{"any": "ambiguous", "php": "ambiguous"}},
		{"GET /d/1?_method=DELETE", "-", map[string]string{"any": "delete DELETE /d/1 x=1", "php": "delete DELETE /d/1 x=1"}},
		// No method to the backend: it runs POST.
		{"POST /b/1\nX-HTTP-Method-Override: FOO", post, nil},
		{"POST /b/1?_method=GET", "get GET /b/1 x=1", map[string]string{"any": "ambiguous", "rack": post, "aspnet": post, "spring": post}},
		// Two of them.
		{"POST /b/1\nX-HTTP-Method-Override: PUT\nx_http_method_override: FOO", "ambiguous", map[string]string{"spring": post}},
		{"POST /b/1\nX-HTTP-Method-Override: POST\nX-HTTP-Method-Override: PUT", "ambiguous", map[string]string{"spring": post}},
		{"POST /b/1?_method=PUT&_method=DELETE", put, map[string]string{"any": "ambiguous", "rack": post, "aspnet": post}},
		// No token.
		{"POST /b/1\nX-HTTP-Method-Override: P T", "ambiguous", map[string]string{"spring": post}},
		{"POST /b/1?_method=PUT%00", "ambiguous", map[string]string{"rack": post, "aspnet": post}},
		{"POST /other\nX-HTTP-Method-Override: P T", "-", nil},
	})
}
