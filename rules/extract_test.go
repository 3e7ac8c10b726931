package rules

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
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

func TestExtractJSON(t *testing.T) {
	cases := map[*Request]string{}
	for body, want := range map[string]string{
		`{"slot_id":"S1"}`: `"S1"`,
		` {"x":[1,{"slot_id":2}],"slot_id" : "S1"} ` + "\n": `"S1"`,
		`{"slot_id":"S\/1"}`:                              `"S/1"`,
		`{"slot_id":"\u0053\u00e9\ud83d\ude00"}`:          `"Sé😀"`,
		`{"\u0073lot_id":"S1"}`:                           `"S1"`,
		`{"slot_id":" S1 "}`:                              `" S1 "`,
		`{"slot_id":7}`:                                   `"7"`,
		`{"slot_id":7.0}`:                                 `"7"`,
		`{"slot_id":1e3}`:                                 `"1000"`,
		`{"slot_id":1000.0}`:                              `"1000"`,
		`{"slot_id":10E-1}`:                               `"1"`,
		`{"slot_id":-0}`:                                  `"0"`,
		`{"slot_id":-1.50}`:                               `"-1.5"`,
		`{"slot_id":0.001e1}`:                             `"0.01"`,
		`{"slot_id":18446744073709551617}`:                `"18446744073709551617"`,
		`{"slot_id":9007199254740993.0}`:                  `"9007199254740993"`,
		`{"slot_id":1e999999999}`:                         "unidentified",
		`{"slot_id":1e-999999999999999999999}`:            "unidentified",
		`{"slot_id":1e1100}`:                              "unidentified",
		`{"slot_id":null}`:                                "unidentified",
		`{"slot_id":true}`:                                "unidentified",
		`{"slot_id":{"id":1}}`:                            "unidentified",
		`{"slot_id":["S1"]}`:                              "unidentified",
		`{"slot_id":""}`:                                  "unidentified",
		`{"slot_id":"` + strings.Repeat("x", 1024) + `"}`: `"` + strings.Repeat("x", 1024) + `"`,
		`{"slot_id":"` + strings.Repeat("x", 1025) + `"}`: "unidentified",
		`{}`: "unidentified",
		`{"items":[{"slot_id":"S1"},{"slot_id":"S2"}]}`: "unidentified",
		`[{"slot_id":"S1"},{"slot_id":"S2"}]`:           "unidentified",
		`"S1"`:                                          "unidentified",
		`7`:                                             "unidentified",
		``:                                              "unidentified",
		// Repeated, in any spelling, whatever the values.
		`{"slot_id":"S1","slot_id":"S2"}`:      "ambiguous",
		`{"slot_id":"S1","slot_id":"S1"}`:      "ambiguous",
		`{"slot_id":"S1","\u0073lot_id":"S2"}`: "ambiguous",
		`{"slot_id":"S1","Slot_ID":"S2"}`:      "ambiguous",
		`{"SLOT_ID":"S2","slot_id":"S1"}`:      "ambiguous",
		`{"Slot_id":"S1"}`:                     "ambiguous",
		`{"ſlot_id":"S1"}`:                     "ambiguous",
		// Elsewhere a repetition is not the gate's business.
		`{"slot_id":"S1","x":{"a":1,"a":2},"y":1,"y":2}`: `"S1"`,
		// Not the one JSON text in UTF-8 that the label promises.
		"\ufeff" + `{"slot_id":"S1"}`:   "ambiguous",
		`{"slot_id":"S1"} {}`:           "ambiguous",
		`{"slot_id":"S1"}x`:             "ambiguous",
		`{"slot_id":"S1"`:               "ambiguous",
		`{"slot_id":"S1",}`:             "ambiguous",
		`{'slot_id':'S1'}`:              "ambiguous",
		`{slot_id:"S1"}`:                "ambiguous",
		`{"slot_id":"S1"/**/}`:          "ambiguous",
		`{"slot_id":01}`:                "ambiguous",
		`{"slot_id":NaN}`:               "ambiguous",
		"{\"slot_id\":\"S1\xff\"}":      "ambiguous",
		"{\"slot_id\":\"S\t1\"}":        "ambiguous",
		`{"slot_id":"S1\ud800"}`:        "ambiguous",
		`{"slot_id":"S1","x":"\udc00"}`: "ambiguous",
		"{\x00\"\x00}\x00":              "ambiguous",
		`slot_id=S1`:                    "ambiguous",
		strings.Repeat("[", 20000):      "ambiguous",
	} {
		cases[testRequest("POST /b", body, jsonType)] = want
	}
	checkSlots(t, slotFrom("json:/slot_id"), cases)
}

