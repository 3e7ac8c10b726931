package rules

import (
	"fmt"
	"strings"
	"testing"
)

// expectation is what the gate, with dialect any, does with a request: each letter is
// allowed. P is no rule, S a slot admitted, R a refusal.
type expectation string

// kindsCase is one case of the kinds that real systems got wrong, against the
// reference rules. Whatever is admitted is read alike by every backend of the models.
type kindsCase struct {
	want   expectation
	line   string
	body   string
	header []string
}

func (c *kindsCase) request() *Request {
	r := testRequest(c.line, c.body, c.header...)
	if !strings.Contains(strings.ToLower(strings.Join(c.header, "\n")), "user") {
		r.Header = append(r.Header, Field{"X-User-Id", "ann"})
	}
	return r
}

// lineCases makes cases of rows of "S /path" or "RS GET /path?query".
func lineCases(rows ...string) (list []kindsCase) {
	for _, row := range rows {
		want, line, _ := strings.Cut(row, " ")
		if strings.HasPrefix(line, "/") {
			line = "POST " + line
		}
		list = append(list, kindsCase{want: expectation(want), line: line})
	}
	return list
}

// bodyCases are bodies to one route, each with what is expected of it.
func bodyCases(line, label string, rows map[string]expectation) (list []kindsCase) {
	for body, want := range rows {
		list = append(list, kindsCase{want, line, body, []string{label}})
	}
	return list
}

// labelCases are one body under several labels.
func labelCases(line, body string, rows map[string]expectation) (list []kindsCase) {
	for label, want := range rows {
		list = append(list, kindsCase{want, line, body, strings.Split(label, "\n")})
	}
	return list
}

