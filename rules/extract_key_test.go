package rules

import (
	"strings"
	"testing"
)

func TestExtractKey(t *testing.T) {
	long := strings.Repeat("k", 255)
	for _, c := range []struct {
		request *Request
		want    string
	}{
		{testRequest("POST /b", "", "Idempotency-Key: abc"), "abc"},
		{testRequest("POST /b", "", `Idempotency-Key: "abc"`), "abc"},
		{testRequest("POST /b", "", `idempotency-key: "a\"b\\c"`), `a"b\c`},
		{testRequest("POST /b", "", "Idempotency-Key: "+long), long},
		{testRequest("POST /b", "", `Idempotency-Key: "`+long+`"`), long},
		{testRequest("POST /b", `{"request_id":"r1"}`, jsonType), "r1"},
		{testRequest("POST /b", `{"request_id":12.0}`, jsonType), "12"},
		{testRequest("POST /b", `{"request_id":"\"r1\""}`, jsonType), `"r1"`},
		{testRequest("POST /b", `{"request_id":"r1"}`, jsonType, "Idempotency-Key: abc"), "abc"},
		{testRequest("POST /b", `{"request_id":null}`, jsonType), "key-missing"},
		{testRequest("POST /b", `{}`, jsonType), "key-missing"},
		{testRequest("POST /b", ""), "key-missing"},
		{testRequest("POST /b", "a=1", formType), "key-missing"},
		{testRequest("POST /b", "", "Idempotency-Key:"), "key-invalid"},
		{testRequest("POST /b", "", `Idempotency-Key: ""`), "key-invalid"},
		{testRequest("POST /b", "", `Idempotency-Key: "abc`), "key-invalid"},
		{testRequest("POST /b", "", `Idempotency-Key: "abc"x`), "key-invalid"},
		{testRequest("POST /b", "", `Idempotency-Key: "abc";a=1`), "key-invalid"},
		{testRequest("POST /b", "", `Idempotency-Key: "a c"`), "key-invalid"},
		{testRequest("POST /b", "", `Idempotency-Key: "a\c"`), "key-invalid"},
		{testRequest("POST /b", "", "Idempotency-Key: a c"), "key-invalid"},
		{testRequest("POST /b", "", "Idempotency-Key: a\x01b"), "key-invalid"},
		{testRequest("POST /b", "", "Idempotency-Key: é"), "key-invalid"},
		{testRequest("POST /b", "", "Idempotency-Key: "+long+"k"), "key-invalid"},
		{testRequest("POST /b", "", "Idempotency-Key: k", "Idempotency-Key: k"), "key-invalid"},
		{testRequest("POST /b", "", "Idempotency-Key: k", "idempotency_key: k"), "key-invalid"},
		{testRequest("POST /b", "", "Idempotency-Key: k", "Idempotency-Key: l"), "key-invalid"},
		{testRequest("POST /b", "", "Idempotency-Key: k", "Idempotency_Key: l"), "key-invalid"},
		{testRequest("POST /b", "", "Idempotency_Key: l"), "ambiguous"},
		{testRequest("POST /b", `{"request_id":""}`, jsonType), "key-invalid"},
		{testRequest("POST /b", `{"request_id":"r 1"}`, jsonType), "key-invalid"},
		{testRequest("POST /b", `{"request_id":"a","Request_id":"b"}`, jsonType), "ambiguous"},
	} {
		f, refusal := extractOne(t, func(rc *RuleConfig) {
			rc.Idempotency = &IdempotencyConfig{Key: extractors("header:Idempotency-Key", "json:/request_id"), Required: true}
		}, c.request)
		got := f.Key
		if refusal != nil {
			got = string(refusal.Kind)
		}
		if got != c.want {
			t.Errorf("%v %q: %s (%v); want %s", c.request.Header, c.request.Body, got, refusal, c.want)
		}
		if refusal == nil && f.Group != "book" {
			t.Errorf("the group is %q", f.Group)
		}
	}
	f, refusal := extractOne(t, func(rc *RuleConfig) { rc.Idempotency = &IdempotencyConfig{Group: "g"} }, testRequest("POST /b", ""))
	if refusal != nil || f.Key != "" || f.Group != "g" {
		t.Errorf("an optional key that is missing: %+v, %v", f, refusal)
	}
	f, _ = extractOne(t, func(*RuleConfig) {}, testRequest("POST /b", "", "Idempotency-Key: k", "Authorization: a"))
	if f.Key != "" || f.Scope != "|1:a|-" {
		t.Errorf("without an idempotency block: key %q, scope %q", f.Key, f.Scope)
	}
}

func TestExtractScopeAndPartition(t *testing.T) {
	for _, c := range []struct {
		header []string
		want   string
	}{
		{nil, ""},
		{[]string{"Authorization:", "Cookie:"}, ""},
		{[]string{"Authorization: a"}, "|1:a|-"},
		{[]string{"Cookie: a"}, "|-|1:a"},
		{[]string{"Authorization: a", "Cookie: \xff"}, "|1:a|1:\xff"},
	} {
		f, refusal := extractOne(t, func(rc *RuleConfig) {
			rc.Idempotency = &IdempotencyConfig{Partition: extractors("header:Authorization", "cookie:sid", "json:/client")}
		}, testRequest("POST /b", "", c.header...))
		if refusal != nil || f.Scope != c.want {
			t.Errorf("%q: scope %q, %v; want %q", c.header, f.Scope, refusal, c.want)
		}
	}
	f, refusal := extractOne(t, func(rc *RuleConfig) {
		rc.Idempotency = &IdempotencyConfig{Scope: Extractors{}, Partition: extractors("header:X-App", "json:/client")}
	}, testRequest("POST /b", `{"client":7}`, jsonType, "Authorization: a"))
	if refusal != nil || f.Scope != "" || f.Partition != "|-|1:7" {
		t.Errorf("scope %q, partition %q, %v", f.Scope, f.Partition, refusal)
	}
	if _, refusal := extractOne(t, func(*RuleConfig) {}, testRequest("POST /b", "", "Authorization: a", "Authorization: b")); kindOf(refusal) != RefuseAmbiguous {
		t.Errorf("two credentials: %v", refusal)
	}
}
