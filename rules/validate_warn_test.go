package rules

import (
	"strings"
	"testing"
)

// quiet is a configuration without warnings.
var quiet = strings.Replace(base, "capacity: 6", "capacity: learned", 1) + `    outcomes:
      - { when: { status: 409 }, is: sold_out }
      - { when: { status: 3xx }, is: refused }
`

func warnings(t *testing.T, src string) Faults {
	t.Helper()
	cfg, faults := Load("c.yaml", []byte(src), LoadOptions{})
	if cfg == nil {
		t.Fatalf("unexpected faults:\n%s\nin:\n%s", faults, src)
	}
	return faults.Warnings()
}

// expectWarning wants exactly one warning, at the mark, whose message holds want;
// none for want "".
func expectWarning(t *testing.T, marked, want string) {
	t.Helper()
	if want == "" {
		if got := warnings(t, marked); len(got) > 0 {
			t.Errorf("got:\n%sin:\n%s", got, marked)
		}
		return
	}
	src, line, col := unmark(t, marked)
	got := warnings(t, src)
	if len(got) != 1 || got[0].Line != line || got[0].Col != col || !strings.Contains(got[0].Message, want) {
		t.Errorf("got:\n%swant c.yaml:%d:%d: warning: … %s\nin:\n%s", got, line, col, want, src)
	}
}

func TestWarnings(t *testing.T) {
	replace := func(old, new string) string {
		if !strings.Contains(quiet, old) {
			t.Fatalf("nothing to replace: %s", old)
		}
		return strings.Replace(quiet, old, new, 1)
	}
	for _, row := range []struct{ name, src, want string }{
		{"none", quiet, ""},
		{"numeric capacity", replace("capacity: learned", "capacity: «6"), "a number without truth"},
		{"unused pool", replace("pools:\n", "pools:\n  «other: { capacity: learned }\n"), "no rule uses this pool"},
		{"retain", replace("capacity: learned", "capacity: learned\n    retain: «20s"), "shorter than hold_ttl, which is 30s"},
		{"learned without sold_out", strings.Replace(replace("is: sold_out", "is: refused"), "    outcomes:", "    «outcomes:", 1), "no line says sold_out"},
		{"max_inflight of a learned pool", replace("capacity: learned", "capacity: learned\n    max_inflight: 4"), ""},
		{"max_inflight of a learned pool, out of effect", replace("capacity: learned", "capacity: learned\n    max_inflight: «5"), "at most 4 requests of a slot are at the backend at once"},
		{"3xx unnamed", strings.Replace(replace("      - { when: { status: 3xx }, is: refused }\n", ""), "    outcomes:", "    «outcomes:", 1), "no line names 3xx answers"},
		{"3xx with a condition only", strings.Replace(replace("status: 3xx", "status: 3xx, header: { Location: \"/ok*\" }"), "    outcomes:", "    «outcomes:", 1), "no line names 3xx answers"},
		{"3xx in a list", replace("status: 3xx", "status: [302, 303]"), ""},
		{"keep_alive", "server: {}\n" + replace("url: http://127.0.0.1:9000", "url: http://a\n  keep_alive: «75s"), "longer than many backends keep"},
		{"connect_timeout", replace("url: http://127.0.0.1:9000", "url: http://a\n  connect_timeout: «5s"), "leaves nothing of upstream.timeout, which is 5s"},
		{"store timeout", quiet + "store: { timeout: «5s }\n", "not below upstream.timeout"},
		{"drain", quiet + "server: { drain: «4s }\n", "a stop will cut such requests off"},
		{"drain and a rule's timeout", replace("pool: lessons", "pool: lessons\n    timeout: 20s") + "server: { drain: «19s }\n", "which is 20s"},
		{"secret", quiet + "store: { secret: «hunter2 }\n", "use 16 characters or more"},
		{"unknown: auto", quiet + "    idempotency: { unknown: «auto }\n", "auto means reject here"},
		{"unknown: auto by default", quiet + "    «idempotency: { ttl: 2d }\n", "for the key's ttl of 2d"},
		{"unknown: auto with duplicate", replace("is: refused", "is: duplicate") + "    idempotency: {}\n", ""},
		{"unknown: reject", quiet + "    idempotency: { unknown: reject }\n", ""},
		{"twin's wait", quiet + "    idempotency: { unknown: reject, wait: «4s }\n", "a twin gives up before"},
		{"twin's wait with reject", quiet + "    idempotency: { unknown: reject, in_flight: reject, wait: 4s }\n", ""},
		{"line covered", replace("- { when: { status: 409 }", "- { when: { status: 4xx }, is: sold_out }\n      - «{ when: { status: 409, json: { /a: 1 } }"), "line 1 of outcomes takes all of it"},
		{"line covered by text", replace("- { when: { status: 409 }, is: sold_out }", "- { when: { text: full }, is: sold_out }\n      - «{ when: { text: fully booked }, is: sold_out }"), "line 1 of outcomes takes all of it"},
		{"line covered by a prefix", replace("- { when: { status: 409 }, is: sold_out }", "- { when: { header: { Location: \"/s*\" } }, is: sold_out }\n      - «{ when: { header: { location: \"/sold*\" } }, is: sold_out }"), "line 1 of outcomes takes all of it"},
		{"line covered by several", replace("- { when: { status: 409 }", "- { when: { status: 400-408 }, is: refused }\n      - { when: { status: [409, 410-499] }, is: sold_out }\n      - «{ when: { status: 4xx }"), "lines above take every status of it"},
		{"line not covered", replace("- { when: { status: 409 }", "- { when: { status: 409, json: { /a: 2 } }, is: duplicate }\n      - { when: { status: 409, json: { /a: 1 } }"), ""},
		{"line not covered by an exact value", replace("- { when: { status: 409 }", "- { when: { header: { Location: /a } }, is: duplicate }\n      - { when: { header: { Location: \"/a*\" } }"), ""},
	} {
		t.Run(row.name, func(t *testing.T) { expectWarning(t, row.src, row.want) })
	}
}

