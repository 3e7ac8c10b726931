package rules

import (
	"slices"
	"testing"
)

// In GBK 名 is C3 FB; in UTF-8 课 is E8 AF BE, and E8AF BE20 is two characters of GBK.
const multipartLabelB = "Content-Type: multipart/form-data; boundary=b"

func TestExtractCharset(t *testing.T) {
	form := func(body string, header ...string) *Request { return testRequest("POST /b", body, header...) }
	rule := func(charset, slot string) func(*RuleConfig) {
		return func(rc *RuleConfig) { rc.Charset, rc.Slot = charset, extractors(slot) }
	}
	gbk := formType + "; charset=gbk"
	checkSlots(t, rule("gbk", "form:slot"), map[*Request]string{
		form("slot=%C3%FB", formType):                                                                  `"名"`,
		form("slot=\xc3\xfb", formType):                                                                `"名"`,
		form("slot=%C3%FB", gbk):                                                                       `"名"`,
		form("slot=%C3%FB", formType+"; charset=GB2312"):                                               `"名"`,
		form("slot=S1", formType):                                                                      `"S1"`,
		form("slot=S1", formType+"; charset=utf-8"):                                                    `"S1"`,
		form("slot=%C3%FB", formType+"; charset=utf-8"):                                                "ambiguous",
		form("slot=%E8%AF%BE+", formType+"; charset=utf-8"):                                            "ambiguous",
		form("slot=S1&x=%E8%AF%BE", formType+"; charset=utf-8"):                                        `"S1"`,
		form("slot=S1", formType+"; charset=big5"):                                                     "unsupported",
		form("slot=S1", formType+"; charset=utf-16"):                                                   "unsupported",
		form("slot=%C3", formType):                                                                     "ambiguous",
		form("slot=%FF%FF", formType):                                                                  "ambiguous",
		form("slot=%C3%FB&slot=%C3%FB", formType):                                                      `"名"`,
		form("slot=%C3%FB&slot=%E5%90%8D", formType):                                                   "ambiguous",
		form("slot=%A3%DC", formType):                                                                  `"＼"`,
		testRequest("POST /b?slot=%C3%FB", "slot=%C3%FB", formType):                                    `"名"`,
		testRequest("POST /b?slot=%E5%90%8D", "slot=%C3%FB", formType):                                 "ambiguous",
		form(multipartBody("b", "slot", "", "", "\xc3\xfb"), multipartLabelB):                          `"名"`,
		form(multipartBody("b", "slot", "", "", "\xc3"), multipartLabelB):                              "ambiguous",
		form(multipartBody("b", "slot", "", "text/plain; charset=gbk", "\xc3\xfb"), multipartLabelB):   `"名"`,
		form(multipartBody("b", "slot", "", "text/plain; charset=utf-8", "\xc3\xfb"), multipartLabelB): "ambiguous",
		form(multipartBody("b", "slot", "", "text/plain; charset=utf-8", "S1"), multipartLabelB):       `"S1"`,
	})
	checkSlots(t, rule("gbk", "form:名"), map[*Request]string{
		form("%C3%FB=S1", formType):                                         `"S1"`,
		form("%E5%90%8D=S1", formType):                                      "unidentified",
		form(multipartBody("b", "\xc3\xfb", "", "", "S1"), multipartLabelB): `"S1"`,
	})
	checkSlots(t, rule("gbk", "query:slot"), map[*Request]string{
		testRequest("POST /b?slot=%C3%FB", ""):    `"名"`,
		testRequest("POST /b?slot=%E5%90%8D", ""): "ambiguous", // three bytes
	})
	checkSlots(t, rule("gb18030", "json:/slot"), map[*Request]string{
		form("{\"slot\":\"\xc3\xfb\"}", jsonType):                                   `"名"`,
		form("{\"slot\":\"\xc3\xfb\"}", "Content-Type: text/json; charset=gb18030"): `"名"`,
		form("{\"slot\":\"\xc3\xfb\"}", "Content-Type: text/json; charset=utf-8"):   "ambiguous",
		form(`{"slot":"S1"}`, "Content-Type: text/json; charset=utf-8"):             `"S1"`,
		form("{\"slot\":\"\xc3\"}", jsonType):                                       "ambiguous",
		form(`{"slot":"S1","slot":"S2"}`, jsonType):                                 "ambiguous",
		// A second byte that is a backslash in ASCII escapes nothing.
		form("{\"slot\":\"\x81\\\"}", jsonType): "\"乗\"",
	})
	checkSlots(t, rule("shift_jis", "form:slot"), map[*Request]string{
		form("slot=%83%5C", formType): `"ソ"`,
		form("slot=%5C", formType):    `"\\"`,
	})
	checkSlots(t, rule("iso-8859-1", "form:slot"), map[*Request]string{
		form("slot=%E9", formType): `"é"`,
	})
	checkSlots(t, rule("utf-8", "form:slot"), map[*Request]string{
		form("slot=%C3%FB", gbk):                   "unsupported",
		form("slot=S1", gbk):                       "unsupported",
		form("slot=S1", formType+"; charset=UTF8"): `"S1"`,
	})
}

// Every charset leaves the bytes of ASCII alone, or cannot be had.
func TestCharsets(t *testing.T) {
	for _, name := range []string{
		"gbk", "gb2312", "gb18030", "big5", "shift_jis", "euc-jp", "euc-kr", "koi8-r", "macintosh",
		"iso-8859-1", "iso-8859-2", "iso-8859-15", "windows-1251", "windows-1252", "windows-874", "ibm866",
	} {
		c, err := newCharset(name)
		if err != nil || c.encoding == nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for b := range byte(0x80) {
			if got, err := c.encoding.NewDecoder().Bytes([]byte{b}); err != nil || !slices.Equal(got, []byte{b}) {
				t.Errorf("%s: %#x is %q, %v", name, b, got, err)
			}
		}
		if same, ok := c.labelled(name); !ok || same != c {
			t.Errorf("%s: its own label gives %v, %v", name, same, ok)
		}
	}
	for _, name := range []string{"utf-16", "utf-16be", "iso-2022-jp", "hz-gb-2312", "utf-7", "ibm037", "utf-32", "x-user-defined", "nonsense"} {
		if c, err := newCharset(name); err == nil {
			t.Errorf("%s: %v; want an error", name, c)
		}
	}
}
