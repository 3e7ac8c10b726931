package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
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

	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// logBuffer is a log that is read while it is written.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// await waits until the text holds a match, and returns it.
func (b *logBuffer) await(t *testing.T, pattern string) []string {
	t.Helper()
	expression := regexp.MustCompile(pattern)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		if found := expression.FindStringSubmatch(b.String()); found != nil {
			return found
		}
		if time.Now().After(end) {
			t.Fatalf("never %s in:\n%s", pattern, b.String())
		}
	}
}

// program is a gate that was started from a file, with the logs that a process has.
type program struct {
	gate, admin    string // host and port
	file           string
	stdout, stderr *logBuffer
	signals        chan os.Signal
	ended          chan error
	stopped        bool
}

func startProgram(t *testing.T, yaml string) *program {
	t.Helper()
	p := &program{
		file: filepath.Join(t.TempDir(), "slotgate.yaml"), stdout: new(logBuffer), stderr: new(logBuffer),
		signals: make(chan os.Signal, 4), ended: make(chan error, 1),
	}
	p.write(t, yaml)
	flags := &configFlags{file: p.file}
	config, faults, err := flags.load()
	if err != nil || config == nil {
		t.Fatalf("%v %s", err, faults)
	}
	logs, closeLogs := newLogs(config.Log, p.stdout, p.stderr)
	go func() {
		err := serve(config, flags, p.signals, logs)
		closeLogs()
		p.ended <- err
	}()
	t.Cleanup(func() { p.stop(t) })
	serves := p.stderr.await(t, `slotgate serves.*?(?:listen=|"listen":")([0-9.:]+)"?[ ,](?:admin=|"admin":")([0-9.:]+)`)
	p.gate, p.admin = serves[1], serves[2]
	return p
}

// write puts the configuration there in one step.
func (p *program) write(t *testing.T, yaml string) {
	t.Helper()
	if err := os.WriteFile(p.file+".new", []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(p.file+".new", p.file); err != nil {
		t.Fatal(err)
	}
}

func (p *program) stop(t *testing.T) {
	t.Helper()
	if p.stopped {
		return
	}
	p.stopped = true
	p.signals <- syscall.SIGTERM
	if err := <-p.ended; err != nil {
		t.Error(err)
	}
}

// send writes raw bytes and reads what comes until the gate closes.
func (p *program) send(t *testing.T, raw string) string {
	t.Helper()
	nc, err := net.Dial("tcp", p.gate)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(nc, raw); err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(nc)
	return string(answer)
}

// otlp is a collector that keeps what it gets.
type otlp struct {
	*httptest.Server
	mu  sync.Mutex
	raw [][]byte
}

func startOTLP(t *testing.T) *otlp {
	t.Helper()
	o := &otlp{}
	o.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		o.mu.Lock()
		defer o.mu.Unlock()
		o.raw = append(o.raw, body)
	}))
	t.Cleanup(o.Server.Close)
	return o
}

func (o *otlp) spans(t *testing.T) (list []*spans.Span) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, raw := range o.raw {
		var batch spans.TracesData
		if err := proto.Unmarshal(raw, &batch); err != nil {
			t.Fatal(err)
		}
		for _, r := range batch.ResourceSpans {
			for _, s := range r.ScopeSpans {
				list = append(list, s.Spans...)
			}
		}
	}
	return list
}

// indiscreet is a backend that answers in every bad way, each time with secrets.
func indiscreet(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	answers := []string{
		"HTTP/1.1 201 Created\r\nSet-Cookie: sid=SECRET\r\nContent-Length: 6\r\n\r\nSECRET",
		"HTTP/1.1 500 SECRET\r\nContent-Length: 6\r\n\r\nSECRET",
		"SECRET SECRET SECRET\r\n\r\n",
		"HTTP/1.1 200 OK\r\nSECRET SECRET\r\n\r\n",
		"HTTP/1.1 200 OK\r\nSet Cookie: SECRET\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nSECRET",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nSECRET\r\n",
		"HTTP/1.1 302 Found\r\nLocation: http://SECRET:SECRET@a/?SECRET\r\nContent-Length: 0\r\n\r\n",
		"",
	}
	var all sync.WaitGroup
	all.Go(func() {
		for i := 0; ; i++ {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer nc.Close()
				if request, err := http.ReadRequest(bufio.NewReader(nc)); err == nil {
					_, _ = io.Copy(io.Discard, request.Body)
					_, _ = io.WriteString(nc, answers[i%len(answers)])
				}
			})
		}
	})
	t.Cleanup(func() { _ = ln.Close(); all.Wait() })
	return "http://" + ln.Addr().String()
}

