package rules

import (
	"strings"
	"testing"
)

func issuing(on string, slot ...string) *RuleConfig {
	rc := testRule("book", "POST", "/api/lessons/{lesson}/bookings")
	rc.Pool = "learned"
	rc.Slot = extractors(slot...)
	rc.Idempotency = &IdempotencyConfig{Group: "g", Key: extractors("header:Idempotency-Key", "cookie:sg"), Issue: IssueConfig{On: on, Cookie: "sg"}}
	return rc
}

func TestPages(t *testing.T) {
	for _, row := range []struct {
		on, slot, request string
		want              string // "" none
	}{
		{"GET /lessons/{lesson}", "path:lesson", "GET /lessons/7", "7"},
		{"GET /lessons/{lesson}", "path:lesson", "GET /lessons/7/?utm=x", "7"},
		{"GET /lessons/{lesson}", "path:lesson", "GET /Lessons/7", "7"},
		{"GET /lessons/{lesson}", "path:lesson", "GET //lessons/./%37", "7"},
		{"GET /lessons/{lesson}", "fold path:lesson", "GET /lessons/Yoga", "yoga"},
		{"GET /lessons/{lesson}", "path:lesson", "HEAD /lessons/7", ""},
		{"GET /lessons/{lesson}", "path:lesson", "POST /lessons/7", ""},
		{"GET /lessons/{lesson}", "path:lesson", "GET /lessons", ""},
		{"GET /lessons/{lesson}", "path:lesson", "GET /lessons/7/edit", ""},
		{"GET /lessons/{lesson}", "path:lesson", "GET /lessons/%zz", ""},
		{"GET /lessons/{lesson}", "path:lesson", "GET *", ""},
		{"GET /schools/{school}/{lesson}", "path:lesson", "GET /schools/1/7", "7"},
		{"GET /book?lesson={lesson}", "path:lesson", "GET /book?lesson=7", "7"},
		{"GET /book?lesson={lesson}", "path:lesson", "GET /book.php?x=1&lesson=%37", "7"},
		{"GET /book?lesson={lesson}", "path:lesson", "GET /book", ""},
		{"GET /book?lesson={lesson}", "path:lesson", "GET /book?lesson=", ""},
		{"GET /book?lesson={lesson}", "path:lesson", "GET /book?lesson=7&lesson=8", ""}, // two ways to read it
		{"GET /book?l={lesson_id}", "json:/data/lesson_id", "GET /book?l=7", "7"},
		{"GET /lessons/{lesson_id}", "form:lesson_id", "GET /lessons/7", "7"},
		{"GET /lessons/{id}", "integer json:/id", "GET /lessons/7", "7"},
		{"GET /lessons/{id}", "integer json:/id", "GET /lessons/07", ""}, // nor is it one of a booking
	} {
		set := testSet(t, issuing(row.on, row.slot))
		got := ""
		for _, p := range set.Pages(testRequest(row.request, "")) {
			got = p.Slot
			if p.Rule != set.Rules[0] {
				t.Errorf("%s: the page is of rule %v", row.request, p.Rule)
			}
		}
		if got != row.want {
			t.Errorf("%s by %q for slot %s: %q, want %q", row.request, row.on, row.slot, got, row.want)
		}
	}
}

// TestAPageNamesTheSlotAsItsBookingDoes: else the id would be of another.
func TestAPageNamesTheSlotAsItsBookingDoes(t *testing.T) {
	set := testSet(t, issuing("GET /s/{school}/book?lesson={lesson_id}", "const:term-1", "form:school", "integer json:/lesson_id"))
	set.Rules[0].slot[1].Source = FromHeader // so that one request can hold all parts
	book := testRequest("POST /api/lessons/1/bookings", `{"lesson_id":7.0}`, jsonType, "school: |2:a")
	facts, refusal := admit(set, book)
	pages := set.Pages(testRequest("GET /s/%7C2:a/book?lesson=7", ""))
	if refusal != nil || len(pages) != 1 || pages[0].Slot != facts.Slot || !strings.Contains(facts.Slot, "term-1") {
		t.Errorf("booked is %q (%v), the pages are %v", facts.Slot, refusal, pages)
	}
}

func TestPagesKeepToTheRulesConditions(t *testing.T) {
	rc := issuing("GET /lessons/{lesson}", "path:lesson")
	rc.Match.Params = map[string]string{"lesson": "[0-9]+"}
	rc.Match.Hosts = []string{"shop.test"}
	rc.Match.Except = []string{"/lessons/9"}
	rc.Match.Headers = map[string]string{"Content-Type": "application/json*"} // of bookings
	other := issuing("GET /lessons/{lesson}", "path:lesson")
	other.Name = "other"
	set := testSet(t, rc, other)
	elsewhere := testRequest("GET /lessons/7", "")
	elsewhere.Host = "other.test"
	for request, want := range map[*Request]int{
		testRequest("GET /lessons/7", ""):   2,
		testRequest("GET /lessons/new", ""): 1,
		testRequest("GET /lessons/9", ""):   1,
		elsewhere:                           1,
	} {
		if got := set.Pages(request); len(got) != want {
			t.Errorf("%s on %s: %d pages", request.Path, request.Host, len(got))
		}
	}
	if got := testSet(t, testRule("a", "GET", "/a")).Pages(testRequest("GET /a", "")); got != nil {
		t.Errorf("pages without issue: %v", got)
	}
}

