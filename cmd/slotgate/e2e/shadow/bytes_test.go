package shadow

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
)

// gated is a configuration whose rules refuse, read and keep as much as they can: few
// units, short bodies, required keys, one subject, limits, conditions on answers.
const gated = `
upstream: { url: "BACKEND", timeout: 20s }
pools:
  few: { capacity: 3, one_per_subject: true, max_inflight: 1, queue: { size: 1, wait: 1s }, hold_ttl: 2m }
rules:
  - name: keyed
    match: { methods: [POST, PUT, GET], path: "/keyed/{slot}/{shape}" }
    action: book
    pool: few
    slot: path:slot
    subject: json:/student
    units: json:/units
    reference: json:/id
    idempotency: { required: true }
    limits: { subject: { rate: 5/s, burst: 5 } }
    outcomes: [ { when: { json: { /code: 0 } }, is: booked }, { when: { json: { /code: 7 } }, is: sold_out } ]
    retry: { on: [busy], attempts: 3 }
    answers: { sold_out: { status: 200, body: "gone" } }
    mode: MODE
  - name: plain
    match: { methods: [POST, DELETE], path: "/plain/{slot}/{shape}" }
    action: book
    pool: few
    slot: path:slot
    subject: header:X-Student
    mode: MODE
  - name: form
    match: { methods: [PATCH], path: "/form/{slot}/{shape}" }
    action: book
    pool: few
    slot: path:slot
    subject: form:student
    mode: MODE
  - name: undo
    match: { methods: [DELETE], path: "/keyed/{slot}/{student}/{shape}" }
    action: cancel
    pool: few
    slot: path:slot
    subject: path:student
    mode: MODE
`

func door(backend, mode string) string {
	return strings.NewReplacer("BACKEND", backend, "MODE", mode).Replace(gated)
}

// request is one raw request. Strict ones are refused by the gate's own HTTP strictness,
// whatever the rules: they are not compared with the backend itself.
type request struct {
	text   string
	strict bool
}

