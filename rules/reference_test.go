package rules

import (
	"strings"
	"testing"
)

func reference(t testing.TB, from string, resp *Response) string {
	t.Helper()
	rc := testRule("r", "POST", "/b")
	if from != "" {
		rc.Reference = extractors(from)
	}
	rc.Outcomes = []OutcomeConfig{{When: WhenConfig{JSON: map[string]Scalar{"/code": {ScalarNumber, "0"}}}, Is: Booked}}
	return testSet(t, rc).Rules[0].ExtractReference(resp)
}

func TestExtractReferenceFromJSON(t *testing.T) {
	for body, want := range map[string]string{
		`{"data":{"id":"B-17"}}`:                               "B-17",
		"\ufeff" + `{"data":{"id":"B-17"}}`:                    "B-17",
		`{"data":{"id":"\u5ea7/1"}}`:                           "座/1",
		`{"data":{"id":17}}`:                                   "17",
		`{"data":{"id":1.70e1}}`:                               "17",
		`{"data":{"id":9007199254740993}}`:                     "9007199254740993",
		`{"data":{"id":12345678901234567890123}}`:              "12345678901234567890123",
		`{"data":{"id":"|x"}}`:                                 "|2:|x",
		`{"data":{"id":"` + strings.Repeat("a", 1024) + `"}}`:  strings.Repeat("a", 1024),
		`{"data":{"id":"` + strings.Repeat("a", 1025) + `"}}`:  "",
		`{"data":{"id":"|` + strings.Repeat("a", 1020) + `"}}`: "",
		`{"data":{"id":1e999999999}}`:                          "",
		`{"data":{"id":""}}`:                                   "",
		`{"data":{"id":"a\u0000b"}}`:                           "",
		`{"data":{"id":true}}`:                                 "",
		`{"data":{"id":null}}`:                                 "",
		`{"data":{"id":{"n":1}}}`:                              "",
		`{"data":{"id":[1]}}`:                                  "",
		`{"data":{}}`:                                          "",
		`{"data":{"id":1,"id":2}}`:                             "",
		`{"data":{"id":1,"ID":2}}`:                             "",
		`{"data":{"Id":1}}`:                                    "",
		`[]`:                                                   "",
		`{"data":{"id":1}} x`:                                  "",
		`<html>`:                                               "",
		``:                                                     "",
	} {
		if got := reference(t, "json:/data/id", response(201, body)); got != want {
			t.Errorf("%.60q gives %q, want %q", body, got, want)
		}
	}
	if got := reference(t, "json:/code", response(201, `{"code":0}`)); got != "0" {
		t.Errorf("a pointer that outcomes use too gives %q", got)
	}
	if got := reference(t, "", response(201, `{"code":0}`)); got != "" {
		t.Errorf("a rule without reference gives %q", got)
	}
}

func TestExtractReferenceFromHeader(t *testing.T) {
	for _, row := range []struct {
		header []string
		want   string
	}{
		{[]string{"x-booking-id: B-17"}, "B-17"},
		{[]string{"X-Booking-Id: 017", "Via: a"}, "017"},
		{[]string{"X-Booking-Id: a", "X-Booking-Id: a"}, "a"},
		{[]string{"X-Booking-Id: a", "X-Booking-Id: b"}, ""},
		{[]string{"X-Booking-Id: "}, ""},
		{[]string{"X-Booking-Id: \xff"}, ""},
		{[]string{"X-Booking-Id: " + strings.Repeat("a", 1025)}, ""},
		{[]string{"X-Booking: a"}, ""},
		{nil, ""},
	} {
		if got := reference(t, "header:X-Booking-Id", response(201, "", row.header...)); got != row.want {
			t.Errorf("%.40q gives %q, want %q", row.header, got, row.want)
		}
	}
}

func TestExtractReferenceAsAndCase(t *testing.T) {
	for _, row := range []struct{ from, body, want string }{
		{"integer json:/id", `{"id":"17"}`, "17"},
		{"integer json:/id", `{"id":"017"}`, ""},
		{"fold json:/id", `{"id":"B-Ä"}`, foldCase("B-Ä")},
	} {
		if got := reference(t, row.from, response(201, row.body)); got != row.want {
			t.Errorf("%s of %s gives %q, want %q", row.from, row.body, got, row.want)
		}
	}
}