func TestExtractJSONPointers(t *testing.T) {
	for _, c := range []struct{ pointer, body, want string }{
		{"/booking/slot_id", `{"booking":{"slot_id":"S1"}}`, `"S1"`},
		{"/booking/slot_id", `{"booking":"S1"}`, "unidentified"},
		{"/booking/slot_id", `{"booking":{"slot_id":"S1"},"booking":{"slot_id":"S2"}}`, "ambiguous"},
		{"/booking/slot_id", `{"booking":{"slot_id":"S1"},"Booking":1}`, "ambiguous"},
		{"/booking/slot_id", `{"booking":{"slot_id":"S1","SLOT_ID":1}}`, "ambiguous"},
		{"/booking/slot_id", `{"slot_id":1,"Slot_id":2,"booking":{"slot_id":"S1"}}`, `"S1"`},
		{"/a~1b/m~0n/", `{"a/b":{"m~n":{"":"S1"}}}`, `"S1"`},
		{"/items/0/slot_id", `{"items":[{"slot_id":"S1"}]}`, `"S1"`},
		{"/items/0/slot_id", `{"items":[{"slot_id":"S1"},{"slot_id":"S2"}]}`, "unidentified"},
		{"/items/0/slot_id", `{"items":[{"slot_id":"S1","slot_id":"S1"}]}`, "ambiguous"},
		{"/items/0/slot_id", `{"items":[]}`, "unidentified"},
		{"/items/00/slot_id", `{"items":[{"slot_id":"S1"}]}`, "unidentified"},
		{"/items/-/slot_id", `{"items":[{"slot_id":"S1"}]}`, "unidentified"},
		{"/0", `["S1"]`, `"S1"`},
		{"/0", `{"0":"S1"}`, `"S1"`},
		{"", `"S1"`, `"S1"`},
		{"", `7.0`, `"7"`},
		{"", `{}`, "unidentified"},
	} {
		checkSlots(t, slotFrom("json:"+c.pointer), map[*Request]string{testRequest("POST /b", c.body, jsonType): c.want})
	}
	// An array is read whole when every element of it is.
	both := slotFrom("json:/pair/0", "json:/pair/1")
	checkSlots(t, both, map[*Request]string{
		testRequest("POST /b", `{"pair":["A","B"]}`, jsonType):     `"|1:A|1:B"`,
		testRequest("POST /b", `{"pair":["A","B","C"]}`, jsonType): "unidentified",
		testRequest("POST /b", `{"pair":["A"]}`, jsonType):         "unidentified",
	})
	// A pointer and one below it.
	nested := slotFrom("json:/a", "json:/a/b")
	checkSlots(t, nested, map[*Request]string{testRequest("POST /b", `{"a":{"b":1}}`, jsonType): "unidentified"})
}

