package edge

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/memstore"
	"github.com/slotgate/slotgate/rules"
)

func TestExpectContinue(t *testing.T) {
	f := start(t, echo(t).URL, nil)
	for _, path := range []string{"/x", "/book"} {
		c := dial(t, f.addr)
		c.send("POST " + path + " HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
		if resp, err := http.ReadResponse(c.in, nil); err != nil || resp.StatusCode != 100 {
			t.Fatalf("%s: %v %v", path, resp, err)
		}
		c.send("abc")
		if _, body := c.answer("POST"); body != "POST "+path+" abc" {
			t.Fatalf("%s: %q", path, body)
		}
	}
}

// A client that waits is answered without 100 where its body is not needed, and
// the connection, on which the body may be under way, ends.
func TestExpectRefusedBeforeTheBody(t *testing.T) {
	soldOut := &testGate{serve: func(*gate.Request) *gate.Reply { return own(decision.DecisionSoldOut) }}
	for _, test := range []struct {
		name, path, length string
		gate               *testGate
		status             int
	}{
		{"decided from the head", "/book", "3", soldOut, 409},
		{"over max_body", "/book", "3000000", nil, 413},
		{"refused by the edge", "/a%zz", "3", nil, 400},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := start(t, echo(t).URL, test.gate)
			c := dial(t, f.addr)
			c.send("POST " + test.path + " HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: " + test.length + "\r\n\r\n")
			resp, body := c.answer("POST")
			if resp.StatusCode != test.status || !resp.Close || len(body) == 0 {
				t.Fatalf("%d, close %v, %q", resp.StatusCode, resp.Close, body)
			}
			if !c.closed() {
				t.Fatal("the connection stays open")
			}
		})
	}
}