// ids has one good id.
type ids struct{ cookie, group, pool, slot, id string }

func (i ids) ID(cookie, group, pool, slot string) string {
	if cookie == i.cookie && group == i.group && pool == i.pool && slot == i.slot {
		return i.id
	}
	return ""
}

func TestAnIssuedIDIsAKeyOfItsSubjectAndSlot(t *testing.T) {
	rc := issuing("GET /lessons/{lesson}", "path:lesson")
	rc.Subject = extractors("json:/s")
	set := testSet(t, rc)
	read := func(lesson, subject string, header ...string) Facts {
		t.Helper()
		r := testRequest("POST /api/lessons/"+lesson+"/bookings", `{"s":"`+subject+`"}`, append(header, jsonType)...)
		r.Issued = ids{"sg", "g", "learned", "7", "ID"}
		f, refusal := admit(set, r)
		if refusal != nil {
			t.Fatal(refusal)
		}
		return f
	}
	ann := read("7", "ann")
	if KeySourceOf(ann.Key) != KeyIssued || ann.Key != read("7", "ann").Key {
		t.Errorf("the key is %q", ann.Key)
	}
	if bob := read("7", "bob"); bob.Key == ann.Key || KeySourceOf(bob.Key) != KeyIssued {
		t.Errorf("another subject has the key %q", bob.Key)
	}
	if f := read("8", "ann"); f.Key != "" {
		t.Errorf("another slot has the key %q", f.Key)
	}
	if f := read("7", "ann", "Idempotency-Key: mine"); f.Key != "mine" || KeySourceOf(f.Key) != KeySent {
		t.Errorf("a key that was sent is read as %q", f.Key)
	}
	if f := read("7", "ann", "Cookie: sg=forged"); f.Key != ann.Key {
		t.Errorf("a plain cookie of the name gives the key %q", f.Key)
	}
	rc.Idempotency.Required = true
	set = testSet(t, rc)
	_, refusal := admit(set, testRequest("POST /api/lessons/7/bookings", `{"s":"ann"}`, jsonType, "Cookie: sg=forged"))
	if refusal == nil || refusal.Kind != RefuseKeyMissing || !strings.Contains(refusal.Detail, "load the page again") {
		t.Errorf("without an id: %v", refusal)
	}
}

func TestADerivedKeyIsThatOfEqualRequests(t *testing.T) {
	rc := testRule("book", "POST", "/b")
	rc.Match.Methods = nil
	rc.Pool, rc.Slot, rc.Subject = "learned", extractors("json:/l"), extractors("json:/s")
	rc.Idempotency = &IdempotencyConfig{Derive: 1}
	set := testSet(t, rc)
	read := func(line, body string, header ...string) Facts {
		t.Helper()
		f, refusal := admit(set, testRequest(line, body, append(header, jsonType)...))
		if refusal != nil {
			t.Fatal(refusal)
		}
		return f
	}
	key := read("POST /b", `{"l":1,"s":"ann","n":2}`).Key
	if KeySourceOf(key) != KeyDerived {
		t.Fatalf("the key is %q", key)
	}
	for _, same := range []Facts{
		read("POST /b", `{ "n": 2.0, "s": "ann", "l": 1 }`), read("POST /b", `{"l":1,"s":"ann","n":2}`, "Authorization: other", "User-Agent: x"),
	} {
		if same.Key != key {
			t.Errorf("an equal request has the key %q", same.Key)
		}
	}
	for _, other := range []Facts{
		read("POST /b", `{"l":2,"s":"ann","n":2}`), read("POST /b", `{"l":1,"s":"bob","n":2}`), read("PUT /b", `{"l":1,"s":"ann","n":2}`),
		read("POST /b", `{"l":1,"s":"ann","n":3}`), read("POST /b", `{"l":1,"s":"ann","n":2}`, "Idempotency-Key: k"),
	} {
		if other.Key == key || other.Key == "" {
			t.Errorf("another request has the key %q", other.Key)
		}
	}
}

// TestNoClientSendsAKeyOfTheGates: who knows what another will ask for could take that
// one's key before.
func TestNoClientSendsAKeyOfTheGates(t *testing.T) {
	for _, key := range []string{derivedPrefix + "x", issuedPrefix + "x y"} {
		for _, send := range []*Request{
			testRequest("POST /b", "", "Idempotency-Key: "+key), testRequest("POST /b", "", `Idempotency-Key: "`+key+`"`),
			testRequest("POST /b", `{"request_id":"`+key+`"}`, jsonType),
		} {
			f, refusal := extractOne(t, func(rc *RuleConfig) {
				rc.Idempotency = &IdempotencyConfig{Key: extractors("header:Idempotency-Key", "json:/request_id")}
			}, send)
			if refusal == nil || refusal.Kind != RefuseKeyInvalid {
				t.Errorf("%q is taken: %q", key, f.Key)
			}
		}
	}
	if source := KeySourceOf("issued"); source != KeySent {
		t.Errorf("the key %q is of source %d", "issued", source)
	}
}