func TestKindsOfCases(t *testing.T) {
	const slot = "/api/slots/S1/reservations"
	const jsonBody = `{"slot_id":"S1"}`
	kinds := map[string][]kindsCase{
		"paths": lineCases(
			"S "+slot, "S "+slot+"/", "S "+slot+"//", "S /api/./slots/S1/reservations", "S /%2e/api/slots/S1/reservations", "S /x/%2e%2e"+slot,
			"S /API/SLOTS/S1/RESERVATIONS", "S /api;a=1;b=2/slots/S1/reservations", "S "+slot+".xml", "S "+slot+".do", "S "+slot+".PHP", "S /index.php/"+slot,
			"S /INDEX.PHP"+slot, "S /app.php"+slot, "S /index"+slot, "S "+slot+"%20", "S "+slot+";", "S /api//slots//S1//reservations", "S /../api/slots/S1/reservations",
			"S /x/..;"+slot, "S /%61%70%69/slots/S1/reservations", "S /api/slots/%E4%B8%AD/reservations", "S /api/slots/a:b@c/reservations", "S /api/slots/S1,S2/reservations",
			"S /api/slots/S1%252F2/reservations", "S "+slot+"?slot_id=S2", "S "+slot+"?_method=POST", "S /(S(x))"+slot, "S /api/slots./S1/reservations", "S /api/slots::$INDEX_ALLOCATION/S1/reservations",
			"R /api/slots/S1%00/reservations", "R "+slot+"%09", "R /api/slots/S1%c0%af2/reservations", "R /api/slots/S1%e0%80%af/reservations", "R /api/slots/%u0053/reservations",
			`R /api/slots/S1\x/reservations`, "R /api/slots/S1%5c..%5cx/reservations", "R /api/slots/..%2fx/reservations", "R /api/slots/S1%3Bv/reservations", "R /api/slots/S1;v/reservations",
			"RS /api/slots/S1/x/../reservations", "RS /api/slots/%2E%2E/reservations", "RPS "+slot+"%3Fx", "RPS "+slot+"/..;/reservations",
			"P /lessons/search", "P /api/v1.5/slots", "P /api/slotsX/S1/reservations", "P /apis/slots/S1/reservations", "P "+slot+"/extra", "P /static/app.v1.5.js",
			"P /books.php", "P /api/bookings-list", "P /reserve-info", "P /files/a%20b.txt", "P /q/a;b;c", "P /x/a%2Fb", "P /(S)/x", "P GET "+slot, "P GET /api/bookings",
		),
		"queries": lineCases(
			"S GET /reserve?slot_id=S1", "S HEAD /reserve?slot_id=S1", "S GET /reserve?slot_id=%53%31", "S GET /reserve?%73lot_id=S1", "S GET /reserve?slot_id==S1", "S GET /reserve?&&slot_id=S1&",
			"S GET /reserve?slot_id=a%2Bb", "S GET /reserve?slot_id=a+b", "S GET /reserve?utf8=%E2%9C%93&slot_id=S1&_=17", "S GET /reserve?slot_id=S1&x=a;b", "S GET /reserve?=S1&slot_id=S2",
			"S GET /reserve?slot_id=S1&slot_id=S1", "S GET /reserve?slot_id=S1%26slot_id=S2", "S GET /reserve?x[slot_id]=S2&slot_id=S1",
			"R GET /reserve", "R GET /reserve?slot_id", "R GET /reserve?slot_id=", "R GET /reserve?slot_id=S1&slot%5Fid=S2", "R GET /reserve?slot_id=S1&slot.id=S2", "R GET /reserve?slot_id=S1&slot%20id=S2",
			"R GET /reserve?slot_id=S1&slot[id=S2", "R GET /reserve?slot_id[]=S1", "R GET /reserve?slot_id[0]=S1&slot_id=S2", "R GET /reserve?SLOT_ID=S2&slot_id=S1", "R GET /reserve?slot_id=S1%00",
			"R GET /reserve?slot_id%00x=S2", "R GET /reserve?slot_id=%C0%AF", "R GET /reserve?slot_id=%", "R GET /reserve?slot_id=%u0053", "R GET /reserve?x=1;slot_id=S1", "R GET /reserve?slot_id=S1&slot_id]=S2",
			"R GET /reserve?[slot_id]=S2&slot_id=S1", "R GET /reserve?%20slot_id=S1", "R GET /reserve?slot_id=S1&slot_id[x]y=S2",
		),
		"methods": append(lineCases(
			"S PUT /api/bookings/S1", "S /api/bookings/S1?_method=PUT", "R /api/bookings/S1?_method=PUT&_method=DELETE", "R PUT /api/bookings/S1?_method=DELETE",
			"RS /api/bookings/S1?_method[]=DELETE", "R /api/bookings/S1?_method=PUT;x", "R /api/bookings/S1?_method=PUT%00", "P /api/bookings/S1?_method=PATCH",
		), append(append(
			bodyCases("POST /api/bookings/S1", formType, map[string]expectation{
				"_method=DELETE": "S", "_method=put&a=1": "S", "%5fmethod=put": "S", "a=1": "P", "_method=": "P", "_method=PUT&_method=DELETE": "R", "a=1;_method=put": "R", "_method[]=PUT": "R", "[_method]=PUT": "R"}),
			bodyCases("POST /api/bookings/S1", jsonType, map[string]expectation{
				`{"_method":"PUT"}`: "S", `{"_method":"DELETE"}`: "S", `{"\u005fmethod":"PUT"}`: "S", `{"_method":"PUT","_method":"POST"}`: "R", `{"_METHOD":"PUT"}`: "R", `{"a":{"_method":"PUT"}}`: "P", `{"_method":null}`: "P", ``: "P"})...),
			labelCases("POST /api/bookings/S1", "", map[string]expectation{
				"X-HTTP-Method-Override: put": "S", "X-HTTP-METHOD: DELETE": "S", "X-Method-Override: DELETE": "S", "x_http_method_override: DELETE": "S", "X.HTTP.Method.Override: DELETE": "S",
				"X-HTTP-Method-Override: DELETE, PUT": "R", "X-HTTP-Method-Override: G E T": "R", "X-HTTP-Method-Override:": "P", "X-HTTP-Method-Override: PUT\nX-HTTP-Method: DELETE": "R"})...)...),
		"JSON": bodyCases("POST /api/bookings", jsonType, map[string]expectation{
			jsonBody: "S", `{"slot_id": 7}`: "S", `{"slot_id":7.0}`: "S", `{"slot_id":70e-1}`: "S", `{"slot_id":-0}`: "S", `{"slot_id":1.10}`: "S", `{"slot_id":"\u0053\u0031"}`: "S", `{"slot_id":"\ud83d\ude00"}`: "S",
			`{"a":{"slot_id":"S2"},"slot_id":"S1"}`: "S", `{"slot_id":"S1","__proto__":{"slot_id":"S2"}}`: "S", `{"slot_id":" S1"}`: "S", "\r\n\t " + jsonBody + "\n": "S",
			`{"slot_id":9223372036854775809}`: "R", `{"slot_id":1e309}`: "R", `{"slot_id":NaN}`: "R", `{"slot_id":Infinity}`: "R", `{"slot_id":+7}`: "R", `{"slot_id":07}`: "R", `{"slot_id":.5}`: "R", `{"slot_id":0x7}`: "R",
			`{"slot_id":"S1","slot\u005fid":"S2"}`: "R", `{"slot_id":"S1","SLOT_ID":"S2"}`: "R", `{"Slot_Id":"S2"}`: "R", `{"\u017flot_id":"S2"}`: "R", `{"slot_id":"S\u0000"}`: "R", `{"slot_id":"\ud800"}`: "R",
			jsonBody + "x": "R", jsonBody + "\n" + jsonBody: "R", jsonBody + "\x00": "R", `{"slot_id":"S1",}`: "R", `{"slot_id":"S1" /*c*/}`: "R", "//c\n" + jsonBody: "R", `[` + jsonBody + `]`: "R",
			"": "R", " ": "R", "null": "R", `{}`: "R", `{"slot_id":["S1"]}`: "R", `{"slot_id":{"a":1}}`: "R", `{"slot_id":null}`: "R", `{"slot_id":false}`: "R", "{\"slot_id\":\"S\xff\"}": "R", "\ufeff" + jsonBody: "R",
			"\xff\xfe{\x00\"\x00s\x00": "R", "slot_id=S1": "R", "\x0b" + jsonBody: "R", strings.Repeat("[", 3000): "R", strings.Repeat(`{"a":`, 2000) + "1" + strings.Repeat("}", 2000): "R"}),
		"JSON labels": labelCases("POST /api/bookings", jsonBody, map[string]expectation{
			"Content-Type: application/json; charset=utf-8": "S", `Content-Type: application/json; charset="UTF-8"`: "S", "Content-Type: APPLICATION/JSON": "S", "Content-Type: text/json": "S",
			"Content-Type: application/json; charset=us-ascii": "S", jsonType + "\n" + jsonType: "S",
			"Content-Type: application/json; charset=utf-16": "R", "Content-Type: application/json; charset=utf-7": "R", "Content-Type: application/json; charset=iso-8859-1": "R", "Content-Type: application/json, text/plain": "R",
			"Content-Type: application/json; charset=utf-8; charset=utf-16": "R", "Content-Type: text/plain;charset=UTF-8": "R", "Content-Type: application/x-json": "R", "Content-Type: json": "R", "Content-Type: */*": "R",
			"Content-Type: application/jsonp": "R", formType: "R", "X-A: none": "R", jsonType + "\nContent-Type: text/plain": "R", jsonType + "\nContent_Type: text/plain": "R"}),
		"codings": {
			{"R", "POST /api/bookings", jsonBody, []string{jsonType, "Content-Encoding: gzip"}},
			{"R", "POST /api/bookings", gzipped(jsonBody)[:20], []string{jsonType, "Content-Encoding: gzip"}},
			{"R", "POST /api/bookings", gzipped(jsonBody) + gzipped(jsonBody), []string{jsonType, "Content-Encoding: gzip"}},
			{"R", "POST /api/bookings", gzipped(jsonBody) + "x", []string{jsonType, "Content-Encoding: gzip"}},
			{"R", "POST /api/bookings", gzipped(gzipped(jsonBody)), []string{jsonType, "Content-Encoding: gzip, gzip"}},
			{"R", "POST /api/bookings", gzipped(jsonBody), []string{jsonType, "Content-Encoding: gzip", "Content-Encoding: gzip"}},
			{"R", "POST /api/bookings", gzipped(`{"slot_id":"S1"` + strings.Repeat(" ", 3<<20) + "}"), []string{jsonType, "Content-Encoding: gzip"}},
			{"R", "POST /api/bookings", jsonBody, []string{jsonType, "Content-Encoding: zstd"}},
			{"S", "POST /api/bookings", jsonBody, []string{jsonType, "Content-Encoding: identity"}},
		},
		"forms": bodyCases("POST /book.php", formType, map[string]expectation{
			"slot_id=S1": "S", "slot_id=S1&slot_id=S1": "S", "slot_id=S1%26slot_id=S2": "S", "slot_id=S+1": "S", "utf8=%E2%9C%93&authenticity_token=x%3D%3D&slot_id=S1&commit=Book": "S", "slot_id=S1&_token=abc&_method=POST": "S",
			"slot_id=S1&=x": "S", "slot_id==": "S", "slot_id=S1&slot_id.x=3&slot_id.y=4": "S", "x=" + strings.Repeat("a", 5000) + "&slot_id=S1": "S",
			"slot_id=S1&slot_id=S2": "R", "slot_id[]=S1": "R", "slot_id=S1;slot_id=S2": "R", "slot_id=%zz": "R", "slot_id=S1%00": "R", "SLOT_ID=S1": "R", "%20slot_id=S2&slot_id=S1": "R", "slot.id=S1": "R",
			"slot_id=S1\n&slot_id=S1": "R", "\xef\xbb\xbfslot_id=S1": "R", "slot_id=\xe4": "R", "slot_id=S1& slot_id=S2": "R", "slot_id=S1&slot_id]=S2": "R", jsonBody: "R", "": "R",
			strings.Repeat("a=1&", 1000) + "slot_id=S1": "R"}),
		"form labels": labelCases("POST /book.php", "slot_id=S1", map[string]expectation{
			formType + "; charset=utf-8": "S", "Content-Type: Application/X-WWW-Form-Urlencoded": "S", formType + ";charset=gbk": "R", formType + "; charset=utf-16": "R", formType + ", text/plain": "R", formType + "x": "R",
			"Content-Type: text/plain": "R", "Content-Type: multipart/form-data": "R", "X-A: none": "R"}),
		"users": labelCases("POST "+slot, "", map[string]expectation{
			"X-User-Id:  alice\t": "S", "x-user-id: alice": "S", "X-User-Id: ann\nX-User-Id: ann": "S", "X-User-Id: ann\nX-User-Id: bob": "R", "X-User-Id: ann\nX_User_Id: bob": "R", "X_User_Id: bob": "R",
			"X.User.Id: bob\nX-User-Id: ann": "R", "X-User-Id:": "R", "X-User-Id: al\xffice": "R"}),
		"keys": labelCases("POST /api/bookings", jsonBody, map[string]expectation{
			jsonType + "\nIdempotency-Key: abc": "S", jsonType + "\nIdempotency-Key: \"abc\"": "S", jsonType + "\nIdempotency-Key: \"abc": "R", jsonType + "\nIdempotency-Key: \"a\";x=1": "R", jsonType + "\nIdempotency-Key: a b": "R",
			jsonType + "\nIdempotency-Key: a\nIdempotency_Key: b": "R", jsonType + "\nIdempotency-Key: é": "R", jsonType + "\nIdempotency-Key: x\nidempotency-key: x": "R", jsonType + "\nIdempotency-Key:": "R",
			jsonType + "\nCookie: _ga=GA1.2.3; theme=\"dark\"; sid=abc%3D": "S", jsonType + "\nCookie: a=1\nCookie: a=2": "R"}),
	}
	sets := dialectSets(t)
	tried := 0
	for kind, list := range kinds {
		for _, c := range list {
			tried++
			got := expectation("S")
			m, facts, refusal := serve(sets["any"], c.request())
			switch {
			case refusal != nil:
				got = "R"
			case m.Rule == nil:
				got = "P"
			}
			if !strings.Contains(string(c.want), string(got)) {
				t.Errorf("%s: %s %q %.100q: %s, slot %q, %v; want %s", kind, c.line, c.header, c.body, got, facts.Slot, refusal, c.want)
			}
			checkAgainstBackends(caseFailure{t, kind}, sets, c.request())
		}
	}
	t.Logf("%d cases", tried)
}

// caseFailure reports what checkAgainstBackends finds and goes on.
type caseFailure struct {
	t    *testing.T
	kind string
}

func (f caseFailure) Fatalf(format string, args ...any) {
	f.t.Helper()
	f.t.Error(f.kind + ": " + fmt.Sprintf(format, args...))
}
