package rules

import (
	"strings"
	"testing"
)

// printed is the fingerprint of a request under a rule of one mode.
func printed(t *testing.T, fp Fingerprint, r *Request) [32]byte {
	t.Helper()
	rc := testRule("book", "POST", "/b/{x}")
	rc.Match.Methods = []string{"POST", "PUT"}
	rc.Pool = "learned"
	rc.Slot, rc.Subject, rc.Units = extractors("path:x"), extractors("header:X-User"), extractors("header:X-Units")
	rc.Idempotency = &IdempotencyConfig{Fingerprint: fp}
	if r.Method == "" {
		t.Fatal("no request")
	}
	r.Header = append(r.Header, Field{"X-User", "u"}, Field{"X-Units", "1"})
	f, refusal := admit(testSet(t, rc), r)
	if refusal != nil {
		t.Fatalf("%s %s %q: %v", r.Method, r.Path, r.Body, refusal)
	}
	return f.Fingerprint
}

const (
	multipartA = "Content-Type: multipart/form-data; boundary=aaa"
	multipartB = "Content-Type: multipart/form-data; boundary=bbb"
)

func multipartBody(boundary, name, filename, kind, value string) string {
	disposition := `form-data; name="` + name + `"`
	if filename != "" {
		disposition += `; filename="` + filename + `"`
	}
	head := "Content-Disposition: " + disposition
	if kind != "" {
		head += "\r\nContent-Type: " + kind
	}
	return "--" + boundary + "\r\n" + head + "\r\n\r\n" + value + "\r\n--" + boundary + "--"
}

func TestFingerprintAuto(t *testing.T) {
	post := func(body string, header ...string) *Request { return testRequest("POST /b/1", body, header...) }
	same := [][2]*Request{
		{post(""), post("")},
		{post(`{"a":1,"b":[1,2],"c":{"d":null,"e":true}}`, jsonType), post(" {\"c\" : {\"e\":true,\"d\":null},\n\"b\":[1.0,20e-1],\"\\u0061\":1} ", jsonType+"; charset=utf-8")},
		{post(`{"a":"é/\u2028"}`, jsonType), post(`{"a":"\u00e9\/`+"\u2028"+`"}`, jsonType)},
		{post(`[0,-0,0e5,100,1e400]`, jsonType), post(`[0.0,0,-0.0,1E+2,10e399]`, jsonType)},
		{post(`{"a":1}`, jsonType), post(gzipped(`{"a":1.0}`), jsonType, "Content-Encoding: gzip")},
		{post(`{"a":1,"b":2,"a":3}`, jsonType), post(`{"b":2,"a":1,"a":3}`, jsonType)},
		{post("a=1&b=%41+c", formType), post("a=1&&%62=A%20c&", formType)},
		{post(multipartBody("aaa", "f", "x.png", "image/png", "\x89"), multipartA), post(multipartBody("bbb", "f", "x.png", "image/png", "\x89"), multipartB)},
		{testRequest("POST /b/1?a=1&b=2&a=3", ""), testRequest("POST /b/1?b=%32&a=1&a=3", "")},
		{testRequest("POST /b/1", ""), testRequest("POST /%62//1", "")},
		{post(`{"a":`, jsonType), post(`{"a":`, jsonType)},
		{post("x", "Content-Type: application/json; charset=gbk"), post("x", "Content-Type: application/json; charset=gbk")},
	}
	for _, c := range same {
		if printed(t, Fingerprint{}, c[0]) != printed(t, Fingerprint{}, c[1]) {
			t.Errorf("%q and %q print differently", c[0].Body, c[1].Body)
		}
	}
	different := []*Request{
		post(""),
		post("{}", jsonType), post("[]", jsonType), post("[[]]", jsonType), post("[{}]", jsonType),
		post(`{"a":1}`, jsonType), post(`{"a":"1"}`, jsonType), post(`{"a":10}`, jsonType), post(`{"a":0.1}`, jsonType), post(`{"a":-1}`, jsonType),
		post(`{"a":null}`, jsonType), post(`{"a":true}`, jsonType), post(`{"a":false}`, jsonType), post(`{"a":[1]}`, jsonType),
		post(`{"A":1}`, jsonType), post(`{"a":1,"b":1}`, jsonType), post(`{"a":1,"a":1}`, jsonType),
		post(`[1,2]`, jsonType), post(`[2,1]`, jsonType), post(`[12]`, jsonType), post(`["1","2"]`, jsonType), post(`["1s1:2"]`, jsonType),
		post(`[9007199254740993]`, jsonType), post(`[9007199254740992]`, jsonType),
		post(`[1e99999999999999999999]`, jsonType), post(`[1e99999999999999999998]`, jsonType),
		post(`{"a":1`, jsonType),
		post(`{"a":1}`, "Content-Type: text/plain"), post(`{"a":1}`+" ", "Content-Type: text/plain"),
		post("a=1&b=2", formType), post("b=2&a=1", formType), post("a=1%26b=2", formType), post("a=%zz", formType),
		post(multipartBody("aaa", "f", "", "", "v"), multipartA), post(multipartBody("aaa", "f", "x", "", "v"), multipartA),
		post(multipartBody("aaa", "f", "x", "text/css", "v"), multipartA), post(multipartBody("aaa", "f", "x", "text/css", "w"), multipartA),
		post("--aaa", multipartA),
		testRequest("PUT /b/1", ""), testRequest("POST /b/2", ""), testRequest("POST /b/1/", ""),
		testRequest("POST /b/1?a=1", ""), testRequest("POST /b/1?a=2", ""), testRequest("POST /b/1?a=%zz", ""), testRequest("POST /b/1?a=1&a=2", ""), testRequest("POST /b/1?a=2&a=1", ""),
	}
	seen := map[[32]byte]*Request{}
	for _, r := range different {
		fp := printed(t, Fingerprint{}, r)
		if other := seen[fp]; other != nil {
			t.Errorf("%s %s?%s %q prints like %s %s?%s %q", r.Method, r.Path, r.Query, r.Body, other.Method, other.Path, other.Query, other.Body)
		}
		seen[fp] = r
	}
}

