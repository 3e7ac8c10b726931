package rules

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// admit runs a request through Match and Extract.
func admit(s *Set, r *Request) (Facts, *Refusal) {
	m, refusal := s.Match(r)
	if refusal != nil {
		return Facts{}, refusal
	}
	if m.Rule == nil {
		return Facts{}, &Refusal{Kind: "no rule"}
	}
	return m.Rule.Extract(r, &m, 1<<20)
}

// extractOne reads one request with a rule that has the given slot, or changes more.
func extractOne(t testing.TB, change func(*RuleConfig), r *Request) (Facts, *Refusal) {
	t.Helper()
	rc := testRule("book", "POST", "/b")
	rc.Pool = "learned"
	change(rc)
	return admit(testSet(t, rc), r)
}

func slotFrom(texts ...string) func(*RuleConfig) {
	return func(rc *RuleConfig) { rc.Slot = extractors(texts...) }
}

// checkSlots reads requests and compares the slot, quoted, or the refusal's kind.
func checkSlots(t *testing.T, change func(*RuleConfig), cases map[*Request]string) {
	t.Helper()
	for r, want := range cases {
		f, refusal := extractOne(t, change, r)
		got := fmt.Sprintf("%q", f.Slot)
		if refusal != nil {
			got = string(refusal.Kind)
		}
		if got != want {
			t.Errorf("%s %s?%s %v %q: slot %s (%v); want %s", r.Method, r.Path, r.Query, r.Header, r.Body, got, refusal, want)
		}
	}
}

const (
	jsonType = "Content-Type: application/json"
	formType = "Content-Type: application/x-www-form-urlencoded"
)

func kindOf(r *Refusal) RefusalKind {
	if r == nil {
		return ""
	}
	return r.Kind
}

func TestExtractAsAndCase(t *testing.T) {
	cases := map[*Request]string{}
	for value, want := range map[string]string{
		`7`: `"7"`, `"7"`: `"7"`, `7.0`: `"7"`, `0`: `"0"`, `9007199254740993`: `"9007199254740993"`, `9223372036854775807`: `"9223372036854775807"`, `1e22`: `"10000000000000000000000"`,
		// To a backend that counts in doubles these are other numbers.
		`70000000000000000000000`: "ambiguous", `18446744073709551617`: "ambiguous", `9007199254740993.0`: "ambiguous", `7.00000000000000000001`: "ambiguous", `1e400`: "ambiguous",
		`"007"`: "unidentified", `"+7"`: "unidentified", `" 7"`: "unidentified", `"0x7"`: "unidentified", `"7.0"`: "unidentified",
		`-7`: "unidentified", `7.5`: "unidentified", `"٧"`: "unidentified", `""`: "unidentified",
	} {
		cases[testRequest("POST /b", `{"id":`+value+`}`, jsonType)] = want
	}
	checkSlots(t, slotFrom("integer json:/id"), cases)
	checkSlots(t, slotFrom("fold json:/id"), map[*Request]string{
		testRequest("POST /b", `{"id":"ÀbC-Ωſ\u212a"}`, jsonType): `"àbc-ωsk"`,
	})
	checkSlots(t, slotFrom("json:/id"), map[*Request]string{
		testRequest("POST /b", `{"id":"007"}`, jsonType):     `"007"`,
		testRequest("POST /b", `{"id":"aB"}`, jsonType):      `"aB"`,
		testRequest("POST /b", `{"id":"a\u0000"}`, jsonType): "ambiguous",
	})
}

