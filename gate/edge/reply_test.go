package edge

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

// rawAnswer reads the head of an answer as bytes.
func (c *client) rawAnswer() string {
	c.t.Helper()
	var head strings.Builder
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			c.t.Fatalf("after %q: %v", head.String(), err)
		}
		head.WriteString(line)
		if line == "\r\n" {
			return head.String()
		}
	}
}

const backendAnswer = "HTTP/1.1 201 Created\r\n" +
	"Date: Mon, 02 Jan 2006 15:04:05 GMT\r\n" +
	"x-lower: 1\r\n" +
	"Set-Cookie: a=1; Path=/\r\n" +
	"X-Twice: a\r\n" +
	"Set-Cookie: a=1; Path=/other\r\n" +
	"X-Twice: b\r\n" +
	"Content-Encoding: gzip\r\n" +
	"Content-Encoding: br\r\n" +
	"Gate-Hold: forged\r\n" +
	"Connection: keep-alive, X-Hop\r\n" +
	"X-Hop: 1\r\n" +
	"Keep-Alive: timeout=5\r\n" +
	"Server: legacy/1\r\n" +
	"Content-Length: 2\r\n\r\nhi"

// An answer keeps the backend's fields, repeated ones too, gets nothing invented,
// and loses what belongs to one connection. Only a gated one says so.
func TestFieldsOfAnAnswer(t *testing.T) {
	url, _ := rawBackend(t, backendAnswer)
	f := start(t, url, nil)
	for path, gated := range map[string]bool{"/": false, "/book": true} {
		c := dial(t, f.addr)
		c.send("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n")
		head := c.rawAnswer()
		for _, want := range []string{
			"HTTP/1.1 201 Created\r\n",
			"\r\nDate: Mon, 02 Jan 2006 15:04:05 GMT\r\n",
			"\r\nx-lower: 1\r\n",
			"\r\nSet-Cookie: a=1; Path=/\r\nSet-Cookie: a=1; Path=/other\r\n",
			"\r\nX-Twice: a\r\nX-Twice: b\r\n",
			"\r\nContent-Encoding: gzip, br\r\n",
			"\r\nServer: legacy/1\r\n",
			"\r\nContent-Length: 2\r\n",
		} {
			if strings.Count(head, want) != 1 {
				t.Errorf("%s: %q is not there once in\n%s", path, want, head)
			}
		}
		for _, unwanted := range []string{"Content-Type", "forged", "X-Hop", "Keep-Alive", "Connection", "Transfer-Encoding"} {
			if strings.Contains(head, unwanted) {
				t.Errorf("%s: %s in\n%s", path, unwanted, head)
			}
		}
		own := "Gate-Decision: admitted\r\nGate-Mode: normal\r\nGate-Rule: book\r\nGate-Outcome: booked\r\nGate-Hold: h1\r\n"
		if strings.Contains(head, own) != gated || strings.Contains(head, "Gate-") != gated {
			t.Errorf("%s: Gate-* fields in\n%s", path, head)
		}
	}
}

// A backend's odd fields are no reason to fail an answer: the booking is made.
func TestOddFieldsOfAnAnswer(t *testing.T) {
	fields := "dAtE: Mon, 02 Jan 2006 15:04:05 GMT\r\nX-Odd: a\x01b\x7f\xff c\r\nX-Empty: \r\n"
	url, _ := rawBackend(t, "HTTP/1.1 201 Created\r\n"+fields+"Content-Length: 2\r\n\r\nok")
	f := start(t, url, nil)
	for _, path := range []string{"/", "/book"} {
		c := dial(t, f.addr)
		c.send("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n")
		if head := c.rawAnswer(); !strings.Contains(head, fields) || strings.Count(strings.ToLower(head), "\r\ndate:") != 1 {
			t.Errorf("%s: want\n%q in\n%q", path, fields, head)
		}
	}
}

func TestGateHeadersCanBeHidden(t *testing.T) {
	url, _ := rawBackend(t, backendAnswer)
	f := start(t, url, nil, func(c *rules.ServerConfig) { c.GateHeaders = false })
	if resp, _ := ask(t, f.addr, "GET /book HTTP/1.1\r\nHost: x\r\n\r\n"); strings.Contains(fmt.Sprint(resp.Header), "Gate-") {
		t.Fatalf("header %v", resp.Header)
	}
}