const secretYAML = `version: 1
server: { listen: "127.0.0.1:0", max_connections: 200 }
admin: { listen: "127.0.0.1:0", token: SECRET }
upstream: { url: "BACKEND", timeout: 2s }
store: { secret: SECRET, encrypt_key: "U0VDUkVUU0VDUkVUU0VDUkVUU0VDUkVUU0VDUkVUIS4=" }
log: { level: debug, format: FORMAT, access: "ACCESS" }
tracing: { otlp_endpoint: "COLLECTOR", sample: 1 }
pools: { lessons: { capacity: 3 } }
rules:
  - name: press
    match: { methods: [PUT], path: "/presses/{press}" }
    pool: lessons
    slot: query:lesson
    subject: json:/student
    idempotency: { key: [path:press], required: true }
  - name: watched
    match: { methods: [POST], path: "/watched/{lesson}" }
    mode: shadow
    pool: lessons
    slot: path:lesson
    subject: query:student
  - name: book
    match: { methods: [POST], path: "/lessons/{lesson}/bookings" }
    pool: lessons
    slot: path:lesson
    subject: header:Student
    idempotency: { key: [header:X-Request-Id, cookie:press, form:press, header:Idempotency-Key], partition: [header:User-Agent] }
`

// secretRequests have the secret wherever a client may put one.
func secretRequests() (raw []string) {
	fields := "Host: a\r\nConnection: close\r\nAuthorization: Basic SECRET\r\nProxy-Authorization: SECRET\r\nCookie: sid=SECRET; press=SECRET\r\n" +
		"X-Api-Key: SECRET\r\nX-CSRF-Token: SECRET\r\nStudent: SECRET\r\nIdempotency-Key: SECRET\r\nX-Request-Id: SECRET\r\n" +
		"User-Agent: SECRET\r\nReferer: https://SECRET:SECRET@a/x?SECRET#SECRET\r\nOrigin: http://SECRET\r\n" +
		"Traceparent: SECRET\r\nTracestate: a=SECRET\r\nBaggage: SECRET=SECRET\r\nForwarded: for=SECRET\r\nX-Forwarded-For: SECRET\r\nGate-SECRET: SECRET\r\n"
	request := func(method, target, more, body string) {
		raw = append(raw, fmt.Sprintf("%s %s HTTP/1.1\r\n%s%sContent-Length: %d\r\n\r\n%s", method, target, fields, more, len(body), body))
	}
	for i := range 12 {
		request("POST", fmt.Sprintf("/lessons/%d/bookings?token=SECRET&student=SECRET", i%2), "Content-Type: application/x-www-form-urlencoded\r\n", "press=SECRET&card=SECRET")
		request("PUT", fmt.Sprintf("/presses/SECRET-%d?lesson=SECRET", i), "Content-Type: application/json\r\n", `{"student":"SECRET"}`)
		request("POST", fmt.Sprintf("/watched/%d?student=SECRET", i), "Content-Type: text/plain\r\n", "SECRET")
		request("GET", "/page;jsessionid=SECRET?SECRET", "", "")
	}
	request("GET", "/presses/SECRET", "", "")                                                             // another method
	request("PUT", "/presses/SEC%2FRET-SECRET?lesson=7", "", "")                                          // in doubt
	request("PUT", "/presses/SECRET?lesson=SECRET&lesson=SECRET2", "", "")                                // ambiguous
	request("PUT", "/presses/SECRET?lesson=1", "Content-Type: application/json\r\n", `{"student":SECRET`) // no JSON
	request("POST", "/lessons/1/bookings", "X-Request-Id: SECRET2\r\n", "")                               // two keys
	request("POST", "http://SECRET:SECRET@a/lessons/1/bookings", "", "")                                  // userinfo
	request("POST", "/lessons/1/bookings#SECRET", "", "")                                                 // fragment
	request("M-SEARCH", "/lessons/1/bookings", "", "")                                                    // method
	raw = append(raw,
		"SECRET\r\n\r\n",
		"GET / SECRET\r\nHost: SECRET\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nSECRET SECRET\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nSECRET : SECRET\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: SECRET\r\n\r\n",
		"POST /lessons/1/bookings HTTP/1.1\r\nHost: a\r\nStudent: SECRET\r\nTransfer-Encoding: chunked\r\n\r\nSECRET\r\n",
		"GET /"+strings.Repeat("SECRET", 10_000)+" HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /lines HTTP/1.1\r\nHost: a\r\nConnection: close\r\nUser-Agent: a\x1b[31m\"\\\x7f\xff 127.0.0.1 - - [x] \"GET /forged\r\n\r\n")
	return raw
}