func TestExtractUnits(t *testing.T) {
	for _, c := range []struct {
		pool, value string
		want        int64
		refused     RefusalKind
	}{
		{"lessons", `2`, 2, ""}, {"lessons", `"2"`, 2, ""}, {"lessons", `2.0`, 2, ""}, {"lessons", `6`, 6, ""},
		{"lessons", `7`, 0, RefuseUnidentified}, {"learned", `7`, 7, ""},
		{"learned", `1e9`, 1_000_000_000, ""}, {"learned", `1000000001`, 0, RefuseUnidentified},
		{"learned", `99999999999999999999`, 0, RefuseUnidentified}, {"learned", `1e400`, 0, RefuseUnidentified},
		{"learned", `0`, 0, RefuseUnidentified}, {"learned", `-1`, 0, RefuseUnidentified}, {"learned", `1.5`, 0, RefuseUnidentified},
		{"learned", `"1e2"`, 0, RefuseUnidentified}, {"learned", `"01"`, 0, RefuseUnidentified}, {"learned", `""`, 0, RefuseUnidentified},
		{"learned", `null`, 0, RefuseUnidentified}, {"learned", `true`, 0, RefuseUnidentified}, {"learned", `[2]`, 0, RefuseUnidentified},
		{"learned", `2,"Seats":3`, 0, RefuseAmbiguous},
	} {
		rc := testRule("r", "POST", "/b")
		rc.Pool, rc.Units = c.pool, extractors("json:/seats")
		f, refusal := admit(testSet(t, rc), testRequest("POST /b", `{"seats":`+c.value+`}`, jsonType))
		if f.Units != c.want || kindOf(refusal) != c.refused {
			t.Errorf("seats %s in %s: %d, %v; want %d, %q", c.value, c.pool, f.Units, refusal, c.want, c.refused)
		}
	}
	// A member in other letter case may be read by the backend, so one unit would be wrong.
	rc := testRule("r", "POST", "/b")
	rc.Units = extractors("json:/seats")
	if _, refusal := admit(testSet(t, rc), testRequest("POST /b", `{"Seats":5}`, jsonType)); kindOf(refusal) != RefuseAmbiguous {
		t.Errorf("Seats for seats: %v", refusal)
	}
	if _, refusal := admit(testSet(t, rc), testRequest("POST /b", `{}`, jsonType)); kindOf(refusal) != RefuseUnidentified {
		t.Errorf("no seats: %v", refusal)
	}
	if f, _ := admit(testSet(t, testRule("r", "POST", "/b")), testRequest("POST /b", "")); f.Units != 1 {
		t.Errorf("without units: %d", f.Units)
	}
}

func TestExtractLists(t *testing.T) {
	two := slotFrom("json:/a", "json:/b")
	checkSlots(t, two, map[*Request]string{
		testRequest("POST /b", `{"a":"x","b":"y"}`, jsonType):                             `"|1:x|1:y"`,
		testRequest("POST /b", `{"a":"x|1:","b":"y"}`, jsonType):                          `"|4:x|1:|1:y"`,
		testRequest("POST /b", `{"a":"x"}`, jsonType):                                     "unidentified",
		testRequest("POST /b", `{"a":"x","b":""}`, jsonType):                              "unidentified",
		testRequest("POST /b", `{"a":"`+strings.Repeat("x", 1024)+`","b":"y"}`, jsonType): "unidentified",
		testRequest("POST /b", `{"a":"`+strings.Repeat("x", 1015)+`","b":"y"}`, jsonType): "unidentified",
	})
	checkSlots(t, slotFrom("json:/a"), map[*Request]string{
		testRequest("POST /b", `{"a":"|1:x|1:y"}`, jsonType): `"|8:|1:x|1:y"`,
		testRequest("POST /b", `{"a":"1:x"}`, jsonType):      `"1:x"`,
	})
}

func TestListsNeverMeet(t *testing.T) {
	part := rapid.OneOf(rapid.StringOfN(rapid.SampledFrom([]rune("|:-12a")), 0, 6, -1), rapid.String())
	parts := rapid.SliceOfN(part, 1, 4)
	rapid.Check(t, func(t *rapid.T) {
		a, b := parts.Draw(t, "a"), parts.Draw(t, "b")
		if equal := fmt.Sprintf("%q", a) == fmt.Sprintf("%q", b); (joinParts(a) == joinParts(b)) != equal {
			t.Fatalf("%q and %q join to %q and %q", a, b, joinParts(a), joinParts(b))
		}
	})
}

// Refusals name the part that was wrong and never its value.
func TestRefusalsDoNotEcho(t *testing.T) {
	for _, r := range []*Request{
		testRequest("POST /b?q=secret&q=SECRET", `{"secret`, jsonType),
		testRequest("POST /b?q=1", `{"id":"secret","ID":"secret"}`, jsonType),
		testRequest("POST /b?q=1", `{"id":"`+strings.Repeat("secret", 300)+`"}`, jsonType),
		testRequest("POST /b?q=1", `{"id":1}`, jsonType, "Idempotency-Key: secret secret"),
		testRequest("POST /b?q=1", `{"id":1}`, "Content-Type: secret"),
		testRequest("POST /b?q=1", `{"id":1}`, jsonType, "Content-Encoding: secret"),
	} {
		_, refusal := extractOne(t, func(rc *RuleConfig) {
			rc.Slot, rc.Subject = extractors("query:q"), extractors("json:/id")
			rc.Idempotency = &IdempotencyConfig{}
		}, r)
		if refusal == nil || strings.Contains(strings.ToLower(refusal.Error()), "secret") {
			t.Errorf("%s?%s: %v", r.Path, r.Query, refusal)
		}
	}
}
