package rules

import "testing"

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
		testRequest("POST /b", "", "X-User-Id: alice", "X!User+Id: bob"):   "ambiguous",
		testRequest("POST /b", "", "X~User|Id: bob"):                       "ambiguous",
		testRequest("POST /b", "", "X-User-Id: alice", "X-UserxId: bob"):   `"alice"`,
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
		testRequest("POST /b", "", "Cookie: s%69d=alice"):                                    "ambiguous",
		testRequest("POST /b", "", "Cookie: sid=alice; s%69d=bob"):                           "ambiguous",
		testRequest("POST /b", "", "Cookie: sid=alice, sid=bob"):                             "ambiguous",
		testRequest("POST /b", "", "Cookie: x=1,sid=bob; sid=alice"):                         "ambiguous",
		testRequest("POST /b", "", "Cookie: sid=al,ice; x=1,y=2"):                            `"al,ice"`,
		testRequest("POST /b", "", `Cookie: x="1; sid=bob; y=2"; sid=alice`):                 "ambiguous",
		testRequest("POST /b", "", `Cookie: sid="alice; x=1"`):                               "ambiguous",
		testRequest("POST /b", "", `Cookie: x={"a":"b"}; sid=alice; y="c"`):                  `"alice"`,
		testRequest("POST /b", "", `Cookie: x=5"; sid=alice`):                                `"alice"`,
		testRequest("POST /b", "", `Cookie: x="5; y=1; sid=alice`):                           "ambiguous",
		testRequest("POST /b", "", `Cookie: x="5"; y="; z="; sid=alice`):                     `"alice"`,
		testRequest("POST /b", "", "Cookie: sid"):                                            "unidentified",
		testRequest("POST /b", ""):                                                           "unidentified",
	})
	checkSlots(t, slotFrom("cookie:s_id"), map[*Request]string{
		testRequest("POST /b", "", "Cookie: s_id=a; s.id=b"): "ambiguous",
		testRequest("POST /b", "", "Cookie: s_id=a; s.id=a"): `"a"`,
	})
	checkSlots(t, slotFrom("ip:"), map[*Request]string{testRequest("POST /b", ""): `"192.0.2.7"`, {Method: "POST", Path: "/b"}: "unidentified"})
}
