package rules

import (
	"strings"
	"testing"
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
		`{"slot_id":0.0001}`:                              `"0.0001"`,
		`{"slot_id":1e-7}`:                                "ambiguous",
		`{"slot_id":18446744073709551617}`:                "ambiguous",
		`{"slot_id":9007199254740993.0}`:                  "ambiguous",
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

// An Express backend rounds what others keep.
func TestExtractIntegersByDialect(t *testing.T) {
	for name, want := range map[string]RefusalKind{"any": "", "php": "", "express": RefuseAmbiguous} {
		rc := testRule("r", "POST", "/b")
		rc.Slot = extractors("json:/id")
		s := setFor(t, name, rc)
		if f, refusal := admit(s, testRequest("POST /b", `{"id":9007199254740993}`, jsonType)); kindOf(refusal) != want || refusal == nil && f.Slot != "9007199254740993" {
			t.Errorf("%s: %q, %v", name, f.Slot, refusal)
		}
		if f, refusal := admit(s, testRequest("POST /b", `{"id":9007199254740992}`, jsonType)); refusal != nil || f.Slot != "9007199254740992" {
			t.Errorf("%s: %q, %v", name, f.Slot, refusal)
		}
	}
}