func TestExtractContentType(t *testing.T) {
	body := `{"slot_id":"S1"}`
	cases := map[*Request]string{
		testRequest("POST /b", body):                                       "ambiguous",
		testRequest("POST /b", body, jsonType, "Content-Type: text/plain"): "ambiguous",
		testRequest("POST /b", body, jsonType, jsonType):                   `"S1"`,
		testRequest("POST /b", body, jsonType, "Content_Type: text/json"):  "ambiguous",
		testRequest("POST /b", body, formType):                             "ambiguous",
		testRequest("POST /b", "a=1", formType):                            "unidentified",
	}
	for label, want := range map[string]string{
		"application/json":                               `"S1"`,
		"application/json; charset=utf-8":                `"S1"`,
		"application/json;charset=UTF-8":                 `"S1"`,
		`Application/JSON; charset="UTF-8"`:              `"S1"`,
		"application/json; charset=us-ascii":             `"S1"`,
		"text/json":                                      `"S1"`,
		"application/vnd.api+json; version=1":            `"S1"`,
		"application/json; charset=utf-16":               "unsupported",
		"application/json; charset=gbk":                  "unsupported",
		"application/json; charset=utf-8; charset=utf-7": "ambiguous",
		"application/json; charset*=utf-8''gbk":          "ambiguous",
		"text/plain, application/json":                   "ambiguous",
		"application/json; charset":                      "ambiguous",
		"json":                                           "ambiguous",
		"text/plain":                                     "ambiguous",
		"application/xml":                                "ambiguous",
		"multipart/form-data":                            "ambiguous",
		"":                                               "ambiguous",
	} {
		cases[testRequest("POST /b", body, "Content-Type: "+label)] = want
	}
	checkSlots(t, slotFrom("json:/slot_id"), cases)

	asJSON := func(rc *RuleConfig) { rc.Slot, rc.BodyAs = extractors("json:/slot_id"), "json" }
	checkSlots(t, asJSON, map[*Request]string{
		testRequest("POST /b", body, "Content-Type: text/plain"):                      `"S1"`,
		testRequest("POST /b", body):                                                  `"S1"`,
		testRequest("POST /b", body, formType):                                        `"S1"`,
		testRequest("POST /b", body, "Content-Type: text/plain; charset=utf-7"):       "unsupported",
		testRequest("POST /b", body, "Content-Type: text/plain", "Content-Type: x/y"): "ambiguous",
	})
	asForm := func(rc *RuleConfig) { rc.Slot, rc.BodyAs = extractors("form:slot_id"), "form" }
	checkSlots(t, asForm, map[*Request]string{
		testRequest("POST /b", "slot_id=S1"):                             `"S1"`,
		testRequest("POST /b", "slot_id=S1", "Content-Type: text/plain"): `"S1"`,
		testRequest("POST /b", "--b\r\nContent-Disposition: form-data; name=slot_id\r\n\r\nS1\r\n--b--", "Content-Type: multipart/form-data; boundary=b"): `"S1"`,
	})
}

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(text))
	w.Close()
	return b.String()
}

func deflated(text string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	w.Write([]byte(text))
	w.Close()
	return b.String()
}

func TestExtractContentEncoding(t *testing.T) {
	body := `{"slot_id":"S1"}`
	bomb := gzipped(`{"slot_id":"S1","pad":"` + strings.Repeat("x", 1<<20) + `"}`)
	cases := map[*Request]string{}
	for _, c := range []struct{ coding, body, want string }{
		{"identity", body, `"S1"`},
		{"gzip", gzipped(body), `"S1"`},
		{"x-GZIP", gzipped(body), `"S1"`},
		{"deflate", deflated(body), `"S1"`},
		{"gzip", bomb, "too-large"},
		{"gzip", body, "ambiguous"},
		{"deflate", body, "ambiguous"},
		{"gzip", gzipped(body)[:20], "ambiguous"},
		{"gzip", gzipped(body) + "x", "ambiguous"},
		{"gzip", gzipped(`{"slot_id":`) + gzipped(`"S1"}`), "ambiguous"},
		{"deflate", deflated(body) + "x", "ambiguous"},
		{"gzip, gzip", gzipped(gzipped(body)), "unsupported"},
		{"gzip, identity", gzipped(body), "unsupported"},
		{"br", body, "unsupported"},
		{"gzip", "", "unidentified"},
	} {
		cases[testRequest("POST /b", c.body, jsonType, "Content-Encoding: "+c.coding)] = c.want
	}
	cases[testRequest("POST /b", gzipped(body), jsonType, "Content-Encoding: gzip", "Content-Encoding: gzip")] = "unsupported"
	cases[testRequest("POST /b", gzipped(body), jsonType, "Content-Encoding: gzip", "Content-Encoding: br")] = "ambiguous"
	checkSlots(t, slotFrom("json:/slot_id"), cases)
}

