package edge

import (
	"strings"
	"testing"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/rules"
)

func TestMaxForwards(t *testing.T) {
	url, heads := rawBackend(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	var asked []string // by the rules
	f := start(t, url, &testGate{route: func(r *gate.Request) (rules.Match, *gate.Reply) {
		asked = append(asked, r.Method)
		return rules.Match{}, nil
	}})
	const field = "Max-Forwards: "
	for _, test := range []struct {
		line, fields string
		status       int
		allow        bool
		passed       string // the lines that the backend gets; "-": no request
	}{
		{"OPTIONS /a", field + "0\r\n", 200, false, "-"},
		{"OPTIONS *", "max-forwards: 000\r\n", 200, false, "-"},
		{"OPTIONS /a", field + "7\r\n" + field + "0\r\n", 200, false, "-"},
		{"OPTIONS /a", "Connection: Max-Forwards\r\n" + field + "0\r\n", 200, false, "-"},
		{"OPTIONS /a", field + "0\r\nContent-Length: 3\r\n", 200, false, "-"},
		{"TRACE /a", field + "0\r\n", 405, true, "-"},
		{"CONNECT x:80", "", 405, true, "-"},
		{"OPTIONS /a", field + "10\r\n", 200, false, field + "9\r\n"},
		{"TRACE /a", "MAX-FORWARDS: 1\r\n", 200, false, "MAX-FORWARDS: 0\r\n"},
		{"OPTIONS /a", field + "-1\r\n", 200, false, field + "-1\r\n"},
		{"OPTIONS /a", field + strings.Repeat("9", 30) + "\r\n", 200, false, field + strings.Repeat("9", 30) + "\r\n"},
		{"OPTIONS /a", "", 200, false, ""},
		{"GET /a", field + "0\r\n", 200, false, field + "0\r\n"},
		{"POST /a", field + "5\r\n", 200, false, field + "5\r\n"},
	} {
		asked = nil
		resp, _ := ask(t, f.addr, test.line+" HTTP/1.1\r\nHost: x:80\r\n"+test.fields+"\r\n"+strings.Repeat("x", 3*strings.Count(test.fields, "Content-Length")))
		if resp.StatusCode != test.status || (resp.Header.Get("Allow") != "") != test.allow {
			t.Errorf("%s %q: %d, Allow %q", test.line, test.fields, resp.StatusCode, resp.Header.Get("Allow"))
		}
		if test.passed == "-" {
			if len(asked) > 0 {
				t.Errorf("%s %q went on", test.line, test.fields)
			}
			continue
		}
		got := ""
		for line := range strings.Lines(<-heads) {
			if strings.HasPrefix(strings.ToLower(line), "max-forwards") {
				got += line
			}
		}
		if got != test.passed {
			t.Errorf("%s %q: the backend got %q", test.line, test.fields, got)
		}
	}
	if len(heads) > 0 {
		t.Errorf("the backend got %q", <-heads)
	}
}
