package edge

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/rules"
)

// A body that Route has read to find no rule goes on whole, however it was framed;
// one that never ended is answered as a slow or a wrong one.
func TestBodyReadByRouteGoesOn(t *testing.T) {
	read := errors.New("nobody has read it")
	f := start(t, echo(t).URL, &testGate{route: func(r *gate.Request) (rules.Match, *gate.Reply) {
		if _, read = r.ReadBody(); read != nil {
			return rules.Match{}, refused(read)
		}
		return rules.Match{}, nil
	}}, func(c *rules.ServerConfig) { c.MaxBody = 1 << 10 })
	const form = "a=1&_method=link"
	for framing, body := range map[string]string{
		fmt.Sprintf("Content-Length: %d", len(form)): form,
		"Transfer-Encoding: chunked":                 chunks(form),
	} {
		resp, got := ask(t, f.addr, "POST /form HTTP/1.1\r\nHost: x\r\n"+framing+"\r\n\r\n"+body)
		if resp.StatusCode != 200 || got != "POST /form "+form || read != nil {
			t.Errorf("%s: %d %q, %v", framing, resp.StatusCode, got, read)
		}
	}
	c := dial(t, f.addr)
	if _, err := io.WriteString(c, "POST /form HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"); err != nil {
		t.Fatal(err)
	}
	if resp, _ := c.answer("POST"); resp.StatusCode != 400 || !resp.Close {
		t.Errorf("a wrong chunk: %d, close %v", resp.StatusCode, resp.Close)
	}
}