func TestExtractQuery(t *testing.T) {
	cases := map[*Request]string{}
	for query, want := range map[string]string{
		"slot_id=S1":                                `"S1"`,
		"a=1&&slot_id=S1&":                          `"S1"`,
		"slot%5Fid=%531":                            `"S1"`,
		"slot_id=A+B":                               `"A B"`,
		"slot_id=A%20B":                             `"A B"`,
		"slot_id=A%2BB":                             `"A+B"`,
		"slot_id=S1%26slot_id%3DS2":                 `"S1&slot_id=S2"`,
		"slot_id=a=b":                               `"a=b"`,
		"slot_id=S1%3Bx":                            `"S1;x"`,
		"slot_id=caf%C3%A9":                         `"café"`,
		"slot_id=":                                  "unidentified",
		"slot_id":                                   "unidentified",
		"":                                          "unidentified",
		"other=1":                                   "unidentified",
		"slot_id=S1&slot_id=S1":                     `"S1"`,
		"slot_id=S1&slot_id=%53%31":                 `"S1"`,
		"slot_id=S1&slot_id=S2":                     "ambiguous",
		"slot_id=S1&slot_id=":                       "ambiguous",
		"slot_id=S1&x;slot_id=S2":                   "ambiguous",
		"slot_id=S1;slot_id=S2":                     "ambiguous",
		"slot_id=S1;x=2":                            "ambiguous",
		"slot_id=S1&x=1;y=2":                        `"S1"`,
		"slot_id=S1&slot.id=S2":                     "ambiguous",
		"slot_id=S1&slot.id=S1":                     `"S1"`,
		"slot.id=S1":                                "ambiguous",
		"slot_id=S1&slot+id=S2":                     "ambiguous",
		"slot_id=S1&+slot_id=S2":                    "ambiguous",
		"slot_id=S1&slot%5Bid=S2":                   "ambiguous",
		"slot_id=S1&slot_id[]=S2":                   "ambiguous",
		"slot_id=S1&slot_id[0][x]=S2":               "ambiguous",
		"slot_id=S1&SLOT_ID=S2":                     "ambiguous",
		"SLOT_ID=S1":                                "ambiguous",
		"slot_id=S1&slot_id%00=S2":                  "ambiguous",
		"slot_id=S1&slot_idx=S2":                    `"S1"`,
		"slot_id=S1&slot=S2":                        `"S1"`,
		"slot_id=%zz":                               "ambiguous",
		"slot_id=%ff":                               "ambiguous",
		"slot_id=S1&sl%ot=2":                        "ambiguous",
		"slot_id=S1&x=%zz":                          `"S1"`,
		"slot_id=S1" + strings.Repeat("&a=1", 999):  `"S1"`,
		"slot_id=S1" + strings.Repeat("&a=1", 1000): "ambiguous",
	} {
		cases[testRequest("POST /b?"+query, "")] = want
	}
	cases[testRequest("POST /b?slot_id=S1", `{"slot_id":"S2"}`, jsonType)] = `"S1"`
	cases[testRequest("POST /b?slot_id=S1", "slot_id=S2", jsonType)] = `"S1"`
	cases[testRequest("POST /b?slot_id=S1", "slot_id=S2", "Content-Type: text/plain")] = `"S1"`
	cases[testRequest("POST /b?slot_id=S1", "slot_id=S1", formType)] = `"S1"`
	cases[testRequest("POST /b?slot_id=S1", "a=1", formType)] = `"S1"`
	cases[testRequest("POST /b?slot_id=S1", "slot_id=S2", formType)] = "ambiguous"
	cases[testRequest("POST /b?slot_id=S1", "slot_id=S2")] = "ambiguous"
	cases[testRequest("POST /b?slot_id=S1", "slot_id=S2", formType+"; charset=utf-7")] = "unsupported"
	cases[testRequest("POST /b?slot_id=S1", gzipped("slot_id=S2"), formType, "Content-Encoding: gzip")] = "ambiguous"
	cases[testRequest("POST /b?slot_id=S1", "x", "Content-Type: multipart/form-data, boundary=b")] = "ambiguous"
	checkSlots(t, slotFrom("query:slot_id"), cases)
	checkSlots(t, slotFrom("query:booking[slot]"), map[*Request]string{
		testRequest("POST /b?booking[slot]=S1", ""):                   `"S1"`,
		testRequest("POST /b?booking%5Bslot%5D=S1", ""):               `"S1"`,
		testRequest("POST /b?booking[slot]=S1&booking[x]=2", ""):      `"S1"`,
		testRequest("POST /b?booking[slot]=S1&booking=2", ""):         "ambiguous",
		testRequest("POST /b?booking[slot]=S1&booking[slot][]=2", ""): "ambiguous",
		testRequest("POST /b?booking[slot]=S1&booking[Slot]=2", ""):   "ambiguous",
		testRequest("POST /b?booking[slot]=S1&booking_slot=2", ""):    `"S1"`,
	})
}