// A storm of requests that are full of secrets, at a backend that is, and a reload of
// other secrets, leave none in the process log, the access log or the spans.
func TestNoLogHoldsASecret(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			collector := startOTLP(t)
			access := filepath.Join(t.TempDir(), "access.log")
			yaml := strings.NewReplacer("BACKEND", indiscreet(t), "FORMAT", format, "ACCESS", access, "COLLECTOR", collector.URL).Replace(secretYAML)
			p := startProgram(t, yaml)
			requests := secretRequests()
			var clients sync.WaitGroup
			for i := range 4 {
				clients.Go(func() {
					for j := i; j < len(requests); j += 4 {
						p.send(t, requests[j])
					}
				})
			}
			clients.Wait()
			for _, call := range []struct{ method, path, token, body string }{
				{"GET", "/v1/status?SECRET", "SECRET2", ""}, {"PUT", "/v1/slots/lessons/1", "SECRET", `{"capacity":5}`}, {"PUT", "/v1/slots/lessons/1", "SECRET", "SECRET"},
			} {
				request, err := http.NewRequest(call.method, "http://"+p.admin+call.path, strings.NewReader(call.body))
				if err != nil {
					t.Fatal(err)
				}
				request.Header.Set("Authorization", "Bearer "+call.token)
				answer, err := client.Do(request)
				if err != nil {
					t.Fatal(err)
				}
				_ = answer.Body.Close()
			}
			p.write(t, strings.NewReplacer("token: SECRET", "token: SECRET2", "secret: SECRET", "secret: SECRET2", "capacity: 3", "capacity: 4").Replace(yaml))
			p.signals <- syscall.SIGHUP
			p.stderr.await(t, "configuration reloaded")
			p.stop(t)

			text, err := os.ReadFile(access)
			if err != nil {
				t.Fatal(err)
			}
			lines := bytes.Count(text, []byte("\n"))
			if lines < len(requests)-2 || lines > len(requests) {
				t.Errorf("%d lines for %d requests", lines, len(requests))
			}
			if n := strings.Count(p.stderr.String(), "decision="); format == "text" && n < 36 {
				t.Errorf("%d decisions in the log at debug", n)
			}
			list := collector.spans(t)
			if len(list) < 60 {
				t.Errorf("%d spans", len(list))
			}
			for name, log := range map[string]string{
				"process log": p.stderr.String(), "access log": string(text), "standard output": p.stdout.String(), "spans": fmt.Sprint(list),
			} {
				for line := range strings.Lines(log) {
					shown := strings.NewReplacer("store.secret", "", "(secret)", "").Replace(line) // as a reload tells of them
					if strings.Contains(strings.ToUpper(shown), "SECRET") {
						t.Errorf("%s: %s", name, line)
					}
					if strings.ContainsFunc(strings.TrimRight(line, "\n"), func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }) && name != "spans" {
						t.Errorf("%s has a control character: %q", name, line)
					}
				}
			}
			if format == "json" {
				for line := range strings.Lines(string(text) + p.stderr.String()) {
					var read map[string]any
					if err := json.Unmarshal([]byte(line), &read); err != nil {
						t.Errorf("%v: %s", err, line)
					}
				}
			}
		})
	}
}
