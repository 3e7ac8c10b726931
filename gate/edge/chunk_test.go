package edge

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/rules"
)

// Chunks that two readers could count in two ways are refused, gated or not, and the
// backend never has a whole request of them.
func TestBadChunks(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil {
			t.Errorf("the backend has a whole request: %.200q", body)
		}
	}))
	defer backend.Close()
	f := start(t, backend.URL, nil, func(c *rules.ServerConfig) { c.ReadTimeout, c.IdleTimeout = 300*time.Millisecond, 300*time.Millisecond })
	for name, body := range map[string]string{
		"blank in the size":         "5 0\r\nhello\r\n0\r\n\r\n",
		"blank before the size":     " 5\r\nhello\r\n0\r\n\r\n",
		"tab before the size":       "\t5\r\nhello\r\n0\r\n\r\n",
		"blank before extension":    "5 ;a=b\r\nhello\r\n0\r\n\r\n",
		"prefix of hexadecimal":     "0x5\r\nhello\r\n0\r\n\r\n",
		"signed size":               "+5\r\nhello\r\n0\r\n\r\n",
		"negative size":             "-5\r\nhello\r\n0\r\n\r\n",
		"underscore":                "0_5\r\nhello\r\n0\r\n\r\n",
		"no size":                   "\r\nhello\r\n0\r\n\r\n",
		"no digit":                  "zz\r\nhello\r\n0\r\n\r\n",
		"size beyond counting":      "ffffffffffffffff5\r\nhello\r\n0\r\n\r\n",
		"size that wraps":           "10000000000000005\r\nhello\r\n0\r\n\r\n",
		"size ends in a line feed":  "5\nhello\r\n0\r\n\r\n",
		"size ends in a CR":         "5\rhello\r\n0\r\n\r\n",
		"extension holds a LF":      "5;a\nb\r\nhello\r\n0\r\n\r\n",
		"extension holds a CR":      "5;a\rb\r\nhello\r\n0\r\n\r\n",
		"data longer than its size": "5\r\nhello!\r\n0\r\n\r\n",
		"data ends in a line feed":  "5\r\nhello\n0\r\n\r\n",
		"data ends in nothing":      "5\r\nhello0\r\n\r\n",
		"NUL":                       "5\x00\r\nhello\r\n0\r\n\r\n",
		"last chunk ends in LF":     "5\r\nhello\r\n0\n\r\n",
		"trailer ends in LF":        "5\r\nhello\r\n0\r\nA: b\n\r\n",
		"trailer without a name":    "5\r\nhello\r\n0\r\n: b\r\n\r\n",
		"trailer without a colon":   "5\r\nhello\r\n0\r\nA\r\n\r\n",
		"long trailers":             "5\r\nhello\r\n0\r\n" + strings.Repeat("A: b\r\n", 1<<17) + "\r\n",
		"trailer with a length":     "5\r\nhello\r\n0\r\nContent-Length: 9\r\n\r\n",
	} {
		for _, path := range []string{"/x", "/book"} {
			t.Run(name+" "+path, func(t *testing.T) {
				c := dial(t, f.addr)
				go func() {
					_, _ = io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"+body)
				}()
				resp, got := c.answer("POST")
				if resp.StatusCode != 400 && resp.StatusCode != 408 || !resp.Close || !c.closed() {
					t.Errorf("%d, close %v: %.200q", resp.StatusCode, resp.Close, got)
				}
			})
		}
	}
}

// A body of no bytes is one, however it is framed: the next request on each
// connection is its own.
func TestEmptyBodies(t *testing.T) {
	f := start(t, echo(t).URL, nil)
	c := dial(t, f.addr)
	for _, path := range []string{"/x", "/book"} {
		for _, framing := range []string{
			"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			"Transfer-Encoding: chunked\r\n\r\n000;a=b\r\nA: b\r\n\r\n",
			"Content-Length: 0\r\n\r\n",
			"Content-Length: 000\r\n\r\n",
			"\r\n",
		} {
			for _, method := range []string{"POST", "GET", "DELETE"} {
				c.send(method + " " + path + " HTTP/1.1\r\nHost: x\r\n" + framing + method + " " + path + "/next HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi")
				for _, want := range []string{" ", "/next hi"} {
					if _, body := c.answer(method); body != method+" "+path+want {
						t.Fatalf("%s %q: %q", path, framing, body)
					}
				}
			}
		}
	}
}

// What comes behind a body is no field of the request: not for the rules, before or
// after the body was read, and not for the backend.
func TestTrailersAreNoFields(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(w, r.Header["X-Student"], r.Header["Idempotency-Key"], r.ContentLength)
	}))
	defer backend.Close()
	g := &testGate{}
	f := start(t, backend.URL, g)
	forward := g.serve
	g.serve = func(r *gate.Request) *gate.Reply {
		before := slices.Clone(r.Header)
		reply := forward(r)
		if !slices.Equal(before, r.Header) {
			t.Errorf("the trailers became fields: %v", r.Header)
		}
		return reply
	}
	const trailers = "5\r\nhello\r\n0\r\nX-Student: eve\r\nIdempotency-Key: k2\r\n\r\n"
	for path, length := range map[string]string{"/x": "-1", "/book": "5"} {
		for _, announced := range []string{"", "Trailer: X-Student, Idempotency-Key\r\n"} {
			resp, body := ask(t, f.addr, "POST "+path+" HTTP/1.1\r\nHost: x\r\nX-Student: ann\r\nTransfer-Encoding: chunked\r\n"+announced+"\r\n"+trailers)
			if want := "[ann] [] " + length; resp.StatusCode != 200 || body != want {
				t.Errorf("%s %q: %d %q, want %q", path, announced, resp.StatusCode, body, want)
			}
		}
	}
}