func TestExtractForm(t *testing.T) {
	cases := map[*Request]string{}
	for body, want := range map[string]string{
		"slot_id=S1":                            `"S1"`,
		"slot_id=S1&slot_id=S1":                 `"S1"`,
		"slot_id=A+B%21":                        `"A B!"`,
		"slot_id=S1&slot_id=S2":                 "ambiguous",
		"slot_id=S1&slot.id=S2":                 "ambiguous",
		"slot_id=S1&slot_id[]=S2":               "ambiguous",
		"slot_id%00=S2&slot_id=S1":              "ambiguous",
		"slot_id=S1;slot_id=S2":                 "ambiguous",
		"slot_id=%":                             "ambiguous",
		"slot_id=":                              "unidentified",
		"x=1":                                   "unidentified",
		"":                                      "unidentified",
		"slot_id=S1&_method=put":                `"S1"`,
		"slot_id=S1&_method=a b":                "ambiguous",
		"slot_id=S1&_method=PUT&_method=DELETE": "ambiguous",
	} {
		cases[testRequest("POST /b", body, formType)] = want
	}
	cases[testRequest("POST /b?slot_id=S2", "slot_id=S1", formType)] = "ambiguous"
	cases[testRequest("POST /b?slot_id=S2", "", formType)] = "ambiguous"
	cases[testRequest("POST /b?slot_id=S1", "slot_id=S1", formType)] = `"S1"`
	cases[testRequest("POST /b", "slot_id=S1")] = "ambiguous"
	cases[testRequest("POST /b", "slot_id=S1", "Content-Type: text/plain")] = "ambiguous"
	cases[testRequest("POST /b", `{"slot_id":"S1"}`, jsonType)] = "unidentified"
	cases[testRequest("POST /b", "slot_id=S1", formType+"; charset=ibm037")] = "unsupported"
	cases[testRequest("POST /b", gzipped("slot_id=S1"), formType, "Content-Encoding: gzip")] = `"S1"`
	checkSlots(t, slotFrom("form:slot_id"), cases)
}

func TestExtractFormMethodOfAnotherRule(t *testing.T) {
	post, put := testRule("post", "POST", "/b/{x}"), testRule("put", "PUT", "/b/{x}")
	post.Slot = extractors("form:slot_id")
	s := testSet(t, post, put)
	for body, want := range map[string]RefusalKind{
		"slot_id=S1":                "",
		"slot_id=S1&_method=POST":   "",
		"slot_id=S1&_method=DELETE": "",
		"slot_id=S1&_method=put":    RefuseAmbiguous,
		"slot_id=S1&_Method=put":    RefuseAmbiguous,
	} {
		_, refusal := admit(s, testRequest("POST /b/1", body, formType))
		if got := kindOf(refusal); got != want {
			t.Errorf("%q: %v; want %q", body, refusal, want)
		}
	}
}

func kindOf(r *Refusal) RefusalKind {
	if r == nil {
		return ""
	}
	return r.Kind
}

