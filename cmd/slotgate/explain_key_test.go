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

// layerOf is what the layer of that name does with a request to book a lesson.
func layerOf(t *testing.T, layer, idempotency string, fields ...string) string {
	t.Helper()
	config, faults := rules.Load("gate.yaml", []byte(`
upstream: { url: "http://127.0.0.1:9" }
pools:
  lessons:
    one_per_subject: true
    capacity: { http: { path: "/lessons/{slot}", value: json:/left }, bookings: { path: "/lessons/{slot}/bookings/{subject}" } }
rules:
  - name: book-lesson
    match: { methods: [POST], path: "/lessons/{lesson}/book" }
    pool: lessons
    slot: path:lesson
    subject: form:student
    idempotency: `+idempotency+`
`), rules.LoadOptions{})
	if config == nil {
		t.Fatal(faults)
	}
	raw := "POST /lessons/7/book HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 9\r\n" +
		strings.Join(append(fields, "", ""), "\r\n") + "student=a"
	e, err := explain(config, []byte(raw), netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range e.Layers {
		if l.Layer == layer {
			return l.Does
		}
	}
	return ""
}

// TestExplainPromisesAReplayOnlyWhereTheGateGivesOne: contract section 3, duplicate.
func TestExplainPromisesAReplayOnlyWhereTheGateGivesOne(t *testing.T) {
	const replay, duplicate = "gets the first one's answer; ", "gets 409 duplicate"
	for _, row := range []struct {
		key, field, want string
	}{
		{"fifteen-chars-1", "X: y", duplicate},
		{"sixteen-chars--1", "X: y", replay},
		{"fifteen-chars-1", "Authorization: Bearer x", replay},
		{"fifteen-chars-1", "Cookie: session=x", replay},
	} {
		got := layerOf(t, "key", "{ unknown: reject }", "Idempotency-Key: "+row.key, row.field)
		if !strings.Contains(got, row.want) || strings.Contains(got, replay) == strings.Contains(got, duplicate) {
			t.Errorf("%s and %s: %q, want %q", row.key, row.field, got, row.want)
		}
	}
	if got := layerOf(t, "key", "{ derive: 10s }"); !strings.Contains(got, duplicate) || strings.Contains(got, "first one's answer") {
		t.Errorf("a derived key of nobody: %q", got)
	}
	if got := layerOf(t, "key", "{ derive: 10s }", "Cookie: session=x"); !strings.Contains(got, "first one's answer") {
		t.Errorf("a derived key: %q", got)
	}
}

func TestExplainTellsOfAProbe(t *testing.T) {
	const asks = "truth is asked whether the subject has the slot"
	for _, field := range []string{"X: y", "Idempotency-Key: sixteen-chars--1"} {
		if got := layerOf(t, "probe", "{ unknown: probe }", field); !strings.Contains(got, asks) {
			t.Errorf("%s: %q", field, got)
		}
		if got := layerOf(t, "probe", "{ unknown: reject }", field); got != "" {
			t.Errorf("%s, without probe: %q", field, got)
		}
	}
	if got := layerOf(t, "key", "{ unknown: probe }", "Idempotency-Key: sixteen-chars--1"); !strings.Contains(got, "409 outcome-unknown until a probe finds out") {
		t.Errorf("%q", got)
	}
}