// draw makes a request of one of many shapes; a third of them are what clients should send.
func draw(r *rand.Rand, i int) request {
	if r.IntN(3) == 0 {
		body := fmt.Sprintf(`{"student":%d,"units":1}`, r.IntN(4))
		return request{fmt.Sprintf("POST /keyed/%d/%s HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\nX-Request-Id: request-%d\r\n"+
			"Idempotency-Key: a-good-key-number-%d\r\nAuthorization: Bearer a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			4+r.IntN(3), []string{"ok", "ok", "ok", "gzip", "409"}[r.IntN(5)], i, r.IntN(200), len(body), body), false}
	}
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	var head, body strings.Builder
	method := pick("POST", "POST", "POST", "POST", "PUT", "GET", "HEAD", "DELETE", "PATCH")
	shape := pick("ok", "ok", "201", "404", "409", "422", "500", "503", "empty", "unchanged", "hints", "chunked", "trailers", "gzip", "big", "moved")
	path := "/" + pick("keyed", "keyed", "plain", "form", "other") + "/" + pick("1", "2", "3", "a%20b") + "/" + shape
	strict := false
	switch r.IntN(12) {
	case 0:
		path = strings.Replace(path, "/1/", "/1%2F2/", 1)
	case 1:
		path += "?student=1&student=2&_method=" + pick("DELETE", "PATCH", "")
	case 2:
		path = strings.Replace(path, "/", "//", 1)
	case 3:
		path, strict = "/keyed/%zz/ok", true // the gate refuses it, rule or not
	}
	version := "HTTP/1.1"
	if r.IntN(12) == 0 {
		version = "HTTP/1.0"
	}
	fmt.Fprintf(&head, "%s %s %s\r\nHost: shop.test\r\nConnection: close\r\nUser-Agent: test\r\nX-Request-Id: request-%d\r\n", method, path, version, i)
	if r.IntN(3) > 0 {
		fmt.Fprintf(&head, "Idempotency-Key: key-number-%d-of-many\r\n", r.IntN(6))
	}
	if r.IntN(8) == 0 {
		head.WriteString("Idempotency-Key: a second key\r\n")
	}
	if r.IntN(2) == 0 {
		fmt.Fprintf(&head, "X-Student: %d\r\n", r.IntN(4))
	}
	if r.IntN(10) == 0 {
		head.WriteString("X-HTTP-Method-Override: " + pick("DELETE", "PATCH", "not a method") + "\r\n")
	}
	if method != "GET" && method != "HEAD" || r.IntN(10) == 0 {
		fmt.Fprintf(&body, `{"student":%d,"units":%s}`, r.IntN(4), pick("1", "1", "1", "2", "9", "0", `"x"`))
		switch r.IntN(20) {
		case 0, 1:
			body.Reset() // nothing
		case 2, 3:
			body.WriteString("}") // broken
		case 4, 5:
			body.WriteString(strings.Repeat(" ", 100<<10))
		case 6:
			body.WriteString(strings.Repeat(" ", 1100<<10)) // longer than the gate reads
		}
		head.WriteString("Content-Type: " + pick("application/json", "application/json", "application/json",
			"application/x-www-form-urlencoded", "text/plain", "application/json; charset=utf-16") + "\r\n")
		if r.IntN(10) == 0 {
			head.WriteString("Content-Encoding: " + pick("gzip", "br") + "\r\n")
		}
	}
	switch {
	case body.Len() == 0 && (method == "GET" || method == "HEAD" || method == "DELETE"):
		return request{head.String() + "\r\n", strict}
	case version == "HTTP/1.1" && r.IntN(3) == 0:
		head.WriteString("Transfer-Encoding: chunked\r\nTrailer: X-Last\r\n\r\n")
		for text := body.String(); text != ""; {
			n := min(len(text), 1+r.IntN(5000))
			fmt.Fprintf(&head, "%x\r\n%s\r\n", n, text[:n])
			text = text[n:]
		}
		head.WriteString("0\r\nX-Last: yes\r\n\r\n")
		return request{head.String(), strict}
	}
	fmt.Fprintf(&head, "Content-Length: %d\r\n\r\n%s", body.Len(), body.String())
	return request{head.String(), strict}
}

// TestShadowIsInvisible: what a client gets through a rule in shadow is what it gets with
// the rule off, byte for byte, and what the backend itself answers, apart from Gate-*.
func TestShadowIsInvisible(t *testing.T) {
	backend := stage.Serve(t, shapes{})
	off := stage.StartGate(t, door(backend, "off"))
	shadow := stage.StartGate(t, door(backend, "shadow"))
	const clients, requests = 4, 400 // each
	var seen tally
	t.Run("storm", func(t *testing.T) {
		for client := range clients {
			t.Run(fmt.Sprint(client), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(8, uint64(client)))
				for i := range requests {
					seen.add(compare(t, draw(r, i), off.URL, shadow.URL, backend))
				}
			})
		}
	})
	t.Logf("%d requests; enforce would have said %v", clients*requests, seen.counts)
	for _, decision := range []string{"none", "admitted", "sold-out", "duplicate", "replayed", "key-missing", "key-invalid",
		"key-mismatch", "rate-limited", "unidentified", "ambiguous", "unsupported", "too-large"} {
		if seen.counts[decision] == 0 {
			t.Errorf("no request that enforce would have answered with %s", decision)
		}
	}
}

// tally counts words, from many goroutines.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *tally) add(word string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	c.counts[word]++
}

// compare sends one request through a gate with its rules off, through one with them in
// shadow, and straight to the backend. It returns what shadow says.
func compare(t *testing.T, q request, off, shadow, backend string) (would string) {
	t.Helper()
	passed, watched := split(t, exchange(t, off, q.text)), split(t, exchange(t, shadow, q.text))
	if q.strict { // the gate's own answer, at its own time
		passed.head, watched.head = undated(passed.head), undated(watched.head)
	}
	if len(passed.gate) > 0 {
		t.Fatalf("%.300q: a rule that is off adds %q", q.text, passed.gate)
	}
	if !slices.Equal(passed.head, watched.head) || !bytes.Equal(passed.payload, watched.payload) || passed.tail != watched.tail {
		t.Fatalf("%.600q:\noff    %q\n%.300q %q\nshadow %q\n%.300q %q", q.text, passed.head, passed.payload, passed.tail, watched.head, watched.payload, watched.tail)
	}
	// The framing of an answer to HTTP/1.0 is another story.
	if !q.strict && !strings.Contains(q.text, "HTTP/1.0\r\n") {
		direct := split(t, exchange(t, backend, q.text))
		if !slices.Equal(direct.endToEnd(), watched.endToEnd()) || !bytes.Equal(direct.payload, watched.payload) || direct.tail != watched.tail {
			t.Fatalf("%.600q:\ndirect %q\n%.600q %q\nshadow %q\n%.600q %q", q.text, direct.endToEnd(), direct.payload, direct.tail, watched.endToEnd(), watched.payload, watched.tail)
		}
	}
	return watched.would()
}