func TestExtractMultipart(t *testing.T) {
	field := func(name, value string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
	}
	raw := func(header, value string) string { return "--b\r\n" + header + "\r\n\r\n" + value + "\r\n" }
	cases := map[*Request]string{}
	for body, want := range map[string]string{
		field("slot_id", "S1") + "--b--\r\n":                                `"S1"`,
		field("slot_id", "S1") + "--b--":                                    `"S1"`,
		field("x", "1") + field("slot_id", "é\r\n2") + "--b--":              "\"é\\r\\n2\"",
		field("slot_id", "S1") + field("slot_id", "S1") + "--b--":           `"S1"`,
		field("slot_id", "S1") + field("slot_id", "S2") + "--b--":           "ambiguous",
		field("slot_id", "S1") + field("slot.id", "S2") + "--b--":           "ambiguous",
		field("slot_id", "S1") + field("slot_id[]", "S2") + "--b--":         "ambiguous",
		field("slot_id", "") + "--b--":                                      "unidentified",
		"--b--":                                                             "unidentified",
		field("slot_id", "S\xff") + "--b--":                                 "ambiguous",
		raw(`content-disposition: form-data; name=slot_id`, "S1") + "--b--": `"S1"`,
		raw("Content-Disposition: form-data; name=slot_id\r\nContent-Type: text/plain; charset=utf-8", "S1") + "--b--":                         `"S1"`,
		raw("Content-Disposition: form-data; name=slot_id\r\nContent-Type: text/plain; charset=utf-16", "S1") + "--b--":                        "ambiguous",
		raw("Content-Disposition: form-data; name=x; filename=a\r\nContent-Type: image/png", "\x89\x00") + field("slot_id", "S1") + "--b--":    `"S1"`,
		raw(`Content-Disposition: form-data; name="slot_id"; filename="a"`, "S1") + "--b--":                                                    "ambiguous",
		raw(`Content-Disposition: form-data; name="slot_id"; filename=""`, "S1") + "--b--":                                                     "ambiguous",
		raw(`Content-Disposition: form-data; name="x"; name="slot_id"`, "S1") + "--b--":                                                        "ambiguous",
		raw(`Content-Disposition: form-data; name*=utf-8''slot_id`, "S1") + "--b--":                                                            "ambiguous",
		raw(`Content-Disposition: form-data; name="slot\_id"`, "S1") + "--b--":                                                                 "ambiguous",
		raw(`Content-Disposition: attachment; name="slot_id"`, "S1") + "--b--":                                                                 "ambiguous",
		raw("Content-Disposition: form-data; name=a\r\nContent-Disposition: form-data; name=slot_id", "S1") + "--b--":                          "ambiguous",
		raw("Content-Disposition: form-data; name=slot_id\r\nContent-Transfer-Encoding: base64", "UzE=") + "--b--":                             "ambiguous",
		raw("Content-Disposition: form-data; name=x\r\nContent-Type: multipart/mixed; boundary=c", "--c--") + field("slot_id", "S1") + "--b--": "ambiguous",
		raw("Content-Disposition: form-data;\r\n name=slot_id", "S1") + "--b--":                                                                "ambiguous",
		raw("Content-Disposition : form-data; name=slot_id", "S1") + "--b--":                                                                   "ambiguous",
		// Only what all servers frame alike.
		field("slot_id", "S1"):                                        "ambiguous",
		field("slot_id", "S1") + "--b":                                "ambiguous",
		field("slot_id", "S1") + "--b--x":                             "ambiguous",
		field("slot_id", "S1") + "--b--\r\n" + field("slot_id", "S2"): "ambiguous",
		"\r\n" + field("slot_id", "S1") + "--b--":                     "ambiguous",
		"--b x\r\nContent-Disposition: form-data; name=\"slot_id\"\r\n\r\nS2\r\n" + field("slot_id", "S1") + "--b--": "ambiguous",
		"preamble\r\n" + field("slot_id", "S1") + "--b--":                                                            "ambiguous",
		strings.ReplaceAll(field("slot_id", "S1")+"--b--", "\r\n", "\n"):                                             "ambiguous",
		field("slot_id", "S1\n--b\r\n") + "--b--":                                                                    "ambiguous",
		field("slot_id", "S1\r\n--bc") + "--b--":                                                                     "ambiguous",
		"--b\r\n\r\nS1\r\n--b--":                                                                                     "ambiguous",
		"--b\r\nS1\r\n--b--":                                                                                         "ambiguous",
		field("slot_id", "S1") + strings.Repeat(field("a", "1"), 999) + "--b--":                                      `"S1"`,
		field("slot_id", "S1") + strings.Repeat(field("a", "1"), 1000) + "--b--":                                     "ambiguous",
		"": "unidentified",
	} {
		cases[testRequest("POST /b", body, "Content-Type: multipart/form-data; boundary=b")] = want
	}
	spaced := strings.ReplaceAll(field("slot_id", "S1")+"--b--", "--b", "--b b")
	cases[testRequest("POST /b", spaced, `Content-Type: multipart/form-data; boundary="b b"`)] = `"S1"`
	body := field("slot_id", "S1") + "--b--"
	for _, label := range []string{"multipart/form-data, boundary=b", "multipart/form-data", "multipart/form-data; boundary=", `multipart/form-data; boundary="b "`, "multipart/form-data; boundary=b; boundary=c", "multipart/form-data; boundary=" + strings.Repeat("b", 71), `multipart/form-data; boundary="b;"`, "multipart/mixed; boundary=b"} {
		cases[testRequest("POST /b", body, "Content-Type: "+label)] = "ambiguous"
	}
	checkSlots(t, slotFrom("form:slot_id"), cases)
}

