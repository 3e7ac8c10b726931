package edge

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
)

// Requests use the memory of those before them. Each is what its client sent all the
// same, longer or shorter than the last one, and its texts stay what they are when others
// have come: a store, a log or a journal may look at them later.
func TestRequestsDoNotLeakIntoEachOther(t *testing.T) {
	const clients, requests = 8, 200
	type seen struct{ path, id, note, text string }
	var mu sync.Mutex
	var kept []seen
	serve := func(r *gate.Request) *gate.Reply {
		body, err := r.ReadBody()
		if err != nil {
			return refused(err)
		}
		s := seen{r.Path, r.ID, fieldValue(r.Header, "X-Note"), r.Texts.Of(body)}
		mu.Lock()
		kept = append(kept, s)
		mu.Unlock()
		reply := own(decision.DecisionSoldOut)
		reply.Body = []byte(strings.Join([]string{s.path, s.id, s.note, s.text}, " "))
		return reply
	}
	f := start(t, echo(t).URL, &testGate{serve: serve})
	ask := func(t *testing.T, client int) {
		c := dial(t, f.addr)
		for i := range requests {
			text := strings.Repeat(fmt.Sprintf("%d-%d.", client, i), 1+(i*37+client)%90)
			id := fmt.Sprintf("id-%d-%d", client, i)
			head := "Host: x\r\nX-Request-Id: " + id + "\r\nX-Note: " + text + "\r\n"
			method, path, body, want := "POST", "/book/"+id, text, "/book/"+id+" "+id+" "+text+" "+text
			switch i % 4 {
			case 1: // without a body, and without the id
				head, body = "Host: x\r\nX-Note: "+text+"\r\n", ""
			case 2:
				path, want = "/page/"+id, "POST /page/"+id+" "+text
			case 3:
				method, path, body, want = "GET", "/page/"+id, "", "GET /page/"+id+" "
			}
			if method == "POST" {
				head += fmt.Sprintf("Content-Length: %d\r\n", len(body))
			}
			if _, err := fmt.Fprintf(c, "%s %s HTTP/1.1\r\n%s\r\n%s", method, path, head, body); err != nil {
				t.Fatal(err)
			}
			_, got := c.answer(method)
			if i%4 == 1 { // the id is the gate's
				parts := strings.Split(got, " ")
				if len(parts) != 4 || len(parts[1]) != 26 || parts[0] != path || parts[2] != text || parts[3] != "" {
					t.Errorf("request %s: %q", id, got)
				}
			} else if got != want {
				t.Errorf("request %s: %q, want %q", id, got, want)
			}
		}
	}
	t.Run("clients", func(t *testing.T) {
		for client := range clients {
			t.Run(fmt.Sprint(client), func(t *testing.T) {
				t.Parallel()
				ask(t, client)
			})
		}
	})
	for _, s := range kept {
		id := strings.TrimPrefix(s.path, "/book/")
		var client, i int
		if _, err := fmt.Sscanf(id, "id-%d-%d", &client, &i); err != nil {
			t.Fatalf("path %q: %v", s.path, err)
		}
		text := strings.Repeat(fmt.Sprintf("%d-%d.", client, i), 1+(i*37+client)%90)
		if s.note != text || i%4 != 1 && (s.id != id || s.text != text) || i%4 == 1 && (len(s.id) != 26 || s.text != "") {
			t.Errorf("kept of %s: %+v", id, s)
		}
	}
	if len(kept) != clients*requests/2 {
		t.Errorf("%d gated requests, want %d", len(kept), clients*requests/2)
	}
}
