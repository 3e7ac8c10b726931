package main

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/issue"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// TestExplainKnowsIDsByTheConfiguredSecret, as running gates do.
func TestExplainKnowsIDsByTheConfiguredSecret(t *testing.T) {
	const secret = "of sixteen characters or more"
	b := issue.Binding{Cookie: "sg_rid", Group: "book-lesson", Pool: "lessons", Slot: "7"}
	cookie := b.Name() + "=" + issue.Key(store.DeriveKey(secret, "one-time ids")).Seal(b, issue.NewID(time.Now()))
	for _, row := range []struct{ store, lesson, source string }{
		{`kind: redis, secret: "` + secret + `"`, "7", "issued"},
		{`kind: redis, secret: "` + secret + `"`, "8", ""},
		{`kind: redis, secret: "another of that length"`, "7", ""},
		{"kind: redis", "7", ""}, // it stands in Redis alone
		{`kind: memory, secret: "` + secret + `"`, "7", ""},
	} {
		config, faults := rules.Load("gate.yaml", []byte(`
upstream: { url: "http://127.0.0.1:9" }
store: { `+row.store+` }
pools: { lessons: { capacity: 6 } }
rules:
  - name: book-lesson
    match: { methods: [POST], path: "/lessons/{lesson}/book" }
    pool: lessons
    slot: path:lesson
    subject: form:student
    idempotency: { issue: { on: "GET /lessons/{lesson}", cookie: sg_rid } }
`), rules.LoadOptions{})
		if config == nil {
			t.Fatal(faults)
		}
		raw := fmt.Sprintf("POST /lessons/%s/book HTTP/1.1\r\nHost: a\r\nCookie: %s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 9\r\n\r\nstudent=a", row.lesson, cookie)
		e, err := explain(config, []byte(raw), netip.MustParseAddr("127.0.0.1"))
		if err != nil {
			t.Fatal(err)
		}
		if e.explainedFacts == nil || e.KeySource != row.source || (row.source != "") != strings.HasPrefix(e.Key, "issued ") || e.Scoped {
			t.Errorf("%+v: %+v", row, e.explainedFacts)
		}
	}
}
