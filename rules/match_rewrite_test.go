package rules

import "testing"

// Some backends take the path from a field that rewriting servers set (Symfony below
// 4.1.3, Zend Framework), and anybody can send.
func TestDialectRewrittenPaths(t *testing.T) {
	list := func() []*RuleConfig {
		lesson := testRule("lesson", "POST", "/lessons/{lesson}")
		lesson.Slot = extractors("path:lesson")
		return []*RuleConfig{lesson, testRule("book", "POST", "/book"), testRule("pay", "POST", "/pay")}
	}
	ignored := func(want string) map[string]string {
		return map[string]string{"rack": want, "express": want, "spring": want, "aspnet": want}
	}
	checkDialects(t, list, []dialectCase{
		{"POST /other\nX-Original-URL: /book", "ambiguous", ignored("-")},
		{"POST /other\nx-rewrite-url: /book?a=1", "ambiguous", ignored("-")},
		{"POST /other\nX_Rewrite_Url: /book", "ambiguous", ignored("-")},
		{"POST /other\nX-Original-URL: https://shop.test/book#x", "ambiguous", ignored("-")},
		{"POST /other\nX-Original-URL: book", "ambiguous", ignored("-")},
		{"POST /other\nX-Original-URL: /x/..%2Fbook", "ambiguous", ignored("-")},
		{"POST /other\nX-Original-URL: /free\nX-Rewrite-URL: /book", "ambiguous", ignored("-")},
		{"POST /pay\nX-Original-URL: /book", "ambiguous", ignored("pay POST /pay")},
		{"POST /lessons/7\nX-Original-URL: /lessons/8", "ambiguous", ignored("lesson POST /lessons/7 lesson=7")},
		// The path before rewriting, as servers in front tell it.
		{"POST /lessons/7\nX-Original-URL: /lessons/7?x=1", "lesson POST /lessons/7 lesson=7", nil},
		{"POST /book\nX-Original-URL: /shop/book", "book POST /book", nil},
		{"POST /book\nX-Original-URL:", "book POST /book", nil},
		{"POST /other\nX-Original-URL: /free%zz", "-", nil},
		{"GET /other\nX-Original-URL: /book", "-", nil},
		{"POST /other\nX-Original-URI: /book", "-", nil},
	})
}

// Front controllers are told the path in the query where no server rewrites it.
func TestDialectPathsInQueries(t *testing.T) {
	list := func() []*RuleConfig {
		lesson := testRule("lesson", "POST", "/lessons/{lesson}")
		lesson.Slot = extractors("path:lesson")
		return []*RuleConfig{lesson, testRule("book", "POST", "/api/book"), testRule("rest", "POST", "/wp-json/shop/v1/book")}
	}
	ignored := map[string]string{"rack": "-", "express": "-", "spring": "-", "aspnet": "-"}
	checkDialects(t, list, []dialectCase{
		{"POST /?s=/api/book", "ambiguous", ignored},
		{"POST /index.php?s=api/book&a=1", "ambiguous", ignored},
		{"POST /index%2Ephp?a=1&r=api%2Fbook", "ambiguous", ignored},
		{"POST /?%73=/api/book", "ambiguous", ignored},
		{"POST /shop/?rest_route=/shop/v1/book", "ambiguous", ignored},
		{"POST /?rest.route=%2Fshop%2Fv1%2Fbook", "ambiguous", ignored},
		{"POST /index.php?/api/book", "ambiguous", ignored},
		{"POST /?/api/book?slot=1", "ambiguous", ignored},
		{"POST /?%2Fapi%2Fbook&slot=1", "ambiguous", ignored},
		{"POST /?q=/lessons/7", "ambiguous", ignored},
		// No front controller, no path, no rule.
		{"POST /login?url=/api/book", "-", nil},
		{"POST /?next=/api/book", "-", nil},
		{"POST /?s=/other", "-", nil},
		{"POST /?s=book", "-", nil},
		{"GET /?s=/api/book", "-", nil},
		{"POST /lessons/7?q=/api/book", "lesson POST /lessons/7 lesson=7", nil},
		{"POST /lessons/7?s=/lessons/8", "lesson POST /lessons/7 lesson=7", nil},
	})
}

// A rewritten path whose method may be overridden by the body waits for it too.
func TestRewrittenPathWaitsForTheBody(t *testing.T) {
	s := setFor(t, "php", testRule("put", "PUT", "/b"))
	r := testRequest("POST /other", "", formType, "X-Original-URL: /b")
	r.Body = nil
	if m, refusal := s.Match(r); !m.NeedsBody || refusal != nil {
		t.Fatalf("%+v, %v", m, refusal)
	}
	r.Body = []byte("_method=put")
	if _, refusal := s.Match(r); kindOf(refusal) != RefuseAmbiguous {
		t.Fatalf("%v", refusal)
	}
}

// What begins with two slashes names a host to whoever parses it as a URL.
func TestDialectPathsBehindAHost(t *testing.T) {
	list := func() []*RuleConfig { return []*RuleConfig{testRule("book", "POST", "/book")} }
	others := map[string]string{"rack": "-", "spring": "-", "aspnet": "-"}
	checkDialects(t, list, []dialectCase{
		{"POST //shop.test/book", "book POST /book", others},
		{"POST //a/./book/", "book POST /book/", others},
		{"POST //u@a:80/book", "book POST /book", others},
		{"POST //a/x/../book", "book POST /book", others},
		{"POST //a;b/book;c", "book POST /book", map[string]string{"php": "-", "express": "-", "rack": "-", "spring": "-", "aspnet": "-"}},
		{"POST //a/x/book", "-", nil},
		{"POST /a/book", "-", nil},
		{"POST ///book", "book POST /book", nil},
		{"POST //a", "-", nil},
	})
}
