package edge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

// The rules and the backend see the same fields: the client's, as sent, without
// what only the gate may say.
func TestFieldsOfARequest(t *testing.T) {
	url, heads := rawBackend(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	var seen []rules.Field
	g := &testGate{route: func(r *gate.Request) (rules.Match, *gate.Reply) {
		seen = append([]rules.Field(nil), r.Header...)
		return rules.Match{}, nil
	}}
	f := start(t, url, g)
	ask(t, f.addr, "GET /A%2fb?x=1 HTTP/1.1\r\n"+
		"x-lower: 1\r\n"+
		"HOST: Shop.Example\r\n"+
		"X-Twice: a\r\n"+
		"Cookie: a=1\r\n"+
		"Connection: keep-alive, X-Mine\r\n"+
		"X-Mine: secret\r\n"+
		"Keep-Alive: 5\r\n"+
		"Upgrade: websocket\r\n"+
		"TE: trailers\r\n"+
		"Proxy-Authorization: x\r\n"+
		"X-Forwarded-For: 6.6.6.6\r\n"+
		"x_forwarded_proto: https\r\n"+
		"X-Forwarded-User: root\r\n"+
		"Forwarded: for=6.6.6.6\r\n"+
		"Gate-Hold: forged\r\n"+
		"GATE_MODE: forged\r\n"+
		"gate.decision: forged\r\n"+
		"Gate~Rule: forged\r\n"+
		"X.Forwarded.For: 6.6.6.6\r\n"+
		"X-Forwarded|Host: evil.test\r\n"+
		"X-Twice: b\r\n"+
		"Cookie: b=2\r\n"+
		"X-Request-Id: my id is not valid\r\n"+
		"User-Agent:   blanks   \r\n\r\n")
	want := "GET /A%2fb?x=1 HTTP/1.1\r\n" +
		"x-lower: 1\r\n" +
		"HOST: Shop.Example\r\n" +
		"X-Twice: a\r\n" +
		"Cookie: a=1\r\n" +
		"X-Twice: b\r\n" +
		"Cookie: b=2\r\n" +
		"User-Agent: blanks\r\n" +
		"X-Forwarded-For: 127.0.0.1\r\n" +
		"X-Forwarded-Host: Shop.Example\r\n" +
		"X-Forwarded-Proto: http\r\n" +
		"Forwarded: for=127.0.0.1;host=Shop.Example;proto=http\r\n" +
		"Via: 1.1 slotgate\r\n"
	head := <-heads
	own, ok := strings.CutPrefix(head, want)
	if !ok {
		t.Fatalf("backend got\n%s\nwant\n%s", head, want)
	}
	name, id, _ := strings.Cut(strings.TrimSpace(own), ": ")
	if name != "X-Request-Id" || !validID(id) || len(id) < 20 {
		t.Fatalf("request id %q", own)
	}
	var lines []string
	for _, field := range seen {
		lines = append(lines, field.Name+": "+field.Value+"\r\n")
	}
	if got := strings.Join(lines, ""); "GET /A%2fb?x=1 HTTP/1.1\r\n"+got != want {
		t.Fatalf("the rules saw\n%s", got)
	}
}

func TestRequestID(t *testing.T) {
	var got *gate.Request
	f := start(t, echo(t).URL, &testGate{serve: func(r *gate.Request) *gate.Reply {
		got = copied(r)
		return own(decision.DecisionSoldOut)
	}})
	for _, test := range []struct{ sent, want string }{
		{"X-Request-Id: abc-123\r\n", "abc-123"},
		{"x-request-id: " + strings.Repeat("a", 128) + "\r\n", strings.Repeat("a", 128)},
		{"", ""},
		{"X-Request-Id: " + strings.Repeat("a", 129) + "\r\n", ""},
		{"X-Request-Id:\r\n", ""},
		{"X-Request-Id: a b\r\n", ""},
		{"X-Request-Id: \xc3\xa9\r\n", ""},
		{"X-Request-Id: a\r\nX-Request-Id: b\r\n", ""},
	} {
		ask(t, f.addr, "POST /book HTTP/1.1\r\nHost: x\r\n"+test.sent+"\r\n")
		if test.want != "" && got.ID != test.want || test.want == "" && (!validID(got.ID) || strings.Contains(test.sent, got.ID)) {
			t.Errorf("%q became %q", test.sent, got.ID)
		}
		if has := strings.Contains(fmt.Sprint(got.Header), "-Id") || strings.Contains(fmt.Sprint(got.Header), "-id"); has != (test.want != "") {
			t.Errorf("%q: header is %v", test.sent, got.Header)
		}
	}
}

func TestForwardPathNormalized(t *testing.T) {
	f := start(t, echo(t).URL, nil, func(c *rules.ServerConfig) { c.ForwardPath = "normalized" })
	for sent, want := range map[string]string{
		"/a/../b//c/%7e%2fx?q=%7e": "",
		"/a/../b//c/%7e?q=%7e":     "/b/c/~?q=%7e",
		"/%61?":                    "/a?",
		"/a\\b":                    "",
	} {
		resp, body := ask(t, f.addr, "GET "+sent+" HTTP/1.1\r\nHost: x\r\n\r\n")
		if want == "" && (resp.StatusCode != 400 || f.meter.of("path") == 0) || want != "" && body != "GET "+want+" " {
			t.Errorf("%s: %d %q", sent, resp.StatusCode, body)
		}
	}
}
