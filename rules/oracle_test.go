package rules

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/text/encoding/unicode"
	"pgregory.net/rapid"
)

// checkAgainstBackends is the promise that gate and backend never disagree (P6): what
// a backend books was admitted, under the same rule, for the same slot and subject;
// or the request was refused. Under a named dialect that backend alone counts.
func checkAgainstBackends(t interface{ Fatalf(string, ...any) }, sets map[string]*Set, r *Request) (admitted bool) {
	for i := range backends {
		b := &backends[i]
		h := b.handle(r)
		for _, name := range []string{"any", b.name} {
			m, facts, refusal := serve(sets[name], r)
			if refusal != nil {
				continue
			}
			got := handled{}
			if m.Rule != nil {
				got = handled{rule: m.Rule.Name, slot: facts.Slot, user: facts.Subject}
				admitted = true
			}
			if h.rule == "" || h.rule != "R6" && h.slot == "" {
				continue // a hold that the backend's own refusal gives back
			}
			if h.rule == "R6" {
				h.slot, got.slot = "", ""
			}
			if h != got {
				t.Fatalf("%s %s?%s\n%q\n%q\n%s makes it %+v; with dialect %s it is %+v", r.Method, r.Path, r.Query, r.Header, r.Body, b.name, h, name, got)
			}
		}
	}
	return admitted
}

// serve is the gate's way: head, body where it is asked for, facts.
func serve(s *Set, r *Request) (Match, Facts, *Refusal) {
	head := *r
	head.Body = nil
	m, refusal := s.Match(&head)
	if m.NeedsBody {
		m, refusal = s.Match(r)
	}
	if refusal != nil || m.Rule == nil {
		return m, Facts{}, refusal
	}
	f, refusal := m.Rule.Extract(r, &m, 1<<20)
	return m, f, refusal
}

func dialectSets(t testing.TB) map[string]*Set {
	sets := map[string]*Set{}
	for name := range dialects {
		sets[name] = referenceSet(t, name)
	}
	return sets
}