func TestExtractHeadersAndCookies(t *testing.T) {
	checkSlots(t, slotFrom("header:X-User-Id"), map[*Request]string{
		testRequest("POST /b", "", "X-User-Id: alice"):                     `"alice"`,
		testRequest("POST /b", "", "x-user-id: alice"):                     `"alice"`,
		testRequest("POST /b", "", "X-User-Id: alice", "x-user-id: alice"): `"alice"`,
		testRequest("POST /b", "", "X-User-Id: alice", "X-User-Id: bob"):   "ambiguous",
		testRequest("POST /b", "", "X-User-Id: alice", "X_User_Id: bob"):   "ambiguous",
		testRequest("POST /b", "", "X-User-Id: alice", "X.User-Id: alice"): `"alice"`,
		testRequest("POST /b", "", "X_User_Id: bob"):                       "ambiguous",
		testRequest("POST /b", "", "X_User_Id: bob", "X-User_Id: alice"):   "ambiguous",
		testRequest("POST /b", "", "X-User-Id:"):                           "unidentified",
		testRequest("POST /b", "", "X-User: alice"):                        "unidentified",
		testRequest("POST /b", "", "X-User-Id: \xe9"):                      "ambiguous",
	})
	checkSlots(t, slotFrom("cookie:sid"), map[*Request]string{
		testRequest("POST /b", "", "Cookie: sid=alice"):                                      `"alice"`,
		testRequest("POST /b", "", "Cookie: a=1; sid=alice;b=2"):                             `"alice"`,
		testRequest("POST /b", "", `Cookie: sid="alice"`):                                    `"alice"`,
		testRequest("POST /b", "", "Cookie: sid=%61lice"):                                    `"alice"`,
		testRequest("POST /b", "", "Cookie: sid=a+b%"):                                       `"a+b%"`,
		testRequest("POST /b", "", "Cookie: sid=%ff"):                                        `"%ff"`,
		testRequest("POST /b", "", "Cookie: sid=a=b"):                                        `"a=b"`,
		testRequest("POST /b", "", "Cookie: sid=alice; sid=alice"):                           `"alice"`,
		testRequest("POST /b", "", "Cookie: sid=alice; sid=bob"):                             "ambiguous",
		testRequest("POST /b", "", "Cookie: sid=alice; SID=bob"):                             "ambiguous",
		testRequest("POST /b", "", "Cookie: sid=alice; sid[]=bob"):                           "ambiguous",
		testRequest("POST /b", "", "Cookie: sid=alice", "Cookie: sid=bob"):                   "ambiguous",
		testRequest("POST /b", "", "Cookie: sid=alice", "Cookie: x=1"):                       "ambiguous",
		testRequest("POST /b", "", "Cookie: s.i.d=x; sid=alice; __Host-sid=bob; $Version=1"): `"alice"`,
		testRequest("POST /b", "", "Cookie: sid"):                                            "unidentified",
		testRequest("POST /b", ""):                                                           "unidentified",
	})
	checkSlots(t, slotFrom("cookie:s_id"), map[*Request]string{
		testRequest("POST /b", "", "Cookie: s_id=a; s.id=b"): "ambiguous",
		testRequest("POST /b", "", "Cookie: s_id=a; s.id=a"): `"a"`,
	})
	checkSlots(t, slotFrom("ip:"), map[*Request]string{testRequest("POST /b", ""): `"192.0.2.7"`, {Method: "POST", Path: "/b"}: "unidentified"})
}

func TestExtractAsAndCase(t *testing.T) {
	cases := map[*Request]string{}
	for value, want := range map[string]string{
		`7`: `"7"`, `"7"`: `"7"`, `7.0`: `"7"`, `0`: `"0"`, `70000000000000000000000`: `"70000000000000000000000"`,
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
		testRequest("POST /b", `{"id":"007"}`, jsonType): `"007"`,
		testRequest("POST /b", `{"id":"aB"}`, jsonType):  `"aB"`,
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
