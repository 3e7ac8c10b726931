package rules

import (
	"slices"
	"testing"
)

func TestValidateIssue(t *testing.T) {
	for _, row := range []struct{ section, text, want string }{
		{"name:", "idempotency: { «issue: { cookie: sg_rid } }", "issue.on: is required: write the page that hands the id out, such as GET /lessons/{lesson}"},
		{"name:", "idempotency: { «issue: { on: \"GET /lessons/{lesson}\" } }", "issue.cookie: is required: write the name of the cookie"},
		{"name:", "idempotency: { issue: { on: \"GET /lessons/{lesson}\", cookie: «\"a b\" } }", "is not the name of a cookie"},
		{"name:", "idempotency: { issue: { cookie: sg_rid, on: «\"POST /lessons/{lesson}\" } }", "write GET and a path"},
		{"name:", "idempotency: { issue: { cookie: sg_rid, on: «\"/lessons/{lesson}\" } }", "write GET and a path"},
		{"name:", "idempotency: { issue: { cookie: sg_rid, on: «\"get /lessons/{lesson}\" } }", "write GET and a path"},
		{"name:", "idempotency: { issue: { cookie: sg_rid, on: «\"GET lessons/{lesson}\" } }", "must begin with /"},
		{"name:", "idempotency: { issue: { cookie: sg_rid, on: «\"GET /lessons/:lesson\" } }", "write {name} for :name"},
		{"name:", "idempotency: { issue: { cookie: sg_rid, on: «\"GET /lessons//{lesson}\" } }", "write /lessons/{lesson}"},
		{"name:", "idempotency: { issue: { cookie: sg_rid, on: «\"GET /lessons/{lessen}\" } }", "the page does not tell the slot, whose path:lesson needs a variable {lesson}: write one such as GET /lessons/{lesson} or GET /book?lesson={lesson}"},
		{"name:", "idempotency: { issue: { cookie: sg_rid, on: «\"GET /book?lesson=7\" } }", "a query is written with variables"},
		{"name:", "idempotency: { issue: { cookie: sg_rid, on: «\"GET /book?={lesson}\" } }", "a query is written with variables"},
		{"name:", "idempotency: { issue: { cookie: sg_rid, on: «\"GET /lessons/{lesson}?l={lesson}\" } }", "stands twice"},
		{"name:", "slot: json:/data/lesson_id\nidempotency: { issue: { cookie: sg_rid, on: «\"GET /lessons/{lesson}\" } }", "whose json:/data/lesson_id needs a variable {lesson_id}"},
		{"name:", "idempotency: { ttl: «9m, issue: { cookie: sg_rid, on: \"GET /lessons/{lesson}\" } }", "write 10m or more"},
		{"name:", "subject: «cookie:sg_rid\nidempotency: { issue: { cookie: sg_rid, on: \"GET /lessons/{lesson}\" } }", "is the gate's own, set by issue: only key can name it"},
		{"name:", "idempotency: { «scope: [cookie:session, cookie:sg_rid], issue: { cookie: sg_rid, on: \"GET /lessons/{lesson}\" } }", "is the gate's own"},
	} {
		t.Run(row.text, func(t *testing.T) { expectFault(t, edit(t, row.section, row.text), row.want, LoadOptions{}) })
	}
	expectFault(t, edit(t, "name:", "action: cancel\nsubject: json:/s\nidempotency: { «issue: { cookie: a, on: \"GET /{lesson}\" } }"), "has no place with action cancel", LoadOptions{})

	const guard = `upstream: { url: "http://127.0.0.1:9000" }
rules:
  - name: a
    match: { path: /a }
    action: guard
`
	expectFault(t, guard+"    idempotency: { «issue: { cookie: a, on: \"GET /x\" } }\n", "needs the rule's slot", LoadOptions{})
	const other = `  - name: b
    match: { path: /b }
    action: guard
    slot: const:x
    idempotency: { group: GROUP, issue: { cookie: sg, on: "GET /x" } }
`
	expectFault(t, guard+"    idempotency: { key: «cookie:sg, group: g }\n"+other, "set by the issue of rules of another group or pool", LoadOptions{})
	load(t, guard+"    idempotency: { key: cookie:sg, group: GROUP }\n"+other, LoadOptions{})
	expectFault(t, guard+"    subject: «cookie:sg\n"+other, "is the gate's own", LoadOptions{})
}

func TestValidateDerive(t *testing.T) {
	for _, row := range []struct{ section, text, want string }{
		{"name:", "idempotency: { derive: «10s }", "needs the rule's subject, else equal requests of two people are taken for one"},
		{"name:", "subject: json:/s\nidempotency: { derive: «10s, required: true }", "has no place with required: true"},
		{"name:", "subject: json:/s\nidempotency: { derive: «999ms }", "write 1s or more"},
		{"name:", "subject: json:/s\nidempotency: { derive: «25h }", "is more than ttl, which is 24h"},
	} {
		t.Run(row.text, func(t *testing.T) { expectFault(t, edit(t, row.section, row.text), row.want, LoadOptions{}) })
	}
	load(t, edit(t, "name:", "subject: json:/s\nidempotency: { derive: 10s, issue: { cookie: __Host-sg, on: \"GET /lessons/{lesson}\" } }"), LoadOptions{})
}

// TestTheIssuedCookieIsAKey: it need not be listed, and is where it is listed.
func TestTheIssuedCookieIsAKey(t *testing.T) {
	for key, want := range map[string]Extractors{
		"":                                       extractors("header:Idempotency-Key", "cookie:sg"),
		"key: [], ":                              extractors("cookie:sg"),
		"key: header:X, ":                        extractors("header:X", "cookie:sg"),
		"key: [cookie:sg, header:X, cookie:b], ": extractors("cookie:sg", "header:X", "cookie:b"),
	} {
		cfg := load(t, edit(t, "name:", "idempotency: { "+key+"issue: { cookie: sg, on: \"GET /lessons/{lesson}\" } }"), LoadOptions{})
		if got := cfg.Rules[0].Idempotency.Key; !slices.Equal(got, want) {
			t.Errorf("%q gives %v, want %v", key, got, want)
		}
	}
	if len(defaultKey) != 1 {
		t.Errorf("the default has become %v", defaultKey)
	}
}

func TestWarningsOfIssue(t *testing.T) {
	const page = `on: "GET /lessons/{lesson}"`
	for _, row := range []struct{ idempotency, more, want string }{
		{"«idempotency: { unknown: reject, issue: { cookie: sg, " + page + " } }", "", "name what tells people apart"},
		{"idempotency: { unknown: reject, «scope: [header:Authorization, header:cookie], issue: { cookie: sg, " + page + " } }", "", "name what tells people apart"},
		{"idempotency: { unknown: reject, scope: cookie:session, issue: { cookie: sg, " + page + " } }", "", ""},
		{"idempotency: { unknown: reject, scope: cookie:session, issue: { cookie: «__Host-sg, " + page + " } }", "", "over https only"},
		{"idempotency: { unknown: reject, scope: cookie:session, issue: { cookie: __Secure-sg, " + page + " } }", "server: { trusted_proxies: [10.0.0.0/8] }\n", ""},
		{"idempotency: { unknown: reject, derive: 10s }", "", ""},
	} {
		t.Run(row.idempotency, func(t *testing.T) {
			expectWarning(t, quiet+"    subject: json:/s\n    "+row.idempotency+"\n"+row.more, row.want)
		})
	}
}