func TestExtractReferenceInflates(t *testing.T) {
	body := func(blanks int) string { return `{"id":` + strings.Repeat(" ", blanks) + `17}` }
	for coding, pack := range map[string]func(string) string{"gzip": gzipped, "deflate": deflated} {
		if got := reference(t, "json:/id", response(201, pack(body(1)), "Content-Encoding: "+coding)); got != "17" {
			t.Errorf("%s gives %q", coding, got)
		}
		if got := reference(t, "json:/id", response(201, pack(body(maxInspected)), "Content-Encoding: "+coding)); got != "" {
			t.Errorf("%s: more than the bound gives %q", coding, got)
		}
	}
	if got := reference(t, "json:/id", response(201, body(1), "Content-Encoding: br")); got != "" {
		t.Errorf("br gives %q", got)
	}
}

// TestHoldRefIsTheReference: what a book answer says is found by what a cancel names.
func TestHoldRefIsTheReference(t *testing.T) {
	for _, row := range []struct{ answer, path, body string }{
		{`{"id":"B-17"}`, "/bookings/B-17", `{"id":"B-17"}`},
		{`{"id":17}`, "/bookings/17", `{"id":17.0}`},
		{`{"id":"|x"}`, "/bookings/%7Cx", `{"id":"|x"}`},
		{`{"id":"座"}`, "/bookings/%E5%BA%A7", `{"id":"\u5ea7"}`},
	} {
		want := reference(t, "json:/id", response(201, row.answer))
		for _, from := range []string{"path:booking", "json:/id"} {
			got, refusal := holdRef(t, from, testRequest("POST "+row.path, row.body, jsonType))
			if refusal != nil || got.HoldRef != want || want == "" {
				t.Errorf("%s of %s and %s is %q %v, want %q", from, row.path, row.body, got.HoldRef, refusal, want)
			}
		}
	}
}

func holdRef(t testing.TB, from string, req *Request) (Facts, *Refusal) {
	t.Helper()
	rc := testRule("cancel", "POST", "/bookings/{booking}")
	rc.Action, rc.Slot, rc.Hold = "cancel", nil, extractors(from)
	return admit(testSet(t, rc), req)
}

func TestHoldRefRefusals(t *testing.T) {
	for _, row := range []struct {
		from string
		req  *Request
		want RefusalKind
	}{
		{"json:/id", testRequest("POST /bookings/1", `{}`, jsonType), RefuseUnidentified},
		{"json:/id", testRequest("POST /bookings/1", `{"id":""}`, jsonType), RefuseUnidentified},
		{"json:/id", testRequest("POST /bookings/1", `{"id":true}`, jsonType), RefuseUnidentified},
		{"json:/id", testRequest("POST /bookings/1", `{"id":"`+strings.Repeat("a", 1025)+`"}`, jsonType), RefuseUnidentified},
		{"json:/id", testRequest("POST /bookings/1", `{"id":1,"id":2}`, jsonType), RefuseAmbiguous},
		{"json:/id", testRequest("POST /bookings/1", `{"id":"a\u0000"}`, jsonType), RefuseAmbiguous},
		{"query:id", testRequest("POST /bookings/1?id=1&id=2", ""), RefuseAmbiguous},
		{"integer path:booking", testRequest("POST /bookings/01", ""), RefuseUnidentified},
		{"header:X-Id", testRequest("POST /bookings/1", "", "X-Id: 1", "X_Id: 2"), RefuseAmbiguous},
	} {
		got, refusal := holdRef(t, row.from, row.req)
		if kindOf(refusal) != row.want || got.HoldRef != "" {
			t.Errorf("%s of %s %s gives %q %v, want %s", row.from, row.req.Path, row.req.Body, got.HoldRef, refusal, row.want)
		}
	}
}

// TestHoldRefIsInTheFingerprint: a key that was used for one booking's cancel is not
// good for another's.
func TestHoldRefIsInTheFingerprint(t *testing.T) {
	printOf := func(id string) [32]byte {
		rc := testRule("cancel", "POST", "/cancel")
		rc.Action, rc.Slot, rc.Hold = "cancel", nil, extractors("header:X-Id")
		rc.Idempotency = &IdempotencyConfig{Fingerprint: Fingerprint{Mode: FingerprintNone}}
		f, refusal := admit(testSet(t, rc), testRequest("POST /cancel", "", "X-Id: "+id))
		if refusal != nil {
			t.Fatal(refusal)
		}
		return f.Fingerprint
	}
	first, again, other := printOf("1"), printOf("1"), printOf("2")
	if first != again || first == other {
		t.Error("the fingerprint does not tell two bookings apart")
	}
}
