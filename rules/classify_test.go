package rules

import (
	"bytes"
	"compress/flate"
	"strings"
	"testing"
	"unicode/utf8"
)

func response(status int, body string, header ...string) *Response {
	r := testRequest("GET /", body, header...)
	return &Response{Status: status, Header: r.Header, Body: r.Body}
}

func classify(t testing.TB, action string, lines []OutcomeConfig, resp *Response) Outcome {
	t.Helper()
	rc := testRule("r", "POST", "/b")
	rc.Action, rc.Outcomes = action, lines
	return testSet(t, rc).Rules[0].Classify(resp)
}

func TestClassifyByStatus(t *testing.T) {
	for status, want := range map[int]Outcome{
		200: Booked, 201: Booked, 204: Booked, 299: Booked,
		300: Unknown, 302: Unknown, 304: Unknown, 101: Unknown, 0: Unknown, 999: Unknown,
		400: Refused, 404: Refused, 409: Refused, 429: Refused, 499: Refused,
		500: Unknown, 502: Unknown, 503: Unknown, 504: Unknown,
	} {
		if got := classify(t, "book", nil, response(status, "")); got != want {
			t.Errorf("%d: %v; want %v", status, got, want)
		}
	}
	if got := classify(t, "book", nil, response(503, "", "retry-after: 1")); got != Busy {
		t.Errorf("503 with Retry-After: %v", got)
	}
	if got := classify(t, "guard", nil, response(200, "")); got != Booked {
		t.Errorf("guard: %v", got)
	}
	for _, action := range []string{"cancel", "confirm"} {
		if got := classify(t, action, nil, response(200, "")); got != Done {
			t.Errorf("%s: %v", action, got)
		}
		if got := classify(t, action, nil, response(409, "")); got != Refused {
			t.Errorf("%s refused: %v", action, got)
		}
		if got := classify(t, action, nil, response(503, "", "Retry-After: 1")); got != Unknown {
			t.Errorf("%s, 503 with Retry-After: %v", action, got)
		}
	}
}

func TestClassifyByLines(t *testing.T) {
	scalar := func(kind ScalarKind, text string) map[string]Scalar {
		return map[string]Scalar{"/data/code": {kind, text}}
	}
	lines := []OutcomeConfig{
		{When: WhenConfig{Status: []StatusRange{{200, 200}}, JSON: scalar(ScalarNumber, "0")}, Is: Booked},
		{When: WhenConfig{JSON: scalar(ScalarNumber, "4001")}, Is: SoldOut},
		{When: WhenConfig{JSON: scalar(ScalarString, "DUP")}, Is: Duplicate},
		{When: WhenConfig{JSON: scalar(ScalarNull, "")}, Is: Busy},
		{When: WhenConfig{JSON: scalar(ScalarBool, "false")}, Is: Refused},
		{When: WhenConfig{Status: []StatusRange{{300, 399}}, Header: map[string]string{"Location": "/ok*"}}, Is: Booked},
		{When: WhenConfig{Status: []StatusRange{{301, 301}, {302, 303}}, Header: map[string]string{"Location": "/form"}}, Is: Refused},
		{When: WhenConfig{Text: "名额已满"}, Is: SoldOut},
		{When: WhenConfig{Status: []StatusRange{{200, 299}}}, Is: Unknown},
	}
	var raw bytes.Buffer
	w, _ := flate.NewWriter(&raw, 1)
	w.Write([]byte("名额已满"))
	w.Close()
	pad := strings.Repeat(" ", maxInspected)
	for _, c := range []struct {
		resp *Response
		want Outcome
	}{
		{response(200, `{"data":{"code":0}}`), Booked},
		{response(200, `{"data":{"code":0.0,"x":1}}`), Booked},
		{response(200, "\ufeff"+`{"data":{"code":0}}`), Booked},
		{response(201, `{"data":{"code":0}}`), Unknown},
		{response(200, `{"data":{"code":4001}}`), SoldOut},
		{response(500, `{"data":{"code":4.001e3}}`), SoldOut},
		{response(200, `{"data":{"code":"4001"}}`), Unknown},
		{response(200, `{"data":{"code":"DUP"}}`), Duplicate},
		{response(200, `{"data":{"code":"D\u0055P"}}`), Duplicate},
		{response(200, `{"data":{"code":null}}`), Busy},
		{response(200, `{"data":{}}`), Unknown},
		{response(200, `{"data":{"code":false}}`), Refused},
		{response(200, `{"data":{"code":true}}`), Unknown},
		{response(200, `{"data":{"code":[0]}}`), Unknown},
		{response(200, `{"data":{"code":0,"code":4001}}`), Unknown},
		{response(200, `{"data":{"code":4001}`), Unknown},
		{response(200, `<html>`), Unknown},
		{response(200, ``), Unknown},
		{response(302, "", "location: /ok/7"), Booked},
		{response(302, "", "Location: /form"), Refused},
		{response(303, "", "Location: /form?x"), Unknown},
		{response(302, "", "Location: /x", "Location: /ok"), Booked},
		{response(200, "<p>名额已满</p>"), SoldOut},
		{response(200, gzipped(`{"data":{"code":4001}}`), "Content-Encoding: gzip"), SoldOut},
		{response(200, deflated(`{"data":{"code":4001}}`), "Content-Encoding: deflate"), SoldOut},
		{response(200, raw.String(), "Content-Encoding: deflate"), SoldOut},
		{response(200, gzipped(`{"data":{"code":4001}}`)[:30], "Content-Encoding: gzip"), Unknown},
		{response(200, gzipped(`名额已满`+pad), "Content-Encoding: gzip"), Unknown},
		{response(200, `名额已满`, "Content-Encoding: br"), Unknown},
		{response(200, `名额已满`, "Content-Encoding: gzip", "Content-Encoding: gzip"), Unknown},
		{response(404, "名额"), Refused},
	} {
		if got := classify(t, "book", lines, c.resp); got != c.want {
			t.Errorf("%d %v %.60q: %v; want %v", c.resp.Status, c.resp.Header, c.resp.Body, got, c.want)
		}
	}
}

