package rules

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"strings"
	"testing"
)

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