// drawn makes requests near the rules, out of the pieces that servers differ on.
func drawn(t *rapid.T) *Request {
	// Most of a request is calm, its pieces the first choices; else few were admitted.
	wild := false
	part := func(label string) { wild = rapid.IntRange(0, 2).Draw(t, label+" is wild") == 0 }
	pick := func(label string, choices ...string) string {
		if !wild {
			return choices[0]
		}
		return rapid.SampledFrom(choices).Draw(t, label)
	}
	part("slot")
	slot := pick("slot", "S1", "S1", "S1", "%531", "S1;v=2", "S1%3Bv", "S1.json", "v1.5", "..", ".", "%2e%2e", "S1%2F2", "S1%5C2", "S%201", "caf%C3%A9", "S1%00", "S1%zz", "a+b", "S1%ff", "..;", "S1.", ".json", "S1.php")
	target := rapid.SampledFrom([]string{"/api/slots/{}/reservations", "/api/bookings", "/book.php", "/book", "/reserve", "/api/bookings/{}", "/other/{}"}).Draw(t, "route")
	part("path")
	path := ""
	for segment := range strings.SplitSeq(target[1:], "/") {
		path += pick("between", "/", "/", "/", "/", "/", "/", "//", "/./", "/x/../", "/x/..;/", "/;a/", "/x//../", "/%2e/", "/index.php/", "/index/", "/(S(x))/", "/x/%2e%2e/", `\`, "%2F")
		if segment == "{}" {
			path += slot
			continue
		}
		switch pick("spelling", "", "", "", "upper", "escape") {
		case "upper":
			segment = strings.ToUpper(segment)
		case "escape":
			segment = fmt.Sprintf("%%%02x%s", segment[0], segment[1:])
		}
		path += segment + pick("parameters", "", "", "", "", "", "", ";j=1", "%3bj", ".json", ".php", ".csv", ".", "%20")
	}
	path = pick("host", "", "", "", "//shop.test") + path
	path += pick("end", "", "", "", "", "/", "//", "/.", "/..", ".json", ".do", ";x", "/extra", ".5", "/x/..")

	pair := func(label string) string {
		return pick(label+" name", "slot_id", "slot_id", "slot_id", "slot.id", "slot%5fid", "slot_id[]", "slot_id]", "[slot_id]", "slot_id[0]", "SLOT_ID", "+slot_id", "slot_id%00", "slot[id", "a", "_method", "_method") +
			pick(label+" is", "=", "=", "=", "") +
			pick(label+" value", "S1", "S1", "S2", "S%31", "", "put", "DELETE", "POST", "a+b", "%zz", "S1%26slot_id=S2", "%ff")
	}
	pairs := func(label string, n int) (text string) {
		for i := range rapid.IntRange(0, n).Draw(t, label) {
			if i > 0 {
				text += pick(label+" next", "&", "&", "&", ";", "&&")
			}
			text += pair(label)
		}
		return text
	}
	method := rapid.SampledFrom([]string{"POST", "POST", "POST", "GET", "PUT", "DELETE"}).Draw(t, "method")
	part("query")
	r := &Request{Method: method, Path: path, Query: pairs("query", 2), Host: "shop.test", Body: []byte{}}
	head := func(name, value string) { r.Header = append(r.Header, Field{name, value}) }
	head("X-User-Id", "ann")
	wild = true
	switch rapid.IntRange(0, 14).Draw(t, "more header") {
	case 0:
		head(pick("alias", "X_User_Id", "x-user-id", "X.User-Id", "X~User|Id"), pick("user", "ann", "bob"))
	case 1:
		head(pick("override", "X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X_HTTP_Method_Override"), pick("to", "PUT", "delete", "POST", "GET", "FOO", "P T", ""))
	}
	if rapid.IntRange(0, 19).Draw(t, "rewritten") == 0 {
		head(pick("rewrite header", "X-Original-URL", "X-Rewrite-URL"), pick("rewritten path", "/reserve", "/book.php", "/api/bookings/S2", "/other", path))
	}
	part("body")
	switch rapid.IntRange(0, 4).Draw(t, "body") {
	case 0, 1:
		head("Content-Type", pick("form type", "application/x-www-form-urlencoded", "application/x-www-form-urlencoded", "application/x-www-form-urlencoded; charset=utf-8", "application/json", "text/plain"))
		r.Body = []byte(pairs("form", 3))
	case 2:
		head("Content-Type", pick("multipart type", "multipart/form-data; boundary=b", "multipart/form-data; boundary=b", `multipart/form-data; boundary="b"`, `multipart/form-data; boundary="b,c"`, "multipart/form-data, boundary=b", "multipart/form-data; boundary=b; boundary=c"))
		end := pick("line end", "\r\n", "\r\n", "\r\n", "\n")
		text := pick("preamble", "", "", "", "x"+end)
		for range rapid.IntRange(0, 3).Draw(t, "parts") {
			text += pick("delimiter", "--b", "--b", "--b,c") + end + "Content-Disposition: form-data; " +
				pick("part name", `name="slot_id"`, `name="slot_id"`, `name=slot_id`, `name='slot_id'`, `name= slot_id`, `name="slot.id"`, `name="slot id"`, `name="slot[id"`, `name="slot_id[]"`, `name="Slot_Id"`, `name="[slot_id]"`, `name="_method"`, `name="a"; name="slot_id"`, `name="slot_id"; filename="x"`, `filename="x"; name="a"`) +
				end + end + pick("part value", "S1", "S1", "S2", "DELETE", "put", "") + end
		}
		r.Body = []byte(text + pick("last", "--b--", "--b--"+end, "--b", ""))
	case 3, 4:
		head("Content-Type", pick("json type", "application/json", "application/json", "application/json; charset=utf-8", "application/json; charset=utf-16", "application/vnd.api+json", "text/plain", "application/x-www-form-urlencoded"))
		text := pick("before", "", "", "", "", "", "\ufeff", " ", "[", `/* " */`) + "{"
		for i := range rapid.IntRange(0, 3).Draw(t, "members") {
			if i > 0 {
				text += ","
			}
			text += pick("member", `"slot_id"`, `"slot_id"`, `"slot\u005fid"`, `"Slot_Id"`, `"a"`, `'slot_id'`, `"_method"`, `"_method"`) + ":" +
				pick("json value", `"S1"`, `"S1"`, `"PUT"`, `"delete"`, `"\u00531"`, "7", "7.0", "1e3", "007", "-0", `"7"`, "null", "true", `["S1"]`, `{"slot_id":"S2"}`, `"\ud800"`, `""`, "0.5", "1E400", "18446744073709551617", "9223372036854775807", "7.00000000000000000001", "1e22", "0.1")
		}
		r.Body = []byte(text + "}" + pick("after", "", "", "", "", "x", " ", "]", "{}", `/*,"slot_id":"S2"}*/`))
		if pick("width", "", "", "", "", "", "UTF-16") != "" {
			r.Body, _ = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder().Bytes(r.Body)
		}
	}
	return r
}

func TestBackendsReadWhatWasAdmitted(t *testing.T) {
	sets := dialectSets(t)
	tried, admitted := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for range 40 { // a check has a price of its own
			tried++
			if checkAgainstBackends(t, sets, drawn(t)) {
				admitted++
			}
		}
	})
	if admitted*20 < tried {
		t.Errorf("only %d of %d requests were admitted: the rest says little", admitted, tried)
	}
}

// FuzzDrawn steers the drawing by coverage.
func FuzzDrawn(f *testing.F) {
	sets := dialectSets(f)
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { checkAgainstBackends(t, sets, drawn(t)) }))
}

// FuzzBackends writes requests freely.
func FuzzBackends(f *testing.F) {
	sets := dialectSets(f)
	f.Add("POST", "/api/slots/S1/reservations", "", "", "", "", []byte(""))
	f.Add("POST", "/index.php/api//bookings.json", "_method=put", "application/json", "X-HTTP-Method", "PUT", []byte(`{"slot_id":"S1","Slot_Id":7.0}`))
	f.Add("POST", "/book.php/x", "slot_id=S1", "application/x-www-form-urlencoded", "X_User_Id", "bob", []byte("slot_id=S1&slot.id=S2;a=b&_method=DELETE"))
	f.Add("POST", "/api/bookings/S1", "", "application/json", "X-User-Id", "ann", []byte(`{"_method":"put","slot_id":7}`))
	f.Add("POST", "/book/x", "", "application/x-www-form-urlencoded; charset=utf-8", "X-User-Id", "ann", []byte("slot_id=%531&_token=a%3D"))
	f.Add("PUT", "/api/x/..;/bookings/S1%3Bv;w", "", "multipart/form-data; boundary=b", "X-User-Id", "ann", []byte(multipartBody("b", "slot_id", "", "", "S1")))
	two := multipartBody("b", "slot_id", "", "", "S1")
	f.Add("POST", "/book.php", "", "multipart/form-data; boundary=b", "X-User-Id", "ann", []byte(strings.TrimSuffix(two, "--b--")+"--b\r\nContent-Disposition: form-data; name='slot_id'\r\n\r\nS2\r\n--b--"))
	f.Add("POST", "/book.php", "", "multipart/form-data; boundary=b", "X-User-Id", "ann", []byte(strings.TrimSuffix(two, "--b--")+multipartBody("b", "slot id", "", "", "S2")))
	f.Add("POST", "/book.php", "", `multipart/form-data; boundary="b,c"`, "X-User-Id", "ann", []byte(strings.TrimSuffix(multipartBody("b,c", "slot_id", "", "", "S1"), "--b,c--")+multipartBody("b,c", "x", "", "", multipartBody("b", "slot_id", "", "", "S2"))))
	f.Add("POST", "/api/bookings", "", "application/json; charset=utf-16", "X-User-Id", "ann", []byte("{\x00\"\x00s\x00"))
	f.Fuzz(func(t *testing.T, method, path, query, contentType, name, value string, body []byte) {
		if !isToken(method) || strings.ToUpper(method) != method || strings.ContainsAny(path, "?#") || !isToken(name) ||
			strings.ContainsAny(value+contentType, "\r\n\x00") || body == nil {
			return // the edge lets no such head pass
		}
		checkAgainstBackends(t, sets, &Request{Method: method, Path: path, Query: query, Host: "h", Body: body, Header: []Field{
			{"X-User-Id", "ann"}, {"Content-Type", contentType}, {name, strings.Trim(value, " \t")},
		}})
	})
}
