package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slotgate/slotgate/rules"
)

// loggedYAML has LOG and TRACING to be replaced.
const loggedYAML = `version: 1
server: { listen: "127.0.0.1:0" }
admin: { listen: "127.0.0.1:0" }
upstream: { url: "BACKEND" }
log: { LOG }
tracing: { TRACING }
pools: { lessons: { capacity: 100 } }
rules:
  - name: book
    match: { methods: [POST], path: "/lessons/{lesson}/bookings" }
    pool: lessons
    slot: path:lesson
`

func logged(backend, log, tracing string) string {
	return strings.NewReplacer("BACKEND", backend, "LOG", log, "TRACING", tracing).Replace(loggedYAML)
}

// hear answers bookings, and hands on the head of each request as it came.
func hear(t *testing.T, heads func(string)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var head strings.Builder
		_ = r.Header.Write(&head)
		if heads != nil {
			heads(head.String())
		}
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func (p *program) book(t *testing.T, id string, fields ...string) {
	t.Helper()
	more := strings.Join(append(fields, ""), "\r\n")
	answer := p.send(t, "POST /lessons/7/bookings HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Request-Id: "+id+"\r\n"+more+"Content-Length: 0\r\n\r\n")
	if !strings.HasPrefix(answer, "HTTP/1.1 201 ") {
		t.Fatalf("%s: %q", id, answer)
	}
}

func (p *program) reload(t *testing.T) (status int, body string) {
	t.Helper()
	answer, err := client.Post("http://"+p.admin+"/v1/reload", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text)
}

func fileText(name string) string {
	text, _ := os.ReadFile(name)
	return string(text)
}

func awaitFile(t *testing.T, name, text string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !strings.Contains(fileText(name), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never %q in %s: %q", text, name, fileText(name))
		}
	}
}

// What can change while the gate runs does, and what cannot is said.
func TestLogsFollowAReload(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one.log"), filepath.Join(dir, "two.log")
	backend := hear(t, nil)
	quote := func(file string) string { return fmt.Sprintf("format: json, access: %q", file) }
	p := startProgram(t, logged(backend, quote(one), ""))
	p.book(t, "first")
	awaitFile(t, one, `"request_id":"first"`)
	if strings.Contains(p.stderr.String(), `"level":"DEBUG"`) {
		t.Error("debug at level info")
	}

	// Rotated: moved, then SIGHUP, although the file has not changed.
	if err := os.Rename(one, one+".1"); err != nil {
		t.Fatal(err)
	}
	p.signals <- syscall.SIGHUP
	p.stderr.await(t, `configuration reloaded`)
	p.book(t, "second")
	awaitFile(t, one, `"request_id":"second"`)
	if strings.Contains(fileText(one), `"first"`) || strings.Contains(fileText(one+".1"), `"second"`) {
		t.Error("a line is in the wrong file")
	}

	// … and although the configuration cannot be loaded.
	if err := os.Rename(one, one+".2"); err != nil {
		t.Fatal(err)
	}
	p.write(t, "version: 2")
	p.signals <- syscall.SIGHUP
	p.stderr.await(t, `configuration not reloaded`)
	p.book(t, "third")
	awaitFile(t, one, `"request_id":"third"`)

	// Another level and file.
	p.write(t, logged(backend, quote(two)+", level: debug", ""))
	status, body := p.reload(t)
	if status != http.StatusOK || !strings.Contains(body, "log.level") || !strings.Contains(body, "log.access") || !strings.Contains(body, `"need_restart":[]`) {
		t.Errorf("%d %s", status, body)
	}
	p.book(t, "fourth")
	awaitFile(t, two, `"request_id":"fourth"`)
	p.stderr.await(t, `"level":"DEBUG","msg":"decision".*"request_id":"fourth"`)

	// A file that cannot be opened: the last good configuration stays.
	p.write(t, logged(backend, quote(filepath.Join(dir, "none", "a.log")), ""))
	if status, body := p.reload(t); status != http.StatusUnprocessableEntity || !strings.Contains(body, "log.access") {
		t.Errorf("%d %s", status, body)
	}
	p.book(t, "fifth")
	awaitFile(t, two, `"request_id":"fifth"`)

	// What needs a restart.
	p.write(t, logged(backend, "format: text, level: warn", `otlp_endpoint: "http://127.0.0.1:1"`))
	status, body = p.reload(t)
	for _, want := range []string{"log.format", "tracing.otlp_endpoint"} {
		if _, restart, _ := strings.Cut(body, "need_restart"); status != http.StatusOK || !strings.Contains(restart, want) {
			t.Errorf("%s: %d %s", want, status, body)
		}
	}
	p.book(t, "sixth")
	p.stop(t)
	if strings.Contains(fileText(one)+fileText(two)+p.stderr.String(), `"sixth"`) {
		t.Error("a line after the access log was switched off and the level was raised")
	}
}

