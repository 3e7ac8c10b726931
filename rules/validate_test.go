package rules

import (
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	const openssl = "make one with `openssl rand -base64 32`"
	for _, row := range []struct{ section, text, want string }{
		{"", "version: «2", "2 is too much"},
		// listeners
		{"", "server: { listen: «\"8080\" }", `write ":8080"`},
		{"", "server: { listen: «localhost }", "write host:port"},
		{"", "server: { listen: «\":99999\" }", "a number from 0 to 65535"},
		{"", "server: { listen: «\"my_host!:80\" }", "neither an IP address nor a host name"},
		{"", "server: { listen: «unix:run.sock }", "write the whole path"},
		{"", "server: { max_body: «1GiB }", "is more than max_buffered, which is 256MiB"},
		{"", "server: { cors: { origins: [«\"*\"] } }", "list the origins"},
		{"", "server: { cors: { origins: [«www.example.com] } }", "is not an origin"},
		{"", "server: { cors: { origins: [«https://www.example.com/] } }", "write https://www.example.com"},
		{"", "server: { cors: { origins: [«https://WWW.example.com] } }", "write https://www.example.com"},
		{"", "admin: { listen: «\":9901\" }", "set a token, or listen on 127.0.0.1"},
		{"", "admin: { listen: «\"0.0.0.0:9901\" }", "set a token"},
		{"", "admin: { listen: «\"[::]:9901\" }", "set a token"},
		{"", "admin: { listen: «\"10.1.2.3:9901\", token: \"\" }", "set a token"},
		{"", "admin: { listen: «\":8080\", token: t }", "is server.listen too"},
		{"", "admin: { token: «\"a b\" }", "visible ASCII without blanks"},
		// upstream
		{"upstream:", "url: «\"\"", "is empty"},
		{"upstream:", "url: «127.0.0.1:9000", "is not a URL"},
		{"upstream:", "url: «ftp://a", "must begin with http://, https:// or unix:"},
		{"upstream:", "url: «http://user:hunter2@a", "must not hold a user name or password"},
		{"upstream:", "url: «\"http://\"", "names no host"},
		{"upstream:", "url: «http://a:0", "the port must be"},
		{"upstream:", "url: «http://a:99999", "the port must be"},
		{"upstream:", "url: «http://a/?q", "must not hold a query"},
		{"upstream:", "url: «\"http://a/#f\"", "must not hold a query or fragment"},
		{"upstream:", "url: «unix:booking.sock", "write the whole path"},
		{"upstream:", "url: «http://a/base", "must not hold the path /base"},
		{"upstream:", "timeout: «0s", "0s is too little: the least is 1ms"},
		// store
		{"", "store: { kind: redis, «addresses: [] }", "write where Redis is"},
		{"", "store: { addresses: [«127.0.0.1] }", "is not host:port"},
		{"", "store: { addresses: [«\"redis://a:6379\"] }", "is not host:port"},
		{"", "store: { kind: redis, «addresses: [\"a:1\", \"b:2\"] }", "mode standalone is one server"},
		{"", "store: { kind: redis, addresses: [\"a:1\", «\"a:1\"], mode: sentinel, master_name: m }", "is listed twice"},
		{"", "«store: { kind: redis, mode: sentinel }", "is required with mode sentinel"},
		{"", "store: { kind: redis, mode: cluster, db: «1 }", "must be 0 with mode cluster"},
		{"", "store: { kind: redis, master_name: «m }", "is for mode sentinel, and mode is standalone"},
		{"", "store: { prefix: «\"a{b}\" }", "cannot begin store keys"},
		{"", "store: { prefix: «\"\" }", "cannot begin store keys"},
		{"", "store: { encrypt_key: «secret }", openssl},
		{"", "store: { encrypt_old_keys: [«\"\"] }", openssl},
		{"", "store: { db: «-1 }", "the least is 0"},
		// pools
		{"pools:", "lessons: { capacity: 6 }\n«a b: { capacity: 6 }", "cannot be a name"},
		{"lessons:", "hold_ttl: «6200ms", "6.2s is too short, it must be more than 6.2s: rule book-lesson may take 1 × (upstream.timeout 5s + max_backoff 200ms) + 1s"},
		// rules
		{"name:", "name: «book lesson", "cannot be a name"},
		{"name:", "name: «\"\"", "cannot be a name"},
		{"name:", "pool: «lesson", "there is no pool lesson, did you mean lessons?"},
		{"name:", "pool: «\"\"", "is required for action book"},
		{"name:", "slot: «\"\"", "is required for action book"},
		{"name:", "«slot: []", "is required for action book"},
		{"name:", "slot: «path:lessn", "/api/lessons/{lesson}/bookings has no variable lessn, did you mean lesson?"},
		{"name:", "slot: [const:a, «path:student]", "has no variable student: it has lesson"},
		{"name:", "subject: { from: «path:student }", "has no variable student"},
		{"name:", "idempotency: { key: [header:A, «path:key] }", "has no variable key"},
		{"name:", "idempotency: { fingerprint: [«path:key] }", "has no variable key"},
		{"name:", "idempotency: { «key: [] }", "write where the key is"},
		{"name:", "idempotency: { group: «\"a b\" }", "cannot be a name"},
		{"name:", "idempotency: { store: [booked, «unknown] }", `"unknown" is not one of booked, duplicate`},
		{"name:", "idempotency: { store: [booked, «done] }", "done has no place here"},
		{"name:", "«units: [json:/a, json:/b]", "takes one extractor"},
		{"name:", "limits: { «subject: { rate: 5/s } }", "needs the rule's subject"},
		{"name:", "limits: { «client: { burst: 5 } }", "rate: is required"},
		{"name:", "limits: { client: { rate: 5/s, burst: «0 } }", "0 is too little: the least is 1"},
		{"name:", "limits: { client: { rate: «0/s } }", "lets nothing through"},
		{"name:", "retry: { on: [«unknown] }", `"unknown" is not one of busy`},
		{"name:", "retry: { attempts: «0 }", "the least is 1"},
		{"name:", "retry: { attempts: «11 }", "the most is 10"},
		{"name:", "retry: { backoff: «1s }", "is more than max_backoff, which is 200ms"},
		{"name:", "charset: «utf-9", `"utf-9" is not a charset`},
		{"name:", "charset: «utf-16", "is not an extension of ASCII"},
		// match
		{"match:", "path: «api/lessons", `write /api/lessons`},
		{"match:", "path: «\"\"", "must begin with /"},
		{"match:", "path: «http://a/b", "is a URL"},
		{"match:", "path: «/a?b=c", "a path ends before the query"},
		{"match:", "path: «\"/x#y\"", "fragments are never sent"},
		{"match:", "path: «/lessons/:lesson", "write {name} for :name"},
		{"match:", "path: «/lessons/<lesson>", "write {name} for <name>"},
		{"match:", "path: «\"/lessons/{lesson:[0-9]+}\"", "the pattern in match.params"},
		{"match:", "path: «/lessons/*/bookings", "looks like a glob"},
		{"match:", "path: «/lessons/.*", "looks like a regular expression"},
		{"match:", "path: «\"^/lessons/[0-9]+$\"", "looks like a regular expression"},
		{"match:", "path: «/a/./b", "write /a/b"},
		{"match:", "path: «/a//b/", "write /a/b"},
		{"match:", "path: «/a/../b/{lesson}", "write /b/{lesson}"},
		{"match:", "path: «\"/a/x{lesson}\"", "a variable takes a whole segment"},
		{"match:", "path: «\"/{rest...}/a\"", "takes the rest of the path"},
		{"match:", "path: «\"/{lesson}/{lesson}\"", "stands twice"},
		{"match:", "path: «/a%2Fb", "encoded \"/\""},
		{"match:", "path: «/a%zz", "invalid % escape"},
		{"match:", "methods: [«post]", "write POST"},
		{"match:", "methods: [«\"PO ST\"]", "is not a method"},
		{"match:", "params: { lesson: «\"[0-9\" }", "not a regular expression (RE2 syntax): missing closing ]"},
		{"match:", "params: { lesson: «\"a(?=b)\" }", "not a regular expression"},
		{"match:", "params: { lesen: «\"[0-9]+\" }", "has no variable lesen, did you mean lesson?"},
		{"match:", "except: [«lessons]", "must begin with /"},
		{"match:", "except: [/a, «\"/b/(.*)\"]", "looks like a regular expression"},
		{"match:", "hosts: [«https://a.example]", "without scheme and path"},
		{"match:", "hosts: [«\"a.example:8080\"]", "write a.example"},
		{"match:", "hosts: [«\"a.*.example\"]", "a * can only stand for the first part"},
		{"match:", "headers: { \"X A\": «b }", "is not the name of a header field"},
		{"match:", "headers: { X-A: «\"b\\nc\" }", "a header field is one line"},
		{"match:", "headers: { X-A: «\" b\" }", "begins or ends with a blank"},
		{"match:", "hosts: [«a_b!c]", "is not a host name"},
		{"match:", "headers: { X-A: b, x-a: «c }", "is the same header field as X-A"},
		// outcomes
		{"name:", "outcomes: [«{ is: refused }]", "names no condition"},
		{"name:", "outcomes: [{ «when: {}, is: refused }]", "names no condition"},
		{"name:", "outcomes: [«{ when: { status: 409 } }]", "is required: say what such an answer means"},
		{"name:", "outcomes: [{ when: { status: 409 }, is: «done }]", "done is not an outcome of action book"},
		{"name:", "outcomes: [{ when: { json: { code: «1 } }, is: refused }]", "write /code"},
		{"name:", "outcomes: [{ when: { text: «\"\" }, is: refused }]", "is empty, which every body holds"},
		{"name:", "outcomes: [{ when: { «header: {} }, is: refused }]", "name a header field"},
		{"name:", "outcomes: [{ when: { «json: {} }, is: refused }]", "name a JSON Pointer"},
		{"name:", "outcomes: [{ when: { header: { \"a:b\": «c } }, is: refused }]", "is not the name of a header field"},
		// answers
		{"name:", "answers: { «soldout: { status: 200 } }", "did you mean sold_out?"},
		{"name:", "answers: { «sold-out: { status: 200 } }", "did you mean sold_out?"},
		{"name:", "answers: { «admitted: { status: 200 } }", "not a decision that the gate answers itself: write one of ambiguous"},
		{"name:", "answers: { closed: { status: «99 } }", "99 is too little"},
		{"name:", "answers: { closed: { status: «600 } }", "600 is too much"},
		{"name:", "answers: { closed: { status: 204, body: «x } }", "has no body"},
		{"name:", "answers: { closed: { content_type: «json } }", "is not a media type"},
		{"name:", "answers: { closed: { headers: { X-A: «\"b\\r\\nc\" } } }", "a header field is one line"},
		{"name:", "answers: { closed: { headers: { Content-Length: «5 } } }", "is made by the gate"},
		{"name:", "answers: { closed: { headers: { Content-Type: «a/b } } }", "write it as content_type"},
	} {
		t.Run(row.text, func(t *testing.T) {
			src := edit(t, row.section, row.text)
			expectFault(t, src, row.want, LoadOptions{})
		})
	}
}

