package upstream

import (
	"bufio"
	"net"
	"strings"
	"testing"

	"github.com/slotgate/slotgate/rules"
)

// The backend must get the client's fields in the order, the case and the number
// in which they were sent.
func TestHeadIsForwardedAsSent(t *testing.T) {
	got := make(chan received, 1)
	b := startBackend(t, func(c net.Conn, in *bufio.Reader, _ int) {
		r, _ := receive(in)
		got <- r
		_, _ = c.Write([]byte(ok("")))
	})
	c := newClient(t, b.addr)
	r := request("POST", "/a/../b//c/%2e%2e/d%2Fe;x=1", "abc",
		"x-lower", "1",
		"HOST", "Shop.Example",
		"X-Twice", "a",
		"Cookie", "a=1",
		"content-length", "3",
		"X-Twice", "b",
		"Cookie", "b=2",
		"Content-Type", "application/json",
		"Empty", "",
	)
	r.Query = "q=%zz&q=2"
	wantBody(t, c, r, "")
	want := "POST /a/../b//c/%2e%2e/d%2Fe;x=1?q=%zz&q=2 HTTP/1.1\r\n" +
		"x-lower: 1\r\n" +
		"HOST: Shop.Example\r\n" +
		"X-Twice: a\r\n" +
		"Cookie: a=1\r\n" +
		"content-length: 3\r\n" +
		"X-Twice: b\r\n" +
		"Cookie: b=2\r\n" +
		"Content-Type: application/json\r\n" +
		"Empty: \r\n" +
		"X-Request-Id: id-1\r\n\r\n"
	if r := <-got; r.head != want || r.body != "abc" {
		t.Fatalf("backend got\n%q\nwant\n%q\nbody %q", r.head, want, r.body)
	}
}

func TestHeadFraming(t *testing.T) {
	for _, test := range []struct {
		name, method, body string
		fields             []string
		want               string // lines besides the request line, Host and X-Request-Id
	}{
		{"no body, none announced", "GET", "", nil, ""},
		{"empty POST announces it", "POST", "", nil, "Content-Length: 0\r\n"},
		{"a wrong length is corrected in place", "POST", "abc", []string{"Content-Length", "7", "A", "b"}, "Content-Length: 3\r\nA: b\r\n"},
		{"a second length is dropped", "POST", "abc", []string{"Content-Length", "3", "Content-Length", "3"}, "Content-Length: 3\r\n"},
		{"chunks of a buffered body become a length", "POST", "abc", []string{"Transfer-Encoding", "chunked"}, "Content-Length: 3\r\n"},
		{"GET with a body", "GET", "abc", []string{"Content-Length", "3"}, "Content-Length: 3\r\n"},
		{"the client's close stays on its side", "GET", "", []string{"Connection", "close"}, ""},
		{"h2c is not asked for", "GET", "", []string{"Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c", "HTTP2-Settings", "AAMAAABk"}, ""},
		{"Expect is answered by the gate", "POST", "abc", []string{"Expect", "100-continue"}, "Content-Length: 3\r\n"},
		{"a sent request id stays", "GET", "", []string{"x-request-id", "mine"}, "x-request-id: mine\r\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := request(test.method, "/", test.body, test.fields...)
			got := string(appendHead(nil, r, "up:1", int64(len(test.body))))
			got = strings.TrimPrefix(got, test.method+" / HTTP/1.1\r\nHost: shop.example\r\n")
			got = strings.TrimSuffix(strings.TrimSuffix(got, "\r\n"), "X-Request-Id: id-1\r\n")
			if got != test.want {
				t.Fatalf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestHostOfARequestWithoutOne(t *testing.T) {
	r := request("GET", "/", "")
	r.Host = ""
	if got := string(appendHead(nil, r, "up:1", 0)); !strings.Contains(got, "\r\nHost: up:1\r\n") {
		t.Fatalf("no Host in %q", got)
	}
}

func TestEndToEnd(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"plain fields stay in order", "A: 1|B: 2|A: 3", "A: 1|B: 2|A: 3"},
		{"the fixed list, in any case", "connection: keep-alive|KEEP-ALIVE: timeout=5|Proxy-Connection: x|te: trailers|Trailer: X|Transfer-Encoding: chunked|UPGRADE: h2c|Proxy-Authenticate: x|Proxy-Authorization: x|Expect: 100-continue|HTTP2-Settings: x|Ok: 1", "Ok: 1"},
		{"what Connection names", "Connection: X-One, x-two|X-One: 1|X-Two: 2|X-Three: 3", "X-Three: 3"},
		{"several Connection lines", "Connection: close|X-A: 1|Connection: ,, x-a ,|X-B: 2", "X-B: 2"},
		{"names that only look alike", "Upgrades: 1|Tea: 2|TE2: 3|Trailers: 4", "Upgrades: 1|Tea: 2|TE2: 3|Trailers: 4"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var fields []rules.Field
			for line := range strings.SplitSeq(test.in, "|") {
				name, value, _ := strings.Cut(line, ": ")
				fields = append(fields, rules.Field{Name: name, Value: value})
			}
			var got []string
			for _, f := range EndToEnd(fields) {
				got = append(got, f.Name+": "+f.Value)
			}
			if s := strings.Join(got, "|"); s != test.want {
				t.Fatalf("got %q, want %q", s, test.want)
			}
		})
	}
}