func BenchmarkClassify(b *testing.B) {
	rc := testRule("r", "POST", "/b")
	rc.Outcomes = []OutcomeConfig{
		{When: WhenConfig{JSON: map[string]Scalar{"/code": {ScalarNumber, "4001"}}}, Is: SoldOut},
		{When: WhenConfig{JSON: map[string]Scalar{"/code": {ScalarNumber, "0"}}}, Is: Booked},
	}
	r := testSet(b, rc).Rules[0]
	body := `{"code":0,"msg":"ok","data":{"booking_id":"b-12345","student":{"id":7,"name":"x"},"created_at":"2026-01-01T00:00:00Z"}}`
	for name, resp := range map[string]*Response{
		"json":        response(200, body, "Content-Type: application/json"),
		"status only": response(409, "", "Content-Type: application/json"),
		"gzip":        response(200, gzipped(body), "Content-Encoding: gzip"),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.Classify(resp)
			}
		})
	}
}

func FuzzClassify(f *testing.F) {
	rc := testRule("r", "POST", "/b")
	rc.Outcomes = []OutcomeConfig{
		{When: WhenConfig{JSON: map[string]Scalar{"/a/0": {ScalarNumber, "1"}, "": {ScalarNull, ""}}}, Is: SoldOut},
		{When: WhenConfig{JSON: map[string]Scalar{"/a/b": {ScalarString, "x"}}, Text: "x"}, Is: Duplicate},
	}
	rc.Reference = extractors("json:/a/b")
	r := testSet(f, rc).Rules[0]
	f.Add(200, "gzip", []byte(gzipped(`{"a":[1]}`)))
	f.Add(200, "deflate", []byte(deflated(`{"a":{"b":"x"}}`)))
	f.Add(503, "", []byte(`{"a":[1],"a":1e999999999999}`))
	f.Fuzz(func(t *testing.T, status int, coding string, body []byte) {
		resp := &Response{Status: status, Header: []Field{{"Content-Encoding", coding}}, Body: body}
		if got := r.Classify(resp); got != r.Classify(resp) || got == NoOutcome {
			t.Errorf("status %d, coding %q, body %q: %v", status, coding, body, got)
		}
		if got := r.ExtractReference(resp); len(got) > maxFact || !utf8.ValidString(got) {
			t.Errorf("coding %q, body %q: reference %q", coding, body, got)
		}
	})
}