// 100 (Continue) keeps its place behind the answers to requests sent ahead.
func TestExpectBehindAnotherRequest(t *testing.T) {
	f := start(t, echo(t).URL, nil)
	for _, path := range []string{"/x", "/book"} {
		c := dial(t, f.addr)
		c.send("GET /first HTTP/1.1\r\nHost: x\r\n\r\nPOST " + path + " HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
		if _, body := c.answer("GET"); body != "GET /first " {
			t.Fatalf("%q", body)
		}
		if resp, err := http.ReadResponse(c.in, nil); err != nil || resp.StatusCode != 100 {
			t.Fatalf("%s: %v %v", path, resp, err)
		}
		c.send("abcGET /last HTTP/1.1\r\nHost: x\r\n\r\n")
		if _, body := c.answer("POST"); body != "POST "+path+" abc" {
			t.Fatalf("%q", body)
		}
		if _, body := c.answer("GET"); body != "GET /last " {
			t.Fatalf("%q", body)
		}
	}
}

// A client that gets its 100 and sends nothing, or goes, leaves nothing behind
// (the fixture looks at the budget).
func TestExpectWithoutABody(t *testing.T) {
	for _, path := range []string{"/x", "/book"} {
		f := start(t, echo(t).URL, nil, func(c *rules.ServerConfig) {
			c.ReadTimeout, c.IdleTimeout = 50*time.Millisecond, 50*time.Millisecond
		})
		head := "POST " + path + " HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
		c := dial(t, f.addr)
		c.send(head)
		if resp, err := http.ReadResponse(c.in, nil); err != nil || resp.StatusCode != 100 {
			t.Fatalf("%s: %v %v", path, resp, err)
		}
		if resp, body := c.answer("POST"); resp.StatusCode != 408 {
			t.Fatalf("%s: %d %q", path, resp.StatusCode, body)
		}
		gone := dial(t, f.addr)
		gone.send(head)
		if resp, err := http.ReadResponse(gone.in, nil); err != nil || resp.StatusCode != 100 {
			t.Fatalf("%s: %v %v", path, resp, err)
		}
		_ = gone.Close()
		if resp, _ := ask(t, f.addr, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na"); resp.StatusCode != 200 {
			t.Fatal(resp.StatusCode)
		}
	}
}

// whole is a server with a real gate, whose two rules need the body or do not.
func whole(t *testing.T, backendURL string, change ...func(*rules.ServerConfig)) (f *fixture, slot func() store.Slot) {
	t.Helper()
	cfg, faults := rules.Load("test.yaml", []byte(`
upstream: { url: "`+backendURL+`", timeout: 500ms }
pools:
  lessons: { capacity: 1, hold_ttl: 30s }
rules:
  - { name: head, match: { methods: [POST], path: "/head" }, action: book, pool: lessons, slot: "const:1", subject: header:X-Student }
  - { name: body, match: { methods: [POST], path: "/body" }, action: book, pool: lessons, slot: "const:1", subject: json:/student }
`), rules.LoadOptions{})
	if len(faults.Errors()) > 0 {
		t.Fatal(faults)
	}
	set, err := rules.NewSet(cfg)
	if err != nil {
		t.Fatal(err)
	}
	g := &testGate{}
	f = start(t, backendURL, g, change...)
	cfg.Server = f.config
	kept := memstore.New(memstore.Options{MaxMemory: 1 << 26})
	real, err := gate.New(gate.Options{Config: cfg, Set: set, Store: kept, Backend: f.backend, Meter: uncounted{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	f.Server.gate = real
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		real.Close(ctx)
		kept.Close()
	})
	return f, func() store.Slot {
		q, _ := real.Query("lessons", "1")
		s, err := kept.Slot(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

type uncounted struct{}

func (uncounted) Request(string, decision.Decision, time.Duration, time.Duration) {}
func (uncounted) Outcome(string, rules.Outcome, time.Duration)                    {}
func (uncounted) Oversold(string, int64)                                          {}
func (uncounted) Repeated(string)                                                 {}
func (uncounted) StoreError(string)                                               {}

const waitingPost = " HTTP/1.1\r\nHost: x\r\nX-Student: %s\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"

// Whether a waiting client is refused before it sends is the rule's doing; a body
// that then fails leaves the unit free when the client reads why, and every answer
// says which rule it was.
func TestExpectIsDecidedByTheRule(t *testing.T) {
	f, slot := whole(t, echo(t).URL, func(c *rules.ServerConfig) { c.MaxBody, c.ReadTimeout = 1<<10, 200*time.Millisecond })
	post := func(path, student, framing string) *client {
		c := dial(t, f.addr)
		c.send("POST " + path + fmt.Sprintf(waitingPost, student) + framing + "\r\n\r\n")
		return c
	}
	asked := func(c *client) *client {
		t.Helper()
		if resp, err := http.ReadResponse(c.in, nil); err != nil || resp.StatusCode != 100 {
			t.Fatal(resp, err)
		}
		return c
	}
	answered := func(c *client, status int, d decision.Decision, rule string) {
		t.Helper()
		resp, body := c.answer("POST")
		if resp.StatusCode != status || resp.Header.Get("Gate-Decision") != string(d) || resp.Header.Get("Gate-Mode") != "normal" || resp.Header.Get("Gate-Rule") != rule {
			t.Fatalf("%d %v %s", resp.StatusCode, resp.Header, body)
		}
		if status >= 400 && (!resp.Close || !c.closed()) {
			t.Fatal("the connection stays open")
		}
	}
	const chunked, length = "Transfer-Encoding: chunked", "Content-Length: 17"

	for _, framing := range []string{chunked, length} {
		answered(asked(post("/head", "ann", framing)), 408, decision.DecisionUnidentified, "head")
	}
	c := asked(post("/head", "ann", chunked))
	c.send("zz\r\n")
	answered(c, 400, decision.DecisionUnidentified, "head")
	c = asked(post("/head", "ann", chunked))
	c.send(chunks(strings.Repeat("x", 2<<10)))
	answered(c, 413, decision.DecisionTooLarge, "head")
	answered(post("/head", "ann", "Content-Length: 1025"), 413, decision.DecisionTooLarge, "head") // never asked for it
	gone := asked(post("/head", "ann", length))
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); slot().Held > 0; {
		if time.Now().After(deadline) {
			t.Fatal("the unit of a client that went away is kept")
		}
		time.Sleep(time.Millisecond)
	}
	if n := f.meter.of("timeout"); n != 2 || f.meter.of("body") != 1 {
		t.Fatalf("%v", f.meter.count)
	}

	c = asked(post("/head", "ann", length))
	c.send(`{"student":"ann"}`)
	answered(c, 200, decision.DecisionAdmitted, "head")
	if s := slot(); s.Confirmed != 1 || s.Held != 0 {
		t.Fatalf("%+v", s)
	}
	answered(post("/head", "bob", length), 409, decision.DecisionSoldOut, "head")
	answered(post("/head", "", length), 400, decision.DecisionUnidentified, "head")

	answered(asked(post("/body", "", length)), 408, decision.DecisionUnidentified, "body")
	c = asked(post("/body", "", length))
	c.send(`{"student":"bob"}`)
	if resp, _ := c.answer("POST"); resp.StatusCode != 409 || resp.Close {
		t.Fatalf("%d, close %v: the body was read", resp.StatusCode, resp.Close)
	}
	// A body that nothing can undo, and one that is slow without being asked for.
	resp, _ := ask(t, f.addr, "POST /body HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\n{}")
	if resp.StatusCode != 415 || resp.Header.Get("Gate-Decision") != "unsupported" || resp.Header.Get("Gate-Rule") != "body" {
		t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	c = dial(t, f.addr)
	c.send("POST /head HTTP/1.1\r\nHost: x\r\nX-Student: eve\r\nContent-Length: 9\r\n\r\nabc")
	answered(c, 408, decision.DecisionUnidentified, "head")
}
