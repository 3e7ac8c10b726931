package rules

import "testing"

// A rule for a script is found by whatever else servers run that script for.
func TestDialectScripts(t *testing.T) {
	list := func() []*RuleConfig {
		front := testRule("front", "POST", "/index.php/api/slots/{slot}")
		front.Slot = extractors("path:slot")
		return []*RuleConfig{
			testRule("script", "POST", "/book.php"),
			testRule("folder", "POST", "/shop/index.php"),
			testRule("plain", "POST", "/order"),
			testRule("page", "POST", "/seat.aspx"),
			testRule("start", "POST", "/club/Default.aspx"),
			front,
			testRule("guard", "POST", "/app.php/{rest...}"),
		}
	}
	noScripts := map[string]string{"rack": "-", "express": "-", "spring": "-", "aspnet": "-"}
	except := func(names ...string) map[string]string {
		m := map[string]string{}
		for _, n := range names {
			m[n] = "-"
		}
		return m
	}
	checkDialects(t, list, []dialectCase{
		// MultiViews, try_files, FriendlyUrls.
		{"POST /book", "script POST /book", noScripts},
		{"POST /book/", "script POST /book/", noScripts},
		{"POST /book/extra", "script POST /book/extra", noScripts},
		{"POST /BOOK", "script POST /BOOK", noScripts},
		{"POST /books", "-", nil},
		{"POST /book.json", "-", nil},
		{"POST /book.html", "-", nil},
		{"POST /book.php.json", "script POST /book.php", except("express")},
		{"POST /seat", "page POST /seat", except("php", "rack", "express", "spring")},
		{"POST /seat/3", "page POST /seat/3", except("php", "rack", "express", "spring")},
		// A folder's index, either way.
		{"POST /shop/", "folder POST /shop/", noScripts},
		{"POST /shop", "folder POST /shop", noScripts},
		{"POST /shop/index", "folder POST /shop/index", noScripts},
		{"POST /shop/index.php", "folder POST /shop/index.php", nil},
		{"POST /shop/cart", "-", nil},
		{"POST /club/", "start POST /club/", except("php", "rack", "express", "spring")},
		{"POST /order/index.php", "plain POST /order/", noScripts},
		{"POST /order/default.aspx", "plain POST /order/", except("php", "rack", "express", "spring")},
		{"POST /order/other.php", "-", nil},
		{"POST /order/7", "-", nil},
		// A front controller with and without its name.
		{"POST /index.php/order", "plain POST /order", noScripts},
		{"POST /index/order", "plain POST /order", noScripts},
		{"POST /x/index/order", "-", nil},
		{"POST /api/slots/S1", "front POST /api/slots/S1 slot=S1", noScripts},
		{"POST /app_dev.php/api/slots/S1", "front POST /api/slots/S1 slot=S1", noScripts},
		{"POST /index/api/slots/S1", "front POST /index/api/slots/S1 slot=S1", noScripts},
		{"POST /anything/else", "-", nil},
		// What cannot be read, and could be meant.
		{"POST /book/a%2Fb", "ambiguous", noScripts},
		{"POST /shop%00", "ambiguous", noScripts},
	})
}

// Names that Windows and ASP.NET take for others.
func TestDialectWindowsNames(t *testing.T) {
	list := func() []*RuleConfig {
		lesson := testRule("lesson", "POST", "/lessons/{lesson}")
		lesson.Slot = extractors("path:lesson")
		return []*RuleConfig{lesson, testRule("page", "POST", "/book.aspx"), testRule("v", "POST", "/api/v1.")}
	}
	others := map[string]string{"php": "-", "rack": "-", "express": "-", "spring": "-"}
	lesson := "lesson POST /lessons/7 lesson=7"
	checkDialects(t, list, []dialectCase{
		{"POST /lessons./7", "lesson POST /lessons./7 lesson=7", others},
		{"POST /lessons%20/7", "lesson POST /lessons%20/7 lesson=7", others},
		{"POST /lessons.%20../7", "lesson POST /lessons.%20../7 lesson=7", others},
		{"POST /lessons::$INDEX_ALLOCATION/7", "lesson POST /lessons::$INDEX_ALLOCATION/7 lesson=7", others},
		{"POST /%20lessons/7", "-", nil},
		{"POST /lessons.x/7", "-", nil},
		{"POST /book.aspx.", "page POST /book.aspx.", map[string]string{"php": "-", "express": "-", "rack": "page POST /book.aspx", "spring": "page POST /book.aspx"}},
		{"POST /book.aspx%20", "page POST /book.aspx%20", others},
		{"POST /book.aspx::$DATA", "page POST /book.aspx::$DATA", others},
		{"POST /book.aspx./x", "page POST /book.aspx./x", others},
		{"POST /book.aspx:stream", "-", nil},
		{"POST /book.aspx%20%00", "ambiguous", nil},
		{"POST /api/v1.", "v POST /api/v1.", nil},
		// Sessions in the path.
		{"POST /(S(lit3py55t21z5v55vlm25s55))/lessons/7", lesson, others},
		{"POST /%28S%28x%29%29/lessons/7", lesson, others},
		{"POST /(A(x)F(y)S(z))/lessons/7", lesson, others},
		{"POST /les/(S(x))sons/7", lesson, others},
		{"POST /lessons/(S(x))", "lesson POST /lessons/(S(x)) lesson=(S(x))", nil},
		{"POST /(S)/lessons/7", "-", nil},
		{"POST /(S(x)/lessons/7", "-", nil},
		// A variable keeps what ends it; a suffix is another matter.
		{"POST /lessons/7%20", "lesson POST /lessons/7%20 lesson=7 ", nil},
	})
}

// A rule for each of two paths means two handlers.
func TestScriptsOfTwoRules(t *testing.T) {
	all := testRule("all", "POST", "/{rest...}")
	checkMatches(t, testSet(t, testRule("script", "POST", "/book.php"), testRule("plain", "POST", "/book"), all), []matchCase{
		{"POST /book", "plain POST /book"},
		{"POST /BOOK/", "plain POST /BOOK/"},
		{"POST /other", "all POST /other rest=other"},
	})
	checkMatches(t, testSet(t, testRule("script", "POST", "/book.php"), testRule("plain", "PUT", "/book"), all), []matchCase{
		{"POST /book", "script POST /book"},
		{"PUT /book", "plain PUT /book"},
	})
}

// Exact rules know one path each.
func TestScriptsOfExactRules(t *testing.T) {
	exact := testRule("exact", "POST", "/shop/index.php")
	exact.Match.Exact = true
	checkMatches(t, testSet(t, exact), []matchCase{
		{"POST /shop/index.php", "exact POST /shop/index.php"},
		{"POST /shop/", "-"},
		{"POST /shop/index", "-"},
		{"POST /shop/index.php.", "-"},
		{"POST /(S(x))/shop/index.php", "-"},
	})
}