// Lines on standard output, whole when the gate has stopped.
func TestAccessLogOnStandardOutput(t *testing.T) {
	p := startProgram(t, logged(hear(t, nil), `access: "-"`, ""))
	for i := range 20 {
		p.book(t, fmt.Sprint("r", i))
	}
	p.stop(t)
	line := regexp.MustCompile(`(?m)^127\.0\.0\.1 - - \[[^\]]+\] "POST /lessons/7/bookings HTTP/1\.1" 201 0 "-" "-"$`)
	if n := len(line.FindAllString(p.stdout.String(), -1)); n != 20 {
		t.Errorf("%d lines:\n%s", n, p.stdout.String())
	}
}

// A full disk for the access log fails no request.
func TestAccessLogOnAFullDisk(t *testing.T) {
	p := startProgram(t, logged(hear(t, nil), `access: "/dev/full"`, ""))
	for i := range 20 {
		p.book(t, fmt.Sprint("r", i))
	}
	p.stderr.await(t, `access log lines were lost.*no space left on device`)
	answer, err := client.Get("http://" + p.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	if lost := regexp.MustCompile(`(?m)^slotgate_access_log_lost_total [1-9]`); !lost.Match(text) {
		t.Error("the metric does not count lost lines")
	}
}

func TestAccessLogThatCannotBeOpened(t *testing.T) {
	yaml := logged("http://127.0.0.1:1", fmt.Sprintf("access: %q", filepath.Join(t.TempDir(), "none", "a.log")), "")
	config, faults := rules.Load("test.yaml", []byte(yaml), rules.LoadOptions{})
	if config == nil {
		t.Fatal(faults)
	}
	logs, closeLogs := newLogs(config.Log, io.Discard, io.Discard)
	defer closeLogs()
	if err := serve(config, nil, nil, logs); err == nil || !strings.Contains(err.Error(), "log.access: ") {
		t.Errorf("%v", err)
	}
}

// Off, what a client sends of its trace goes to the backend byte for byte, and nothing
// else. On, the backend goes on under a span that the collector gets; the share changes
// live; and when the collector goes away nobody notices but the log.
func TestTracing(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	var mu sync.Mutex
	var last string
	backend := hear(t, func(head string) {
		mu.Lock()
		defer mu.Unlock()
		last = head
	})
	told := func() string {
		mu.Lock()
		defer mu.Unlock()
		return last
	}
	off := startProgram(t, logged(backend, "", ""))
	for _, sent := range []string{"Traceparent: " + parent + "\r\nTracestate: a=1, b=2", "Traceparent: nonsense\r\nTracestate: =", ""} {
		off.book(t, "r", strings.Split(sent, "\r\n")...)
		for _, line := range strings.Split(sent, "\r\n") {
			if !strings.Contains(told(), line) || strings.Count(strings.ToLower(told()), "trace") != strings.Count(strings.ToLower(sent), "trace") {
				t.Errorf("sent %q, the backend got %q", sent, told())
			}
		}
	}
	off.stop(t)

	collector := startOTLP(t)
	config := func(sample string) string {
		return logged(backend, "", fmt.Sprintf("otlp_endpoint: %q, sample: %s", collector.URL, sample))
	}
	p := startProgram(t, config("0"))
	p.book(t, "followed", "Traceparent: "+parent, "Tracestate: a=1, b=2")
	followed := regexp.MustCompile(`Traceparent: 00-0af7651916cd43dd8448eb211c80319c-([0-9a-f]{16})-01`).FindStringSubmatch(told())
	if followed == nil || followed[1] == "b7ad6b7169203331" || !strings.Contains(told(), "Tracestate: a=1, b=2") {
		t.Fatalf("the backend got %q", told())
	}
	p.book(t, "unsampled")
	if !regexp.MustCompile(`Traceparent: 00-[0-9a-f]{32}-[0-9a-f]{16}-00`).MatchString(told()) {
		t.Errorf("the backend got %q", told())
	}
	p.write(t, config("1"))
	if status, body := p.reload(t); status != http.StatusOK || !strings.Contains(body, "tracing.sample: 0 → 1") || !strings.Contains(body, `"need_restart":[]`) {
		t.Errorf("%d %s", status, body)
	}
	p.book(t, "sampled")
	for end := time.Now().Add(20 * time.Second); len(collector.spans(t)) < 8; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("spans %v", collector.spans(t))
		}
	}
	names := map[string]int{}
	for _, s := range collector.spans(t) {
		names[s.Name]++
		if s.Name == "upstream" && fmt.Sprintf("%x", s.TraceId) == "0af7651916cd43dd8448eb211c80319c" && fmt.Sprintf("%x", s.SpanId) != followed[1] {
			t.Errorf("the backend goes on under %s, the span is %x", followed[1], s.SpanId)
		}
	}
	if names["POST /lessons/{lesson}/bookings"] != 2 || names["decide"] != 2 || names["upstream"] != 2 || names["settle"] != 2 || len(names) != 4 {
		t.Errorf("spans %v", names)
	}

	collector.Close()
	for i := range 50 {
		p.book(t, fmt.Sprint("away", i))
	}
	began := time.Now()
	p.stop(t)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("stopping took %v", took)
	}
	if n := strings.Count(p.stderr.String(), "tracing: "); n > 2 {
		t.Errorf("%d lines about the collector:\n%s", n, p.stderr.String())
	}
}