// TestValidateAcross has faults that stand at another field than the one that was
// written.
func TestValidateAcross(t *testing.T) {
	for _, row := range []struct{ section, text, at, want string }{
		{"name:", "timeout: 30s", "  lessons:", "hold_ttl: 30s is too short, it must be more than 31.2s: rule book-lesson may take 1 × (its timeout 30s"},
		{"name:", "retry: { on: [busy], attempts: 6 }", "  lessons:", "it must be more than 32.2s: rule book-lesson may take 6 × (upstream.timeout 5s"},
		{"name:", "retry: { on: [busy], attempts: 10, max_backoff: 3650d }", "  lessons:", "is too short"},
		{"", "upstream: { url: http://a, timeout: 30s }", "  lessons:", "(upstream.timeout 30s"},
		{"lessons:", "one_per_subject: true", "  - name:", "subject: is required, since pool lessons has one_per_subject"},
		{"lessons:", "max_per_subject: 2", "  - name:", "subject: is required, since pool lessons has max_per_subject"},
		{"", "server: { listen: \"127.0.0.1:9901\" }", "upstream:", "is server.listen too"},
	} {
		t.Run(row.text, func(t *testing.T) {
			src := edit(t, row.section, row.text)
			indent := len(row.at) - len(strings.TrimLeft(row.at, " -"))
			marked := strings.Replace(src, row.at, row.at[:indent]+"«"+row.at[indent:], 1)
			expectFault(t, marked, row.want, LoadOptions{})
		})
	}
}

