package edge

import (
	"strings"
	"testing"

	"github.com/slotgate/slotgate/gate/decision"
)

// What the ways in which backends have been seen to answer mean for the client and
// for the unit, where the rule says nothing of it: whatever may have booked keeps it.
func TestOutcomesOfScenarios(t *testing.T) {
	const (
		held, confirmed, free = "held", "confirmed", "free"
		head                  = "HTTP/1.1 200 OK\r\n"
	)
	for _, test := range []struct {
		name, raw string
		status    int
		decision  decision.Decision
		outcome   string
		unit      string
		field     string // the backend's, that the client gets
	}{
		{"C-01 a failure that says 200", head + "Content-Length: 12\r\n\r\n{\"code\":409}", 200, "admitted", "booked", confirmed, ""},
		{"C-03 an error page that says 200", head + "Content-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>", 200, "admitted", "booked", confirmed, "Content-Type: text/html"},
		{"C-05 a redirect", "HTTP/1.1 302 Found\r\nLocation: /form\r\nContent-Length: 0\r\n\r\n", 302, "admitted", "unknown", held, "Location: /form"},
		{"C-13 both framings", head + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 502, "upstream-failed", "unknown", held, ""},
		{"C-16 ended by the connection", head + "X-Then: close\r\n\r\nok", 200, "admitted", "booked", confirmed, ""},
		{"C-17 no length and no end", head + "\r\nok", 504, "upstream-timeout", "unknown", held, ""},
		{"C-22 closed without an answer", "X-Then: close", 502, "upstream-failed", "unknown", held, ""},
		{"C-22 cut in the body", head + "X-Then: close\r\nContent-Length: 9\r\n\r\nhalf", 502, "upstream-failed", "unknown", held, ""},
		{"C-26 early hints", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", 201, "admitted", "booked", confirmed, ""},
		{"C-33 304 with a length", "HTTP/1.1 304 Not Modified\r\nETag: \"e\"\r\nContent-Length: 50\r\n\r\n", 304, "admitted", "unknown", held, "Etag: \"e\""},
		{"C-34 status 999", "HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n", 999, "admitted", "unknown", held, ""},
		{"C-34 status 205", "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n", 205, "admitted", "booked", confirmed, ""},
		{"C-34 status 199", "HTTP/1.1 199 What\r\n\r\n", 502, "upstream-failed", "unknown", held, ""},
		{"C-36 bare line feeds", "HTTP/1.1 201 Created\nContent-Length: 2\n\n{}", 201, "admitted", "booked", confirmed, ""},
		{"C-42 503 with Retry-After", "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nContent-Length: 0\r\n\r\n", 503, "admitted", "busy", free, "Retry-After: 2"},
		{"C-43 500 after the commit", "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 1\r\n\r\nx", 500, "admitted", "unknown", held, ""},
		{"503 without Retry-After", "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", 503, "admitted", "unknown", held, ""},
		{"404", "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 404, "admitted", "refused", free, ""},
		{"A-042 a head longer than can be kept", head + "X: " + strings.Repeat("x", 65<<10) + "\r\nContent-Length: 0\r\n\r\n", 502, "upstream-failed", "unknown", held, ""},
		{"204 whose body comes with it", "HTTP/1.1 204 No Content\r\n\r\nbody", 204, "admitted", "booked", confirmed, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			url, _ := rawBackend(t, test.raw)
			f, slot := whole(t, url)
			resp, body := ask(t, f.addr, "POST /head HTTP/1.1\r\nHost: x\r\nX-Student: ann\r\nContent-Length: 2\r\n\r\nhi")
			if resp.StatusCode != test.status || resp.Header.Get("Gate-Decision") != string(test.decision) || resp.Header.Get("Gate-Outcome") != test.outcome {
				t.Fatalf("%d %v %s", resp.StatusCode, resp.Header, body)
			}
			if name, value, ok := strings.Cut(test.field, ": "); ok && resp.Header.Get(name) != value {
				t.Errorf("%s: %q", name, resp.Header.Values(name))
			}
			s, unit := slot(), free
			switch {
			case s.Confirmed == 1 && s.Held == 0:
				unit = confirmed
			case s.Held == 1 && s.Confirmed == 0:
				unit = held
			}
			if unit != test.unit {
				t.Errorf("the unit is %s: %+v", unit, s)
			}
			// The seat goes to nobody else while that is open.
			if resp, _ := ask(t, f.addr, "POST /head HTTP/1.1\r\nHost: x\r\nX-Student: bob\r\nContent-Length: 2\r\n\r\nhi"); (resp.StatusCode == 409) != (test.unit != free) {
				t.Errorf("the next one: %d %v", resp.StatusCode, resp.Header)
			}
		})
	}
}