// TestShadowIsInvisibleWhereTheBackendFails: what the gate itself answers for a backend that
// failed, and where it breaks an answer off.
func TestShadowIsInvisibleWhereTheBackendFails(t *testing.T) {
	backend := stage.Serve(t, shapes{})
	off, shadow := stage.StartGate(t, door(backend, "off")), stage.StartGate(t, door(backend, "shadow"))
	for _, path := range []string{"/keyed/read-", "/plain/told-"} {
		for shape, want := range map[string]string{"cut": "upstream-failed", "cut-long": "upstream-failed", "nothing": "upstream-failed"} {
			if path == "/plain/told-" && shape == "cut-long" {
				want = "admitted" // its head tells all that the rule asks for, and is told on before
			}
			text := "POST " + path + shape + "/" + shape + " HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\nX-Request-Id: one\r\nX-Student: " + shape +
				"\r\nIdempotency-Key: key-of-" + shape + "\r\nContent-Type: application/json\r\nContent-Length: 27\r\n\r\n" + fmt.Sprintf("%-27s", `{"student":"`+shape[:3]+`","units":1}`)
			passed, watched := exchange(t, off.URL, text), exchange(t, shadow.URL, text)
			passedHead, passedBody, _ := bytes.Cut(passed, []byte("\r\n\r\n"))
			watchedHead, watchedBody, _ := bytes.Cut(watched, []byte("\r\n\r\n"))
			bare := func(head []byte) []string {
				return slices.DeleteFunc(undated(strings.Split(string(head), "\r\n")), func(line string) bool { return strings.HasPrefix(line, "Gate-") })
			}
			if !slices.Equal(bare(passedHead), bare(watchedHead)) || !bytes.Equal(passedBody, watchedBody) {
				t.Errorf("%s/%s:\noff    %q\nshadow %q", path, shape, passed, watched)
			}
			if !bytes.Contains(watchedHead, []byte("\r\nGate-Shadow: "+want+"\r\n")) {
				t.Errorf("%s/%s: %q, want %s", path, shape, watchedHead, want)
			}
		}
	}
}

// TestShadowDoesNotHoldAStreamUp: where the rule reads the answer, and that does not end, the
// client gets what there is as soon as enforce would have given up.
func TestShadowDoesNotHoldAStreamUp(t *testing.T) {
	read := make(chan struct{})
	backend := stage.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "event: first\n\n")
		w.(http.Flusher).Flush()
		<-read
		_, _ = io.WriteString(w, "event: last\n\n")
	}))
	gate := stage.StartGate(t, strings.ReplaceAll(door(backend, "shadow"), "    mode: shadow", "    mode: shadow\n    timeout: 300ms"))
	resp, err := http.Post(gate.URL+"/keyed/1/ok", "application/json", strings.NewReader(`{"student":1,"units":1}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	first := make([]byte, len("event: first\n\n"))
	if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "event: first\n\n" {
		t.Fatalf("%q, %v", first, err)
	}
	close(read)
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != "event: last\n\n" {
		t.Fatalf("%q, %v", rest, err)
	}
	if got := resp.Header.Get("Gate-Shadow"); got != "key-missing" {
		t.Fatalf("%s", got)
	}
}

// TestWhoWaitsToBeAskedIsAskedAlike: a client that holds its body back gets its 100 as
// early, and as often, as without the rule.
func TestWhoWaitsToBeAskedIsAskedAlike(t *testing.T) {
	backend := stage.Serve(t, shapes{})
	nobody := "http://127.0.0.1:9" // discard: nothing listens there
	for _, to := range []string{backend, nobody} {
		off, shadow := stage.StartGate(t, door(to, "off")), stage.StartGate(t, door(to, "shadow"))
		for _, path := range []string{"/plain/1/ok", "/keyed/1/ok", "/plain/1/early"} {
			for _, length := range []int{20, 3000, 100 << 10} {
				passed, watched := askFirst(t, off.URL, path, length), askFirst(t, shadow.URL, path, length)
				if passed != watched {
					t.Errorf("%s %s, %d bytes: off %q, shadow %q", to, path, length, passed, watched)
				}
			}
		}
	}
}

// askFirst sends a body only once it is asked for, and tells the statuses that came.
func askFirst(t *testing.T, base, path string, length int) string {
	t.Helper()
	conn := stage.Dial(t, strings.TrimPrefix(base, "http://"))
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: shop.test\r\nX-Student: 1\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", path, length)
	reader := bufio.NewReader(conn)
	var statuses []string
	for {
		resp, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatalf("%v after %v", err, statuses)
		}
		statuses = append(statuses, resp.Status)
		if resp.StatusCode != 100 {
			_, _ = io.Copy(io.Discard, resp.Body)
			return strings.Join(statuses, ", ")
		}
		_, _ = conn.Write(bytes.Repeat([]byte(" "), length))
	}
}
