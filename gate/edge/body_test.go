package edge

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

func chunks(body string) string {
	return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
}

// A gated body is read whole up to max_body, announced or not, and a client that
// goes on sending can still read why it was refused.
func TestBodyLimit(t *testing.T) {
	const limit = 100 << 10
	f := start(t, echo(t).URL, nil, func(c *rules.ServerConfig) { c.MaxBody = limit })
	fits, over, far := strings.Repeat("x", limit), strings.Repeat("x", limit+1), strings.Repeat("x", 8<<20)
	for _, test := range []struct {
		name, framing, body string
		status              int
	}{
		{"fits", fmt.Sprintf("Content-Length: %d", limit), fits, 200},
		{"fits, in chunks", "Transfer-Encoding: chunked", chunks(fits), 200},
		{"one byte over", fmt.Sprintf("Content-Length: %d", limit+1), over, 413},
		{"one byte over, in chunks", "Transfer-Encoding: chunked", chunks(over), 413},
		{"far over", fmt.Sprintf("Content-Length: %d", len(far)), far, 413},
		{"far over, in chunks", "Transfer-Encoding: chunked", chunks(far), 413},
		{"announces more than any number", "Content-Length: 999999999999999999", "x", 413},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := dial(t, f.addr)
			sent := make(chan struct{})
			go func() { // as clients do that read the answer when they have sent all
				defer close(sent)
				_, _ = io.WriteString(c, "POST /book HTTP/1.1\r\nHost: x\r\n"+test.framing+"\r\n\r\n"+test.body)
			}()
			if test.body != "x" {
				<-sent
			}
			resp, body := c.answer("POST")
			if resp.StatusCode != test.status || test.status == 200 && len(body) != len("POST /book ")+limit {
				t.Fatalf("%d, %d bytes", resp.StatusCode, len(body))
			}
			if test.status == 413 && (resp.Header.Get("Gate-Decision") != "too-large" || !resp.Close || !c.closed()) {
				t.Fatalf("%v, close %v", resp.Header, resp.Close)
			}
			<-sent
		})
	}
	// Ungated, the same body streams through.
	resp, body := ask(t, f.addr, "POST /other HTTP/1.1\r\nHost: x\r\nContent-Length: "+fmt.Sprint(len(far))+"\r\n\r\n"+far)
	if resp.StatusCode != 200 || len(body) != len("POST /other ")+len(far) {
		t.Fatalf("%d, %d bytes", resp.StatusCode, len(body))
	}
}

func TestBodiesInMemoryAreBounded(t *testing.T) {
	release, holding := make(chan struct{}), make(chan struct{})
	f := start(t, "", &testGate{serve: func(r *gate.Request) *gate.Reply {
		if _, err := r.ReadBody(); err != nil {
			return refused(err)
		}
		holding <- struct{}{}
		<-release
		return own(decision.DecisionSoldOut)
	}}, func(c *rules.ServerConfig) { c.MaxBuffered = 100 << 10 })
	raw := "POST /book HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n" + strings.Repeat("x", 60000)
	first := dial(t, f.addr)
	first.send(raw)
	<-holding
	for _, second := range []string{raw, "POST /book HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks(strings.Repeat("x", 60000))} {
		if resp, _ := ask(t, f.addr, second); resp.StatusCode != 503 || resp.Header.Get("Gate-Decision") != "busy" {
			t.Fatalf("%d %v", resp.StatusCode, resp.Header)
		}
	}
	close(release)
	if resp, _ := first.answer("POST"); resp.StatusCode != 409 {
		t.Fatal(resp.StatusCode)
	}
	go func() { <-holding }()
	if resp, _ := ask(t, f.addr, raw); resp.StatusCode != 409 {
		t.Fatalf("the memory did not come back: %d", resp.StatusCode)
	}
}

