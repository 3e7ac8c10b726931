package rules

import (
	"testing"
	"unicode/utf8"
)

// sourcesSet has a rule for every kind of source, so that a fuzzer reaches them all.
func sourcesSet(t testing.TB) *Set {
	byJSON := testRule("json", "POST", "/json/{x}")
	byJSON.Slot, byJSON.Subject, byJSON.Units = extractors("json:/a/0", "fold json:/b"), extractors("integer json:/c"), extractors("json:/n")
	byJSON.Idempotency = &IdempotencyConfig{Key: extractors("header:K", "json:/k"), Partition: extractors("json:/p", "cookie:p")}
	byForm := testRule("form", "POST", "/form/{x}")
	byForm.Slot, byForm.Subject = extractors("form:a", "form:b[c]"), extractors("query:q")
	byForm.Idempotency = &IdempotencyConfig{Key: extractors("form:k")}
	byHead := testRule("head", "POST", "/head/{rest...}")
	byHead.Slot, byHead.Subject = extractors("path:rest"), extractors("header:A", "cookie:c", "ip:")
	byHead.Idempotency = &IdempotencyConfig{Fingerprint: Fingerprint{Mode: FingerprintBody}}
	return testSet(t, byJSON, byForm, byHead)
}

func FuzzExtract(f *testing.F) {
	s := sourcesSet(f)
	multipart := multipartBody("b", "a", "", "", "1")
	f.Add("POST", "/json/1", "", "application/json", "", "A", "1", []byte(`{"a":["x"],"b":"Y","c":7,"n":2,"k":"key","p":1e3}`))
	f.Add("POST", "/json/1", "", "application/json", "gzip", "K", `"q"`, []byte(gzipped(`{"a":["x"],"b":1.50,"c":7,"n":1}`)))
	f.Add("POST", "/form/1", "q=1", "application/x-www-form-urlencoded", "", "A", "1", []byte("a=1&b%5Bc%5D=2&k=+&_method=put"))
	f.Add("POST", "/form/1", "q=1;x&q=%zz", "multipart/form-data; boundary=b", "", "Content-Type", "x", []byte(multipart))
	f.Add("POST", "/head/a//%2e%2e/b;x", "_method=PUT", "text/plain", "deflate", "Cookie", "c=%41; c=A", []byte(deflated("x")))
	f.Fuzz(func(t *testing.T, method, path, query, contentType, coding, name, value string, body []byte) {
		r := &Request{Method: method, Path: path, Query: query, Host: "h", Body: body, Header: []Field{
			{"Content-Type", contentType}, {"Content-Encoding", coding}, {"A", "a"}, {"Cookie", "c=1"}, {name, value},
		}}
		facts, refusal := admit(s, r)
		if again, refusedAgain := admit(s, r); again != facts || kindOf(refusal) != kindOf(refusedAgain) {
			t.Fatalf("two readings differ: %+v %v, %+v %v", facts, refusal, again, refusedAgain)
		}
		if refusal != nil {
			if facts != (Facts{}) || refusal.Detail == "" && refusal.Kind != "no rule" || !utf8.ValidString(refusal.Detail) {
				t.Fatalf("refused with %+v, %v", facts, refusal)
			}
			return
		}
		for _, text := range []string{facts.Slot, facts.Subject} {
			if text == "" || len(text) > maxFact || !utf8.ValidString(text) {
				t.Fatalf("a fact is %q", text)
			}
		}
		if facts.Units < 1 || facts.Units > 6 || facts.Key != "" && !isKey(facts.Key) || facts.Group == "" {
			t.Fatalf("facts are %+v", facts)
		}
	})
}

func BenchmarkExtract(b *testing.B) {
	rule := func(change func(*RuleConfig)) *Rule {
		rc := testRule("book", "POST", "/api/lessons/{lesson}/bookings")
		rc.Slot, rc.Subject = extractors("path:lesson"), extractors("json:/student_id")
		rc.Idempotency = &IdempotencyConfig{Key: extractors("header:Idempotency-Key", "json:/request_id")}
		change(rc)
		return testSet(b, rc).Rules[0]
	}
	header := []string{"Accept: application/json", "User-Agent: bench", "Authorization: Bearer abcdefghijklmnopqrstuvwxyz", "Idempotency-Key: 5f1c0b7e-8a55-4a8e-9d3c-0c1f2f3a4b5c"}
	body := `{"student_id":12345,"lesson":"7","note":"first come","guardian":{"name":"Ann","phone":"+49 30 1234567"},"seats":1}`
	for name, c := range map[string]struct {
		rule *Rule
		r    *Request
	}{
		"path, json, header key":   {rule(func(*RuleConfig) {}), testRequest("POST /api/lessons/7/bookings", body, append(header, jsonType)...)},
		"the same, no fingerprint": {rule(func(rc *RuleConfig) { rc.Idempotency.Fingerprint.Mode = FingerprintNone }), testRequest("POST /api/lessons/7/bookings", body, append(header, jsonType)...)},
		"path and header only":     {rule(func(rc *RuleConfig) { rc.Subject, rc.Idempotency = extractors("header:Authorization"), nil }), testRequest("POST /api/lessons/7/bookings", "", header...)},
		"form":                     {rule(func(rc *RuleConfig) { rc.Subject = extractors("form:student_id") }), testRequest("POST /api/lessons/7/bookings", "student_id=12345&note=first+come&seats=1", append(header, formType)...)},
		"multipart":                {rule(func(rc *RuleConfig) { rc.Subject = extractors("form:student_id") }), testRequest("POST /api/lessons/7/bookings", multipartBody("aaa", "student_id", "", "", "12345"), append(header, multipartA)...)},
		"path, json in gzip":       {rule(func(*RuleConfig) {}), testRequest("POST /api/lessons/7/bookings", gzipped(body), append(header, jsonType, "Content-Encoding: gzip")...)},
	} {
		m := Match{Rule: c.rule, Method: "POST", Path: c.r.Path}
		m.Params.add(Param{"lesson", "7"})
		if _, refusal := c.rule.Extract(c.r, &m, 1<<20); refusal != nil {
			b.Fatal(name, refusal)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.rule.Extract(c.r, &m, 1<<20)
			}
		})
	}
}