func TestWarningsOfSharedGroups(t *testing.T) {
	src := quiet + `    idempotency: { group: g, unknown: reject }
  - name: b
    match: { path: /b }
    action: guard
    idempotency: { group: «g, unknown: reject, ttl: 2h }
`
	expectWarning(t, src, "shares the keys of rule book-lesson, but differs from it")
	expectWarning(t, strings.Replace(strings.Replace(src, ", ttl: 2h", "", 1), "«", "", 1), "")
}

// TestWarningsOfOverlaps puts two guards one below the other.
func TestWarningsOfOverlaps(t *testing.T) {
	const never, overlaps = "rule second can never match: rule first above takes all of it", "rule second overlaps rule first above"
	const twins = "rule second and rule first above can be one path to backends"
	for _, row := range []struct{ first, second, want string }{
		{"path: /a", "path: /b", ""},
		{"path: /a", "path: /a", never},
		{"path: /a", "path: /A/", never},
		{"path: /a", "path: /a.json", twins},
		{"path: /a.json", "path: \"/{x}\"", overlaps},
		{"path: /b/a.json", "path: /b/a", twins},
		{"path: /a, exact: true", "path: /a.json", ""},
		{"path: /book.php", "path: /book", twins},
		{"path: /book", "path: /book.php", twins},
		{"path: /book.ashx", "path: /book.aspx", twins},
		{"methods: [POST], path: /book", "methods: [POST, PUT], path: /book.php", twins},
		{"path: /shop/index.php", "path: /shop/", twins},
		{"path: /shop", "path: /shop/Default.aspx", twins},
		{"path: /book.php", "path: /book.php/extra", twins},
		{"path: /index.php/order", "path: /order", twins},
		{"path: \"/index.php/order/{x}\"", "path: \"/order/{y}/z\"", ""},
		{"path: /shop/index.php", "path: /shop/cart", ""},
		{"path: /a/v1", "path: /a/v1.5", ""},
		{"methods: [PUT], path: /a", "methods: [POST], path: /a.json", ""},
		{"path: \"/a/{x}\"", "path: /a/b", never},
		{"path: /a/b", "path: \"/a/{x}\"", overlaps},
		{"path: \"/a/{x}\"", "path: \"/{y}/b\"", overlaps},
		{"path: \"/a/{x}/c\"", "path: \"/a/{x}/d\"", ""},
		{"path: \"/a/{r...}\"", "path: /a/b/c", never},
		{"path: \"/a/{r...}\"", "path: /a", never},
		{"path: \"/{r...}\"", "path: \"/a/{r...}\"", never},
		{"path: \"/a/{x}\"", "path: \"/a/{r...}\"", overlaps},
		{"methods: [POST], path: /a", "methods: [PUT], path: /a", ""},
		{"methods: [POST], path: /a", "methods: [PUT, POST], path: /a", overlaps},
		{"methods: [POST, PUT], path: /a", "methods: [PUT], path: /a", never},
		{"path: /a", "methods: [PUT], path: /a", never},
		{"methods: [PUT], path: /a", "path: /a", overlaps},
		{"methods: [GET], path: /a", "methods: [HEAD], path: /a", never},
		{"methods: [HEAD], path: /a", "methods: [GET], path: /a", overlaps},
		{"path: /a, hosts: [x.example]", "path: /a, hosts: [y.example]", ""},
		{"path: /a, hosts: [x.example]", "path: /a, hosts: [X.example]", never},
		{"path: /a, hosts: [x.example]", "path: /a", overlaps},
		{"path: /a, hosts: [\"*.example\"]", "path: /a, hosts: [x.example]", never},
		{"path: /a, hosts: [x.example]", "path: /a, hosts: [\"*.example\"]", overlaps},
		{"path: /a, headers: { X-A: b }", "path: /a, headers: { X-A: c }", ""},
		{"path: /a, headers: { X-A: b }", "path: /a, headers: { x-a: b, X-B: c }", never},
		{"path: /a, headers: { X-A: b }", "path: /a", overlaps},
		{"path: /a, headers: { X-A: \"b*\" }", "path: /a, headers: { X-A: bc }", never},
		{"path: /a, exact: true", "path: /a", overlaps},
		{"path: /a, exact: true", "path: /a, exact: true", never},
		{"path: /a, exact: true", "path: /A, exact: true", ""},
		{"path: \"/{x}\", params: { x: \"[0-9]+\" }", "path: \"/{y}\", params: { y: \"[a-z]+\" }", ""},
		{"path: \"/{x}\", params: { x: \"[0-9]+\" }", "path: \"/{x}\", params: { x: \"[0-9]+\" }", never},
		{"path: \"/{x}\", params: { x: \"[0-9]+\" }", "path: \"/{x}\"", overlaps},
		{"path: \"/{x}\", params: { x: \"[0-9]+\" }", "path: /free", ""},
		{"path: \"/{x}\", params: { x: \"[a-z]+\" }", "path: /free", overlaps},
		{"path: \"/{x}\", except: [/free]", "path: /free", ""},
		{"path: \"/{x}\", except: [/free]", "path: /paid", overlaps},
	} {
		t.Run(row.first+" then "+row.second, func(t *testing.T) {
			head := "upstream: { url: http://a }\nrules:\n  - { name: first, action: guard, match: { " + row.first + " } }\n"
			src := head + "  - { name: second, action: guard, match: { " + row.second + " } }\n"
			if row.want != "" {
				before, path, _ := strings.Cut(row.second, "path: ")
				src = head + "  - { name: second, action: guard, match: { " + before + "path: «" + path + " } }\n"
			}
			expectWarning(t, src, row.want)
		})
	}
}

func TestWarningsSayWhereARuleIsOff(t *testing.T) {
	src := "upstream: { url: http://a }\nrules:\n" +
		"  - { name: first, action: guard, mode: off, match: { path: \"/{r...}\" } }\n" +
		"  - { name: second, action: guard, match: { path: «/a } }\n"
	expectWarning(t, src, "lets it through ungated, its mode being off")
}

func TestWarningsStandBesideFaults(t *testing.T) {
	src := strings.Replace(base, "rules:\n", "rules:\n  - { name: broken, match: { path: /b }, pool: nowhere, slot: path:x }\n", 1)
	_, faults := Load("c.yaml", []byte(src), LoadOptions{})
	if len(faults.Errors()) != 2 || len(faults.Warnings()) == 0 {
		t.Errorf("got:\n%s", faults)
	}
	for _, w := range faults.Warnings() {
		if strings.Contains(w.Message, "broken") {
			t.Errorf("a warning about a rule with faults: %s", w)
		}
	}
}
