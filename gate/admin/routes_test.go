package admin

import (
	"net/http"
	"strings"
	"testing"

	"github.com/slotgate/slotgate/gate"
)

func TestMethodsThatAreNotThere(t *testing.T) {
	b := newBench(t, "")
	for _, c := range []struct{ method, path, allow string }{
		{"POST", "/healthz", "GET, HEAD"},
		{"DELETE", "/metrics", "GET, HEAD"},
		{"POST", "/v1/status", "GET, HEAD"},
		{"GET", "/v1/mode", "PUT"},
		{"GET", "/v1/rules/book-lesson/mode", "PUT"},
		{"DELETE", "/v1/slots/lessons/7", "GET, PUT, HEAD"},
		{"GET", "/v1/slots/lessons/7/holds/h", "DELETE"},
		{"GET", "/v1/reload", "POST"},
	} {
		w := b.call(c.method, c.path, "")
		b.want(w, http.StatusMethodNotAllowed, "use "+strings.Split(c.allow, ",")[0])
		if got := w.Header().Get("Allow"); got != c.allow {
			t.Errorf("%s %s: Allow %q, want %q", c.method, c.path, got, c.allow)
		}
	}
}

func TestUnknownPaths(t *testing.T) {
	b := newBench(t, "")
	for _, path := range []string{"/v2", "/v1", "/v1/slots/lessons", "/v1/slots/lessons/", "/favicon.ico"} {
		b.want(b.call("GET", path, ""), http.StatusNotFound, "no such endpoint")
	}
}

func TestHealthAndReadiness(t *testing.T) {
	b := newBench(t, "")
	b.body(b.call("GET", "/healthz", ""), `{"status":"alive"}`)
	b.body(b.call("GET", "/readyz", ""), `{"status":"ready","mode":"normal","store":"closed","upstream":"closed"}`)

	b.gate.set(func(s *gate.Status) { s.Degraded, s.StoreBreaker, s.UpstreamBreaker = true, 2, 1 })
	b.body(b.call("GET", "/readyz", ""), `{"status":"ready","mode":"degraded","store":"open","upstream":"half-open"}`)

	b.server.Drain()
	w := b.call("GET", "/readyz", "")
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), `"draining"`) {
		t.Errorf("while draining: %d %s", w.Code, w.Body)
	}
	b.body(b.call("GET", "/healthz", ""), `{"status":"alive"}`)
}

func TestStatus(t *testing.T) {
	b := newBench(t, "")
	b.body(b.call("GET", "/v1/status", ""), `{"version":"v1.2.3","revision":"r1","started_at":"2030-09-01T08:00:00Z","mode":"normal","draining":false,"reload":null,"breakers":{"store":"closed","upstream":"closed"},"queue_waiting":{},"settle_backlog":0,"settle_lost":0,"bound":{},"shadow":[],"reports":[],"config_hash":"p1","gates":{"running":null,"differing":null},"store":{"kind":"memory","mode":"","schema":0,"runs":[],"looked_at":null,"servers":[]}}`)
	b.gate.set(func(s *gate.Status) {
		s.Degraded, s.SettleBacklog, s.Waiting, s.Bound = true, 3, map[string]int{"lessons": 2}, map[string]string{"lessons": "backend"}
	})
	w := b.call("GET", "/v1/status", "")
	for _, part := range []string{`"mode":"degraded"`, `"queue_waiting":{"lessons":2}`, `"settle_backlog":3`, `"bound":{"lessons":"backend"}`} {
		if !strings.Contains(w.Body.String(), part) {
			t.Errorf("no %s in %s", part, w.Body)
		}
	}
}

func TestModes(t *testing.T) {
	b := newBench(t, "")
	const rule = `{"name":"book-lesson","action":"book","pool":"lessons","mode":"off","file_mode":"enforce","on_store_failure":"pass"}`
	const mail = `{"name":"mail","action":"guard","pool":"","mode":"enforce","file_mode":"enforce","on_store_failure":"reject"}`
	b.body(b.call("PUT", "/v1/rules/book-lesson/mode", `{"mode":"off"}`), rule)
	b.body(b.call("GET", "/v1/rules", ""), `{"rules":[`+rule+`,`+mail+`]}`)
	b.body(b.call("PUT", "/v1/mode", `{"mode":"enforce"}`), `{"rules":[`+strings.Replace(rule, "off", "enforce", 1)+`,`+mail+`]}`)

	b.want(b.call("PUT", "/v1/rules/book/mode", `{"mode":"off"}`), http.StatusNotFound, `no rule "book"`)
	b.body(b.call("PUT", "/v1/rules/book-lesson/mode", `{"mode":"shadow"}`), strings.Replace(rule, `"mode":"off"`, `"mode":"shadow"`, 1))
	b.want(b.call("PUT", "/v1/mode", `{"mode":"on"}`), http.StatusBadRequest, `mode "on" is not known`)
	b.want(b.call("PUT", "/v1/mode", `{}`), http.StatusBadRequest, `"mode" is missing`)
}

func TestBodiesAreReadStrictly(t *testing.T) {
	b := newBench(t, "")
	for body, detail := range map[string]string{
		`{"mode":"off","Mode":"off"}`:     `unknown member "Mode"`,
		`{"mode":"off","mode":"enforce"}`: `member "mode" is there twice`,
		`{"mode":7}`:                      `member "mode" cannot be a JSON number`,
		`["off"]`:                         "must be one JSON object",
		`{"mode":"off"} {}`:               "not valid JSON at byte 15",
		`{"mode":"off"`:                   "not valid JSON",
		"{\"mode\":\"\xff\"}":             "not valid JSON",
	} {
		b.want(b.call("PUT", "/v1/mode", body), http.StatusBadRequest, detail)
	}
	b.want(b.call("PUT", "/v1/mode", ""), http.StatusBadRequest, "")
	b.want(b.call("PUT", "/v1/mode", "", "Content-Type: application/json"), http.StatusBadRequest, "")
	// curl -d labels it as a form.
	b.want(b.call("PUT", "/v1/mode", `{"mode":"off"}`, "Content-Type: application/x-www-form-urlencoded"), http.StatusOK, "")
	b.want(b.call("PUT", "/v1/mode", `{"mode":"`+strings.Repeat("x", maxBody)+`"}`), http.StatusRequestEntityTooLarge, "over 65536 bytes")
	b.want(b.call("PUT", "/v1/mode", `{"mode":"off"}`, "Content-Type: application/json"), http.StatusOK, "")
}