func TestFingerprintModes(t *testing.T) {
	list := Fingerprint{Mode: FingerprintList, Extractors: extractors("json:/a", "json:/b")}
	for _, c := range []struct {
		name  string
		fp    Fingerprint
		a, b  string
		equal bool
	}{
		{"body, other bytes", Fingerprint{Mode: FingerprintBody}, `{"a":1}`, `{"a":1 }`, false},
		{"body, same bytes", Fingerprint{Mode: FingerprintBody}, `{"a":1}`, `{"a":1}`, true},
		{"none", Fingerprint{Mode: FingerprintNone}, `{"a":1}`, `{"a":2}`, true},
		{"list, same values", list, `{"a":1,"c":2}`, `{"a":1.0}`, true},
		{"list, other values", list, `{"a":1}`, `{"a":2}`, false},
		{"list, other place", list, `{"a":1}`, `{"b":1}`, false},
	} {
		a, b := printed(t, c.fp, testRequest("POST /b/1", c.a, jsonType)), printed(t, c.fp, testRequest("POST /b/1", c.b, jsonType))
		if (a == b) != c.equal {
			t.Errorf("%s: equal is %v", c.name, a == b)
		}
	}
	a := printed(t, Fingerprint{Mode: FingerprintBody}, testRequest("POST /b/1", `{"a":1}`, jsonType))
	b := printed(t, Fingerprint{Mode: FingerprintBody}, testRequest("POST /b/1", gzipped(`{"a":1}`), jsonType, "Content-Encoding: gzip"))
	if a != b {
		t.Error("a content coding changes the fingerprint of the body")
	}
}

// What the units are held for is part of the fingerprint in every mode (H19).
func TestFingerprintAlwaysHasSlotSubjectUnitsPool(t *testing.T) {
	base := func() (*RuleConfig, *Request) {
		rc := testRule("book", "POST", "/b")
		rc.Slot, rc.Subject, rc.Units = extractors("header:X-Slot"), extractors("header:X-User"), extractors("header:X-Units")
		return rc, testRequest("POST /b", "", "X-Slot: a", "X-User: b", "X-Units: 1")
	}
	for _, mode := range []Fingerprint{{Mode: FingerprintAuto}, {Mode: FingerprintBody}, {Mode: FingerprintList, Extractors: extractors("const:x")}, {Mode: FingerprintNone}} {
		print := func(change func(*RuleConfig, *Request)) [32]byte {
			rc, r := base()
			rc.Idempotency = &IdempotencyConfig{Fingerprint: mode}
			change(rc, r)
			f, refusal := admit(testSet(t, rc), r)
			if refusal != nil {
				t.Fatal(refusal)
			}
			return f.Fingerprint
		}
		prints := [][32]byte{print(func(*RuleConfig, *Request) {})}
		for i := range 3 {
			prints = append(prints, print(func(_ *RuleConfig, r *Request) { r.Header[i].Value = "2" }))
		}
		prints = append(prints,
			print(func(rc *RuleConfig, _ *Request) { rc.Pool = "learned" }),
			print(func(_ *RuleConfig, r *Request) { r.Header[0].Value, r.Header[1].Value = "ab", "b" }),
			print(func(_ *RuleConfig, r *Request) { r.Header[0].Value, r.Header[1].Value = "a", "bb" }),
		)
		seen := map[[32]byte]int{}
		for i, p := range prints {
			if j, ok := seen[p]; ok {
				t.Errorf("mode %v: variants %d and %d print alike", mode.Mode, i, j)
			}
			seen[p] = i
		}
	}
}

// Canonical form must not let nesting multiply the work.
func TestFingerprintOfDeepText(t *testing.T) {
	deep := strings.Repeat(`{"b":0,"a":`, 9999) + `"` + strings.Repeat("x", 100_000) + `"` + strings.Repeat("}", 9999)
	if !isJSON([]byte(deep)) {
		t.Fatal("the text is not what the test is about")
	}
	d := jsonDigest{text: []byte(deep)}
	d.value()
	if cap(d.buf) > 4*len(deep) {
		t.Errorf("%d bytes of JSON need a buffer of %d", len(deep), cap(d.buf))
	}
}