func TestValidateGuard(t *testing.T) {
	guard := func(lines string) string {
		src := strings.Replace(base, "    pool: lessons\n    slot: path:lesson\n", "    action: guard\n"+lines, 1)
		return strings.Replace(src, "pools:\n  lessons:\n    capacity: 6\n", "", 1)
	}
	load(t, guard(""), LoadOptions{})
	load(t, guard("    subject: json:/a\n    slot: path:lesson\n    limits: { subject: { rate: 1/s }, slot: { rate: 1/s } }\n"), LoadOptions{})
	load(t, guard("    outcomes: [{ when: { status: 200 }, is: done }]\n    idempotency: { store: [done] }\n"), LoadOptions{})
	expectFault(t, guard("    pool: «lessons\n"), "a guard takes no units: remove the pool", LoadOptions{})
	expectFault(t, guard("    units: «json:/a\n"), "a guard takes no units", LoadOptions{})
	expectFault(t, guard("    limits: { «slot: { rate: 1/s } }\n"), "needs the rule's slot", LoadOptions{})
}

// TestValidateKeepsQuiet has values near to what is refused.
func TestValidateKeepsQuiet(t *testing.T) {
	for _, row := range []struct{ section, text string }{
		{"", "server: { listen: \"127.0.0.1:0\", cors: { origins: [\"https://www.example.com:8443\"] } }"},
		{"", "server: { tls: { cert_file: \"\", key_file: \"\" }, trusted_proxies: [], forward_path: as_sent }"},
		{"", "server: { listen: \"unix:/run/a.sock\", tls: { cert_file: a, key_file: b }, trusted_proxies: [10.0.0.0/8], forward_path: normalized }"},
		{"upstream:", "url: HTTPS://a"},
		{"upstream:", "url: \"unix:/run/a.sock\""},
		{"", "admin: { listen: \"localhost:9901\" }"},
		{"", "admin: { listen: \"[::1]:9901\" }"},
		{"", "admin: { listen: \":9901\", token: s3cret }"},
		{"upstream:", "url: HTTP://backend_1.internal:9000/"},
		{"upstream:", "url: \"http://[::1]:9000\""},
		{"", "store: { kind: redis, addresses: [\"redis:6379\"], prefix: shop-1.a_b, tls: false, mode: standalone }"},
		{"", "store: { kind: redis, addresses: [\"a:1\", \"b:1\"], mode: cluster, username: gate, password: pw }"},
		{"", "store: { kind: redis, addresses: [\"a:26379\", \"b:26379\"], tls: true, mode: sentinel, master_name: m, db: 3 }"},
		{"", "store: { encrypt_key: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=, encrypt_old_keys: [AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=] }"},
		{"lessons:", "hold_ttl: 6201ms"},
		{"lessons:", "capacity: 0"},
		{"lessons:", "capacity: 9007199254740991"},
		{"lessons:", "opens_at: \"\""},
		{"name:", "retry: { on: [], attempts: 10 }"},
		{"name:", "charset: US-ASCII"},
		{"name:", "charset: gbk"},
		{"name:", "hold: \"\"\nreference: \"\"\nidempotency: { issue: {}, derive: 0s, group: other }"},
		{"name:", "passthrough: { slot: { rate: 1/s }, share: 1 }"},
		{"name:", "answers: { sold_out: { status: 200, body: '{\"code\":4001,\"msg\":\"名额已满\"}' } }"},
		{"match:", "path: /Api/Lessons/{lesson}/"},
		{"match:", "path: \"/api/{lesson}/{rest...}\""},
		{"match:", "params: { lesson: \"[0-9]{2,}\" }"},
		{"match:", "hosts: [www.example.com, \"*.example.org\", \"[::1]\"]"},
		{"match:", "methods: [M-SEARCH]"},
		{"match:", "except: [/api/lessons/free/bookings]"},
	} {
		t.Run(row.text, func(t *testing.T) { load(t, edit(t, row.section, row.text), LoadOptions{}) })
	}
}

func TestFaultsShowNoSecrets(t *testing.T) {
	for _, row := range []struct{ section, text string }{
		{"", "tracing: { otlp_endpoint: \"http://user:hunter2@a\" }"},
		{"", "tracing: { otlp_endpoint: \"http://a?token=hunter2\" }"},
		{"", "tracing: { otlp_endpoint: \"hunter2 hunter2\" }"},
		{"upstream:", "url: http://user:hunter2@a"},
		{"upstream:", "url: \"hunter2 hunter2\""},
		{"", "store: { encrypt_key: hunter2, encrypt_old_keys: [hunter2], secret: hunter2, password: [hunter2] }"},
		{"", "admin: { token: \"hunter2 \\n\" }"},
	} {
		_, faults := Load("c.yaml", []byte(edit(t, row.section, row.text)), LoadOptions{})
		if len(faults.Errors()) == 0 || strings.Contains(faults.String(), "hunter2") {
			t.Errorf("%s gives\n%s", row.text, faults)
		}
	}
}