// Who announces long bodies and does not send them takes no room from those who do.
func TestAnnouncedBodiesTakeLittleMemory(t *testing.T) {
	reading := make(chan struct{})
	f := start(t, echo(t).URL, &testGate{serve: func(r *gate.Request) *gate.Reply {
		reading <- struct{}{}
		if _, err := r.ReadBody(); err != nil {
			return refused(err)
		}
		return own(decision.DecisionSoldOut)
	}}, func(c *rules.ServerConfig) { c.MaxBuffered = 100 << 10 })
	const idle, body = 16, 60000
	for range idle {
		dial(t, f.addr).send(fmt.Sprintf("POST /book HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\nx", body))
		<-reading
	}
	for deadline := time.Now().Add(5 * time.Second); f.budget.Used() < idle*firstChunk; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes are reserved", f.budget.Used())
		}
	}
	if used := f.budget.Used(); used > idle*firstChunk {
		t.Errorf("%d bytes are reserved for %d bodies that do not come", used, idle)
	}
	go func() { <-reading }()
	if resp, _ := ask(t, f.addr, fmt.Sprintf("POST /book HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", 20000)+strings.Repeat("x", 20000)); resp.StatusCode != 409 {
		t.Errorf("a body that comes: %d", resp.StatusCode)
	}
}

// A body that comes too slowly, or wrong, is counted and ends the connection; of a
// gated one the gate is told what is wrong. Of a client that has gone nothing is said.
func TestBadBodies(t *testing.T) {
	errs := make(chan error, 1)
	f := start(t, echo(t).URL, &testGate{serve: func(r *gate.Request) *gate.Reply {
		_, err := r.ReadBody()
		errs <- err
		return refused(err)
	}}, func(c *rules.ServerConfig) { c.ReadTimeout, c.IdleTimeout = 200*time.Millisecond, 200*time.Millisecond })
	for _, path := range []string{"/book", "/other"} {
		for _, test := range []struct {
			name, raw string
			status    int
			kind      string
		}{
			{"slow", "Content-Length: 30000\r\n\r\nabc", 408, "timeout"},
			{"slow chunk", "Transfer-Encoding: chunked\r\n\r\n5\r\nabc", 408, "timeout"},
			{"bad chunk", "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400, "body"},
			{"no end of a chunk", "Transfer-Encoding: chunked\r\n\r\n1\r\nabcdef\r\n", 400, "body"},
		} {
			t.Run(path+" "+test.name, func(t *testing.T) {
				before := f.meter.of(test.kind)
				c := dial(t, f.addr)
				c.send("POST " + path + " HTTP/1.1\r\nHost: x\r\n" + test.raw)
				resp, _ := c.answer("POST")
				if resp.StatusCode != test.status || !resp.Close || f.meter.of(test.kind) != before+1 {
					t.Fatalf("%d %v %v", resp.StatusCode, resp.Header, f.meter.count)
				}
				if told := map[string]error{"timeout": gate.ErrSlowBody, "body": gate.ErrBadBody}[test.kind]; path == "/book" {
					if err := <-errs; !errors.Is(err, told) {
						t.Fatal(err)
					}
				}
			})
		}
	}
	for _, framing := range []string{"Content-Length: 30000", "Transfer-Encoding: chunked"} {
		c := dial(t, f.addr)
		c.send("POST /book HTTP/1.1\r\nHost: x\r\n" + framing + "\r\n\r\n5\r\nabc")
		_ = c.Close()
		if err := <-errs; !errors.Is(err, gate.ErrClientGone) {
			t.Fatalf("%s: %v", framing, err)
		}
	}
	if f.meter.of("body") != 4 || f.meter.of("timeout") != 4 {
		t.Fatalf("clients that went away were counted: %v", f.meter.count)
	}
}

// A gate that answers without reading the body ends the connection, or the body
// would be read as the next request. So does one that has read a part of it.
func TestUnreadBody(t *testing.T) {
	asked := 0
	f := start(t, "", &testGate{serve: func(r *gate.Request) *gate.Reply {
		if asked++; strings.HasSuffix(r.Path, "/read") {
			_, _ = r.ReadBody()
		}
		return own(decision.DecisionSoldOut)
	}}, func(c *rules.ServerConfig) { c.MaxBody = 10 })
	smuggled := "GET /book HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, path := range []string{"/book", "/book/read"} {
		for _, framing := range []string{
			"Content-Length: " + fmt.Sprint(len(smuggled)) + "\r\n\r\n",
			"Transfer-Encoding: chunked\r\n\r\n",
			"Transfer-Encoding: chunked\r\n\r\nffff\r\n",
		} {
			asked = 0
			c := dial(t, f.addr)
			c.send("POST " + path + " HTTP/1.1\r\nHost: x\r\n" + framing + smuggled)
			if resp, _ := c.answer("POST"); resp.StatusCode != 409 || !resp.Close || !c.closed() || asked != 1 {
				t.Fatalf("%s %q: %d, close %v, %d requests", path, framing, resp.StatusCode, resp.Close, asked)
			}
		}
	}
}