// Answers without a body say how long it would have been, gated or not, and the
// connection goes on.
func TestAnswersWithoutBody(t *testing.T) {
	for _, test := range []struct{ name, method, raw, want string }{
		{"HEAD with a length", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", "Content-Length: 500"},
		{"HEAD in chunks", "HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "Transfer-Encoding: chunked"},
		{"204", "POST", "HTTP/1.1 204 No Content\r\n\r\n", ""},
		{"304", "GET", "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 7\r\n\r\n", "ETag: \"a\""},
	} {
		t.Run(test.name, func(t *testing.T) {
			url, _ := rawBackend(t, test.raw)
			f := start(t, url, nil)
			c := dial(t, f.addr)
			for _, path := range []string{"/", "/book", "/"} {
				c.send(test.method + " " + path + " HTTP/1.1\r\nHost: x\r\n\r\n")
				head := c.rawAnswer()
				if !strings.Contains(head, test.want) || strings.Contains(head, "Connection: close") ||
					test.name == "204" && strings.Contains(head, "Content-Length") {
					t.Fatalf("%s: %q", path, head)
				}
			}
		})
	}
}

func TestOwnAnswers(t *testing.T) {
	var reply *gate.Reply
	f := start(t, "", &testGate{serve: func(*gate.Request) *gate.Reply { return reply }})
	c := dial(t, f.addr)

	reply = own(decision.DecisionSoldOut)
	reply.Header = append(reply.Header, rules.Field{Name: "Retry-After", Value: "3"})
	c.send("POST /book HTTP/1.1\r\nHost: x\r\n\r\n")
	resp, body := c.answer("POST")
	if resp.StatusCode != 409 || resp.Header.Get("Gate-Decision") != "sold-out" || resp.Header.Get("Retry-After") != "3" ||
		resp.Header.Get("Content-Type") != "application/problem+json" || resp.Header.Get("Date") == "" || resp.Close ||
		!strings.Contains(body, `"type":"urn:slotgate:sold-out"`) {
		t.Fatalf("%d %v %s", resp.StatusCode, resp.Header, body)
	}
	if _, ok := resp.Header["Gate-Outcome"]; ok {
		t.Fatal("an outcome of what was not forwarded")
	}
	length := resp.ContentLength

	c.send("HEAD /book HTTP/1.1\r\nHost: x\r\n\r\n")
	if resp, body = c.answer("HEAD"); resp.ContentLength != length || body != "" {
		t.Fatalf("HEAD: length %d, want %d", resp.ContentLength, length)
	}

	reply = &gate.Reply{
		Answer:   decision.Answer{Status: 201, Header: []rules.Field{{Name: "Location", Value: "/b/1"}}, Body: []byte("kept")},
		Decision: decision.DecisionReplayed, Mode: gate.ModeDegraded, Bound: "backend", Rule: "book", Outcome: rules.Booked, Replayed: true,
	}
	c.send("POST /book HTTP/1.1\r\nHost: x\r\n\r\n")
	resp, body = c.answer("POST")
	if resp.StatusCode != 201 || body != "kept" || resp.Header.Get("Idempotent-Replayed") != "true" || resp.Header.Get("Location") != "/b/1" ||
		resp.Header.Get("Gate-Mode") != "degraded" || resp.Header.Get("Gate-Bound") != "backend" || resp.Header.Get("Date") == "" {
		t.Fatalf("%d %v %s", resp.StatusCode, resp.Header, body)
	}
}

// The memory of an answer is given back once, and after it was written.
func TestReleaseOfAnswers(t *testing.T) {
	for _, size := range []int{0, 10, copyBelow + 1, 1 << 20} {
		for _, method := range []string{"POST", "HEAD"} {
			released := make(chan struct{}, 2)
			body := []byte(strings.Repeat("x", size))
			f := start(t, "", &testGate{serve: func(*gate.Request) *gate.Reply {
				return &gate.Reply{
					Answer: decision.Answer{Status: 200, Body: body}, Decision: decision.DecisionAdmitted,
					Release: func() { clear(body); released <- struct{}{} },
				}
			}})
			resp, got := ask(t, f.addr, method+" /book HTTP/1.1\r\nHost: x\r\n\r\n")
			if method == "POST" && got != strings.Repeat("x", size) {
				t.Fatalf("%d bytes: body was changed before it was written", size)
			}
			if resp.StatusCode != 200 {
				t.Fatal(resp.StatusCode)
			}
			<-released
			if len(released) != 0 {
				t.Fatalf("%d bytes: released twice", size)
			}
		}
	}
}

func TestCORS(t *testing.T) {
	var reply *gate.Reply
	g := &testGate{serve: func(*gate.Request) *gate.Reply { return reply }}
	origins := func(o ...string) func(*rules.ServerConfig) {
		return func(c *rules.ServerConfig) { c.CORS.Origins = o }
	}
	listed := start(t, "", g, origins("https://shop.example"))
	anyone := start(t, "", g, origins("*"))
	off := start(t, "", g)
	admitted := func() *gate.Reply {
		return &gate.Reply{Answer: decision.Answer{Status: 200, Header: []rules.Field{{Name: "Access-Control-Allow-Origin", Value: "theirs"}}}, Decision: decision.DecisionAdmitted}
	}
	replayed := func() *gate.Reply {
		r := admitted()
		r.Decision, r.Replayed = decision.DecisionReplayed, true
		return r
	}
	soldOut := func() *gate.Reply { return own(decision.DecisionSoldOut) }
	for _, test := range []struct {
		name   string
		f      *fixture
		reply  func() *gate.Reply
		origin string
		want   string // Access-Control-Allow-Origin
		vary   string
	}{
		{"own answer", listed, soldOut, "https://shop.example", "https://shop.example", "Origin"},
		{"replay", listed, replayed, "https://shop.example", "https://shop.example", "Origin"},
		{"other origin", listed, soldOut, "https://evil.example", "", "Origin"},
		{"no origin", listed, soldOut, "", "", "Origin"},
		{"the backend's answer is the backend's", listed, admitted, "https://shop.example", "theirs", ""},
		{"any", anyone, soldOut, "https://evil.example", "*", "Origin"},
		{"off", off, soldOut, "https://shop.example", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			reply = test.reply()
			raw := "POST /book HTTP/1.1\r\nHost: x\r\n"
			if test.origin != "" {
				raw += "Origin: " + test.origin + "\r\n"
			}
			resp, _ := ask(t, test.f.addr, raw+"\r\n")
			if got := resp.Header.Values("Access-Control-Allow-Origin"); strings.Join(got, "|") != test.want {
				t.Fatalf("allowed %q, want %q", got, test.want)
			}
			if got := resp.Header.Get("Vary"); got != test.vary {
				t.Fatalf("Vary %q, want %q", got, test.vary)
			}
			exposes := strings.Contains(resp.Header.Get("Access-Control-Expose-Headers"), "Gate-Decision")
			if exposes != (test.want != "" && test.want != "theirs") {
				t.Fatalf("exposed %q", resp.Header.Get("Access-Control-Expose-Headers"))
			}
			if creds := resp.Header.Get("Access-Control-Allow-Credentials"); (creds == "true") != (test.want == "https://shop.example") {
				t.Fatalf("credentials %q", creds)
			}
		})
	}
	// The edge's own refusals can be read by a page too.
	resp, _ := ask(t, listed.addr, "GET /a#b HTTP/1.1\r\nHost: x\r\nOrigin: https://shop.example\r\n\r\n")
	if resp.StatusCode != 400 || resp.Header.Get("Access-Control-Allow-Origin") != "https://shop.example" {
		t.Fatalf("refusal: %d %v", resp.StatusCode, resp.Header)
	}
}

// A fault in the gate ends neither the process nor in a 500, and is counted.
func TestPanic(t *testing.T) {
	f := start(t, echo(t).URL, &testGate{serve: func(*gate.Request) *gate.Reply { panic("fault") }})
	resp, _ := ask(t, f.addr, "POST /book HTTP/1.1\r\nHost: x\r\n\r\n")
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || f.meter.of("panic") != 1 {
		t.Fatalf("%d %v %v", resp.StatusCode, resp.Header, f.meter.count)
	}
}

// Nothing in a reply can add a line to the head.
func TestNoLineIsInjected(t *testing.T) {
	f := start(t, "", &testGate{serve: func(*gate.Request) *gate.Reply {
		r := own(decision.DecisionSoldOut)
		r.Header = append(r.Header, rules.Field{Name: "A", Value: "b\r\nInjected: 1\x00"}, rules.Field{Name: "B: c\r\nInjected", Value: "2"})
		r.Rule = "book\r\n\r\n"
		return r
	}})
	resp, _ := ask(t, f.addr, "POST /book HTTP/1.1\r\nHost: x\r\n\r\n")
	if resp.StatusCode != 409 || resp.Header.Get("Injected") != "" || resp.Header.Get("A") != "b  Injected: 1" {
		t.Fatalf("%d %q", resp.StatusCode, resp.Header)
	}
}

func TestARuleThatIsOffIsPassedOnAllTheSame(t *testing.T) {
	f := start(t, echo(t).URL, &testGate{off: "/off"}, func(c *rules.ServerConfig) { c.Unmatched = "reject" })
	resp, _ := ask(t, f.addr, "GET /off HTTP/1.1\r\nHost: x\r\n\r\n")
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%d", resp.StatusCode)
	}
}

func TestUnmatchedCanBeRefused(t *testing.T) {
	f := start(t, "", nil, func(c *rules.ServerConfig) { c.Unmatched = "reject" })
	c := dial(t, f.addr)
	for range 2 {
		c.send("GET /other HTTP/1.1\r\nHost: x\r\n\r\n")
		resp, body := c.answer("GET")
		if resp.StatusCode != http.StatusNotFound || !strings.Contains(body, "server.unmatched") || strings.Contains(fmt.Sprint(resp.Header), "Gate-") {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
	}
}
