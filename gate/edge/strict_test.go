package edge

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/upstream"
	"github.com/slotgate/slotgate/rules"
)

// What two readers could frame, route or name in two ways is refused, counted,
// and ends the connection; nothing of it reaches the backend.
func TestStrictHeads(t *testing.T) {
	url, heads := rawBackend(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	f := start(t, url, nil)
	for _, test := range []struct {
		name, raw string
		status    int
		kind      string
	}{
		{"length and chunks", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "framing"},
		{"identity", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\nContent-Length: 0\r\n\r\n", 400, "framing"},
		{"folding length", "POST / HTTP/1.1\r\nHost: x\r\nContent_Length: 5\r\n\r\n", 400, "framing"},
		{"folding length, lighttpd", "POST / HTTP/1.1\r\nHost: x\r\nContent.Length: 5\r\n\r\n", 400, "framing"},
		{"folding coding, lighttpd", "POST / HTTP/1.1\r\nHost: x\r\ntransfer!encoding: chunked\r\n\r\n", 400, "framing"},
		{"control character in a value", "GET / HTTP/1.1\r\nHost: x\r\nX-User-Id: ann\x0b\r\n\r\n", 400, "malformed"},
		{"escape character in a value", "GET / HTTP/1.1\r\nHost: x\r\nA: a\x1b[0mb\r\n\r\n", 400, "malformed"},
		{"DEL in a value", "GET / HTTP/1.1\r\nHost: x\r\nA: b\x7f\r\n\r\n", 400, "malformed"},
		{"vertical tab in the target", "GET /a\x0bb HTTP/1.1\r\nHost: x\r\n\r\n", 400, "malformed"},
		{"form feed in the query", "GET /a?b\x0cHTTP/1.1 HTTP/1.1\r\nHost: x\r\n\r\n", 400, "malformed"},
		{"tab in the target", "GET /a\tb HTTP/1.1\r\nHost: x\r\n\r\n", 400, "malformed"},
		{"DEL in the target", "GET /a?\x7f HTTP/1.1\r\nHost: x\r\n\r\n", 400, "malformed"},
		{"folding coding", "POST / HTTP/1.1\r\nHost: x\r\ntransfer_encoding: chunked\r\n\r\n", 400, "framing"},
		{"two lengths", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400, "malformed"},
		{"signed length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nhello", 400, "malformed"},
		{"two codings", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "malformed"},
		{"other coding", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400, "malformed"},
		{"chunks in 1.0", "POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "malformed"},
		{"blank before the colon", "GET / HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n", 400, "malformed"},
		{"blank in a name", "GET / HTTP/1.1\r\nHost: x\r\nA b: c\r\n\r\n", 400, "header"},
		{"folded line", "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", 400, "obs_fold"},
		{"bare line feed", "GET / HTTP/1.1\r\nHost: x\r\nA: b\nC: d\r\n\r\n", 400, "line_end"},
		{"NUL", "GET / HTTP/1.1\r\nHost: x\r\nA: b\x00\r\n\r\n", 400, "malformed"},
		{"no Host", "GET / HTTP/1.1\r\nA: b\r\n\r\n", 400, "malformed"},
		{"two Hosts", "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", 400, "malformed"},
		{"CONNECT", "CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n", 405, "connect"},
		{"absolute form", "GET http://y/ HTTP/1.1\r\nHost: x\r\n\r\n", 400, "absolute_form"},
		{"fragment", "GET /a#b HTTP/1.1\r\nHost: x\r\n\r\n", 400, "fragment"},
		{"method in small letters", "post / HTTP/1.1\r\nHost: x\r\n\r\n", 400, "method"},
		{"HTTP/1.2", "GET / HTTP/1.2\r\nHost: x\r\n\r\n", 505, "version"},
		{"HTTP/2.0", "GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505, "version"},
		{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "malformed"},
		{"no HTTP", "\x80\x03\x01\x02\x00\r\n\r\n", 400, "malformed"},
		{"TLS", "\x16\x03\x01\x02\x00\x01", 400, "tls"},
		{"absolute form, user", "GET http://u@x/ HTTP/1.1\r\nHost: x\r\n\r\n", 400, "absolute_form"},
		{"absolute form, both with user", "GET http://u@x/ HTTP/1.1\r\nHost: u@x\r\n\r\n", 400, "host"},
		{"absolute form, other port", "GET http://x:81/ HTTP/1.1\r\nHost: x\r\n\r\n", 400, "absolute_form"},
		{"absolute form, other scheme", "GET ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n", 400, "absolute_form"},
		{"absolute form, no host", "GET http:///a HTTP/1.1\r\nHost: x\r\n\r\n", 400, "absolute_form"},
		{"absolute form, fragment", "GET http://x/a#b HTTP/1.1\r\nHost: x\r\n\r\n", 400, "fragment"},
		{"authority form", "GET x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n", 400, "malformed"},
		{"asterisk for GET", "GET * HTTP/1.1\r\nHost: x\r\n\r\n", 400, "malformed"},
		{"slash in Host", "GET / HTTP/1.1\r\nHost: x/y\r\n\r\n", 400, "malformed"},
		{"blank in Host", "GET / HTTP/1.1\r\nHost: x y\r\n\r\n", 400, "malformed"},
		{"list of Hosts", "GET / HTTP/1.1\r\nHost: x, y:80\r\n\r\n", 400, "malformed"},
		{"port that is none", "GET / HTTP/1.1\r\nHost: x:8a\r\n\r\n", 400, "malformed"},
		{"HTTP/0.9", "GET /\r\n\r\n", 400, "malformed"},
		{"HTTP/0.9 with a version", "GET / HTTP/0.9\r\n\r\n", 505, "version"},
		{"version in small letters", "GET / http/1.1\r\nHost: x\r\n\r\n", 400, "malformed"},
		{"two blanks", "GET  / HTTP/1.1\r\nHost: x\r\n\r\n", 400, "malformed"},
		{"bare CR in a value", "GET / HTTP/1.1\r\nHost: x\r\nA: b\rC: d\r\n\r\n", 400, "malformed"},
		{"bare CR in the target", "GET /\rx HTTP/1.1\r\nHost: x\r\n\r\n", 400, "malformed"},
		{"empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 400, "malformed"},
		{"escape that is none", "GET /a%0g HTTP/1.1\r\nHost: x\r\n\r\n", 400, "path"},
		{"escape cut off", "GET /a%4 HTTP/1.1\r\nHost: x\r\n\r\n", 400, "path"},
		{"comma in Host", "GET / HTTP/1.1\r\nHost: x,y;z\r\n\r\n", 400, "host"},
		{"NUL in a name", "GET / HTTP/1.1\r\nHost: x\r\nA\x00: b\r\n\r\n", 400, "malformed"},
		{"NUL in the target", "GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n", 400, "malformed"},
		{"no name", "GET / HTTP/1.1\r\nHost: x\r\n: b\r\n\r\n", 400, "malformed"},
		{"no colon", "GET / HTTP/1.1\r\nHost: x\r\nA\r\n\r\n", 400, "malformed"},
		{"folded first line", "GET / HTTP/1.1\r\n A: b\r\nHost: x\r\n\r\n", 400, "malformed"},
		{"list of lengths", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5, 5\r\n\r\nhello", 400, "malformed"},
		{"negative length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\nhello", 400, "malformed"},
		{"length beyond counting", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\nhello", 400, "malformed"},
		{"hexadecimal length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0x5\r\n\r\nhello", 400, "malformed"},
		{"chunks first", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", 400, "malformed"},
		{"gzip and chunks", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400, "malformed"},
		{"head over the limit", "GET / HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 17<<10) + "\r\n\r\n", 431, "head_size"},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := f.meter.of(test.kind)
			c := dial(t, f.addr)
			c.send(test.raw)
			resp, body := c.answer("GET")
			if resp.StatusCode != test.status {
				t.Fatalf("status %d, want %d: %s", resp.StatusCode, test.status, body)
			}
			var problem decision.Problem
			if err := json.Unmarshal([]byte(body), &problem); err != nil || problem.Status != test.status ||
				problem.Detail == "" || problem.RequestID == "" || resp.Header.Get("Content-Type") != "application/problem+json" {
				t.Fatalf("no problem+json: %v %q", err, body)
			}
			if resp.Header.Get("Date") == "" || !resp.Close || len(resp.Header.Values("Server")) != 0 {
				t.Fatalf("header %v close %v", resp.Header, resp.Close)
			}
			if !c.closed() {
				t.Fatal("the connection stays open")
			}
			if got := f.meter.of(test.kind); got != before+1 {
				t.Fatalf("%q counted %d times; all: %v", test.kind, got-before, f.meter.count)
			}
		})
	}
	select {
	case head := <-heads:
		t.Fatalf("the backend got %q", head)
	default:
	}
}

// What is merely unusual passes.
func TestUnusualHeadsPass(t *testing.T) {
	f := start(t, echo(t).URL, nil)
	for _, test := range []struct{ raw, want string }{
		{"GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n", "GET /a?b "},
		{"\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", "GET / "},
		{"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", ""}, // net/http answers OPTIONS * itself
		{"M-SEARCH /x HTTP/1.1\r\nHost: x\r\n\r\n", "M-SEARCH /x "},
		{"GET /a/../b//c/%2e%2e;x=1?q=%zz HTTP/1.1\r\nHost: x\r\n\r\n", "GET /a/../b//c/%2e%2e;x=1?q=%zz "},
		{"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", "POST /x abc"},
		{"POST /x HTTP/1.1\r\nHost: x\r\ntransfer-encoding: Chunked\r\n\r\n1\r\na\r\n2;e=f\r\nbc\r\n0\r\nT: u\r\n\r\n", "POST /x abc"},
		{"GET /x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", "GET /x abc"},
		{"POST /x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n", "POST /x "},
		{"GET /old HTTP/1.0\r\n\r\n", "GET /old "},
		{"GET /lf HTTP/1.1\nHost: x\r\n\r\n", "GET /lf "}, // allowed by RFC 9112 section 2.2, and not handed on
		{"GET http://X:80/a?b HTTP/1.1\r\nHost: x:80\r\n\r\n", "GET /a?b "},
		{"GET https://x?b HTTP/1.1\r\nHost: x\r\n\r\n", "GET /?b "},
		{"GET HTTP://x HTTP/1.1\r\nHost: x\r\n\r\n", "GET / "},
		{"GET /a? HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "GET /a? "},

		{"GET /book HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", "GET /book abc"},
		{"POST /book HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "POST /book abc"},
	} {
		resp, body := ask(t, f.addr, test.raw)
		if resp.StatusCode == 100 { // read on
			continue
		}
		if resp.StatusCode != 200 || body != test.want {
			t.Errorf("%q: %d %q", test.raw, resp.StatusCode, body)
		}
	}
}

func TestSilentConnectionsGetNoAnswer(t *testing.T) {
	f := start(t, "", nil, func(c *rules.ServerConfig) { c.ReadTimeout = 50 * time.Millisecond })
	c := dial(t, f.addr)
	if !c.closed() {
		t.Fatal("a connection opened ahead of need was answered")
	}
	c = dial(t, f.addr)
	c.send("GET / HT")
	if resp, _ := c.answer("GET"); resp.StatusCode != 408 || f.meter.of("timeout") != 1 {
		t.Fatalf("half a head: %d, %v", resp.StatusCode, f.meter.count)
	}
}

// FuzzHead holds the head's reader against net/http: where both accept, they must
// agree on everything the next hop acts on.
func FuzzHead(f *testing.F) {
	for _, seed := range []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST /a?b=c HTTP/1.1\r\nHost: x:80\r\nContent-Length: 5\r\nx-A: b\r\nX-a: c\r\n\r\nhello",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
		"GET / HTTP/1.0\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: A, close\r\nA: b\r\n\r\n",
		"GET /%00/..;/x HTTP/1.1\r\nHost: x\r\nContent-Length : 1\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var h fasthttp.RequestHeader
		if h.Read(bufio.NewReaderSize(bytes.NewReader(raw), 16<<10)) != nil {
			return
		}
		var in head
		if refused := in.read(&h); refused != nil {
			return
		}
		for _, field := range in.fields {
			if !upstream.ValidName(field.Name) || strings.ContainsAny(field.Value, "\r\n\x00") {
				t.Fatalf("field %q: %q", field.Name, field.Value)
			}
		}
		kept, _ := clientFields(upstream.EndToEnd(in.fields), false)
		for _, field := range kept {
			if reserved(field.Name, false) || strings.EqualFold(field.Name, "Transfer-Encoding") || strings.EqualFold(field.Name, "Connection") {
				t.Fatalf("%q is handed on", field.Name)
			}
		}
		other, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			return
		}
		target := in.path
		if in.query != "" {
			target += "?" + in.query
		}
		if other.Method != in.method || strings.TrimSuffix(other.RequestURI, "?") != strings.TrimSuffix(target, "?") || other.Host != in.host {
			t.Fatalf("read %s %s of %q, net/http reads %s %s of %q", in.method, target, in.host, other.Method, other.RequestURI, other.Host)
		}
		if other.ContentLength != in.length {
			t.Fatalf("length %d, net/http reads %d", in.length, other.ContentLength)
		}
	})
}
