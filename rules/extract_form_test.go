package rules

import (
	"strings"
	"testing"
)

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
		"slot_id=S1&slot_id[]=S1":                   "ambiguous",
		"slot_id=S1&slot_id[x]=S1":                  "ambiguous",
		"slot_id=S1&slot_id]=S2":                    "ambiguous",
		"slot_id=S1&[slot_id]=S2":                   "ambiguous",
		"slot_id=S1&]slot_id=S2":                    "ambiguous",
		"[slot_id]=S2":                              "ambiguous",
		"slot_id=S1&slot_id]x=S2":                   "ambiguous",
		"slot_id=S1&[x]=2&[]=3&]=4":                 `"S1"`,
		"slot_id=S1&slot_id.x=2&slot_id.y=3":        `"S1"`,
		"slot_id=S1&x[slot_id]=2":                   `"S1"`,
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
	for label, want := range map[string]string{
		"application/x-www-form-urlencodedx":                "ambiguous",
		"application/json; x=multipart/form-data":           "ambiguous",
		"text/x-www-form-urlencoded":                        "ambiguous",
		`application/json; profile="https://a.test/p"`:      `"S1"`,
		"text/plain; charset=ibm037":                        "unsupported",
		"application/octet-stream; charset=utf-16":          "unsupported",
		"text/plain; charset=ISO-8859-1":                    `"S1"`,
		"application/soap+xml; charset=utf-8; action=\"a\"": `"S1"`,
	} {
		cases[testRequest("POST /b?slot_id=S1", "slot_id=S2", "Content-Type: "+label)] = want
	}
	cases[testRequest("POST /b?slot_id=S1", "x", "Content-Type: multipart/form-data, boundary=b")] = "ambiguous"
	checkSlots(t, slotFrom("query:slot_id"), cases)
	checkSlots(t, slotFrom("query:booking[slot]"), map[*Request]string{
		testRequest("POST /b?booking[slot]=S1", ""):                    `"S1"`,
		testRequest("POST /b?booking%5Bslot%5D=S1", ""):                `"S1"`,
		testRequest("POST /b?booking[slot]=S1&booking[x]=2", ""):       `"S1"`,
		testRequest("POST /b?booking[slot]=S1&booking=2", ""):          "ambiguous",
		testRequest("POST /b?booking[slot]=S1&booking[slot][]=2", ""):  "ambiguous",
		testRequest("POST /b?booking[slot]=S1&booking[Slot]=2", ""):    "ambiguous",
		testRequest("POST /b?booking[slot]=S1&booking_slot=2", ""):     `"S1"`,
		testRequest("POST /b?booking[slot]=S1&booking[slot]x=2", ""):   "ambiguous",
		testRequest("POST /b?booking[slot]=S1&[booking][slot]=2", ""):  "ambiguous",
		testRequest("POST /b?booking[slot]=S1&booking[slot=2", ""):     "ambiguous",
		testRequest("POST /b?booking[slot]=S1&booking[][slot]=2", ""):  "ambiguous",
		testRequest("POST /b?booking[slot]=S1&booking.slot=2", ""):     "ambiguous",
		testRequest("POST /b?booking[slot]=S1&booking[x][slot]=2", ""): `"S1"`,
		testRequest("POST /b?booking[slot]=S1&booking.x=2", ""):        `"S1"`,
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
		raw("Content-Disposition: form-data\r\nContent-ID: slot_id", "S2") + field("slot_id", "S1") + "--b--":                                  "ambiguous",
		raw("X-A: ; name=slot_id\r\nContent-Disposition: form-data; name=a", "S2") + field("slot_id", "S1") + "--b--":                          "ambiguous",
		raw(`Content-Disposition: form-data; name=a; x="; name=slot_id"`, "S2") + field("slot_id", "S1") + "--b--":                             "ambiguous",
		raw(`Content-Disposition: form-data; name=slot_id; x="; filename=a"`, "S1") + "--b--":                                                  "ambiguous",
		// PHP quotes with ' too, and some patterns know no blanks around the "=".
		field("slot_id", "S1") + raw(`Content-Disposition: form-data; name='slot_id'`, "S2") + "--b--":                            "ambiguous",
		field("slot_id", "S1") + raw(`Content-Disposition: form-data; x='; name="a"; y='; name="slot_id"`, "S2") + "--b--":        "ambiguous",
		field("slot_id", "S1") + raw(`Content-Disposition: form-data; name=a; x='b'`, "S2") + "--b--":                             "ambiguous",
		field("slot_id", "S1") + raw(`Content-Disposition: form-data; name= slot_id`, "S2") + "--b--":                             "ambiguous",
		field("slot_id", "S1") + raw("Content-Disposition: form-data; name=\t\"a\"", "S2") + "--b--":                              "ambiguous",
		field("slot_id", "S1") + raw(`Content-Disposition: form-data; name="it's"; filename="Ann's seat = 1.jpg"`, "x") + "--b--": `"S1"`,
		raw("Content-Disposition: form-data; name=slot_id\r\nContent-ID: <1>\r\nContent-Length: 2", "S1") + "--b--":               `"S1"`,
		raw("Content-Disposition: form-data;\r\n name=slot_id", "S1") + "--b--":                                                   "ambiguous",
		raw("Content-Disposition : form-data; name=slot_id", "S1") + "--b--":                                                      "ambiguous",
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
	webkit := "----WebKitFormBoundaryAbC0"
	cases[testRequest("POST /b", multipartBody(webkit, "slot_id", "", "", "S1"), "Content-Type: multipart/form-data; boundary="+webkit)] = `"S1"`
	body := field("slot_id", "S1") + "--b--"
	for _, label := range []string{"multipart/form-data, boundary=b", "multipart/form-data", "multipart/form-data; boundary=", `multipart/form-data; boundary="b "`, "multipart/form-data; boundary=b; boundary=c", "multipart/form-data; xboundary=a; boundary=b", `multipart/form-data; charset="boundary=a"; boundary=b`, "multipart/form-data; boundary=" + strings.Repeat("b", 71), `multipart/form-data; boundary="b;"`, `multipart/form-data; boundary="b,b"`, "multipart/mixed; boundary=b"} {
		cases[testRequest("POST /b", body, "Content-Type: "+label)] = "ambiguous"
	}
	checkSlots(t, slotFrom("form:slot_id"), cases)
}
