package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/rules"
)

// lessonsYAML is a gate on free ports in front of a backend.
func lessonsYAML(backend, further string) string {
	return fmt.Sprintf(`
server: { listen: "127.0.0.1:0" }
admin: { listen: "127.0.0.1:0" }
upstream: { url: %q }
pools:
  lessons: { capacity: 2 }
rules:
  - name: book
    match: { methods: [POST], path: "/lessons/{lesson}/bookings" }
    pool: lessons
    slot: path:lesson
    subject: header:Student
%s`, backend, further)
}

// runningService is a service in this process, and the signals it is sent.
type runningService struct {
	gate, admin string // URLs
	log         *logCapture
	signals     chan os.Signal
	ended       chan error // gets what serve returned, once
}

// startService returns when both listeners are open.
func startService(yaml string, set ...string) (*runningService, error) {
	config, faults := rules.Load("test.yaml", []byte(yaml), rules.LoadOptions{Set: set})
	if config == nil {
		return nil, errors.New(faults.String())
	}
	s := &runningService{log: newLogCapture(), signals: make(chan os.Signal, 4), ended: make(chan error, 1)}
	go func() {
		s.ended <- serve(config, nil, s.signals, logs{log: slog.New(s.log), level: new(slog.LevelVar), stdout: io.Discard})
	}()
	select {
	case serves := <-s.log.serves:
		s.gate, s.admin = "http://"+serves["listen"], "http://"+serves["admin"]
		return s, nil
	case err := <-s.ended:
		return nil, fmt.Errorf("serve ended: %w", err)
	}
}

func mustStart(t *testing.T, yaml string, set ...string) *runningService {
	t.Helper()
	s, err := startService(yaml, set...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *runningService) stop() error {
	s.signals <- syscall.SIGTERM
	return <-s.ended
}

// logCapture keeps the log and hands out the addresses that are served.
type logCapture struct {
	slog.Handler
	mu     *sync.Mutex
	text   *bytes.Buffer
	serves chan map[string]string
	told   chan string // every message
	forget atomic.Bool // … is dropped where nobody takes it
}

func newLogCapture() *logCapture {
	l := &logCapture{mu: new(sync.Mutex), text: new(bytes.Buffer), serves: make(chan map[string]string, 1), told: make(chan string, 1000)}
	l.Handler = slog.NewTextHandler(l.text, nil)
	return l
}

func (l *logCapture) Handle(ctx context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Message == "slotgate serves" {
		attrs := map[string]string{}
		r.Attrs(func(a slog.Attr) bool { attrs[a.Key] = a.Value.String(); return true })
		l.serves <- attrs
	}
	if l.forget.Load() {
		return nil
	}
	l.told <- r.Message
	return l.Handler.Handle(ctx, r)
}

func (l *logCapture) waitFor(t *testing.T, message string) {
	t.Helper()
	for {
		select {
		case told := <-l.told:
			if strings.HasPrefix(told, message) {
				return
			}
		case <-time.After(10 * time.Second):
			l.mu.Lock()
			defer l.mu.Unlock()
			t.Fatalf("never logged %q:\n%s", message, l.text)
		}
	}
}

// client keeps no connection, so that a drain has none to wait for.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func call(t *testing.T, method, url string, fields ...string) (status int, decision, body string) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ": ")
		req.Header.Set(name, value)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("Gate-Decision"), string(text)
}

func (s *runningService) book(t *testing.T, lesson, student string) (status int, decision string) {
	t.Helper()
	status, decision, _ = call(t, "POST", s.gate+"/lessons/"+lesson+"/bookings", "Student: "+student)
	return status, decision
}

func createdBackend(t *testing.T) string {
	t.Helper()
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(backend.Close)
	return backend.URL
}

// leavesNothing fails a test that ends with a goroutine more than it began with.
// fasthttp's worker pool looks every 10 s whether it has been stopped, and its clock for the
// field Date begins with the first answer of the process.
func leavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		goleak.VerifyNone(t, before,
			goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
			goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
	})
}

func TestServeSellsWhatThereIs(t *testing.T) {
	leavesNothing(t)
	s := mustStart(t, lessonsYAML(createdBackend(t), ""))
	for i, want := range []string{"admitted", "admitted", "sold-out"} {
		if status, decision := s.book(t, "7", fmt.Sprint("s", i)); decision != want {
			t.Errorf("booking %d: %d %s, want %s", i, status, decision, want)
		}
	}
	if status, _, body := call(t, "GET", s.admin+"/v1/slots/lessons/7"); status != 200 || !strings.Contains(body, `"confirmed":2`) {
		t.Errorf("the slot: %d %s", status, body)
	}
	if _, _, body := call(t, "GET", s.admin+"/metrics"); !strings.Contains(body, `slotgate_requests_total{decision="sold-out",rule="book"} 1`) ||
		!strings.Contains(body, `slotgate_store_seconds_count{op="decide"} 3`) {
		t.Errorf("the metrics do not count the refusal:\n%s", body)
	}
	if err := s.stop(); err != nil {
		t.Errorf("a clean stop: %v", err)
	}
}

func TestModesAreSwitchedWhileServing(t *testing.T) {
	s := mustStart(t, lessonsYAML(createdBackend(t), ""), "pools.lessons.capacity=1")
	for _, want := range []string{"admitted", "sold-out"} {
		if _, decision := s.book(t, "7", "s"); decision != want {
			t.Errorf("enforce: %q, want %q", decision, want)
		}
	}
	req, err := http.NewRequest("PUT", s.admin+"/v1/rules/book/mode", strings.NewReader(`{"mode":"off"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	res.Body.Close()
	if status, decision := s.book(t, "7", "s"); status != 201 || decision != "" {
		t.Errorf("off: %d %q", status, decision)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

// A signal makes the gate unready, lets what runs end, and then ends.
func TestADrainFinishesWhatRuns(t *testing.T) {
	leavesNothing(t)
	reached, release := make(chan struct{}), make(chan struct{})
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(reached)
		<-release
		w.WriteHeader(http.StatusCreated)
	}))
	defer backend.Close()
	answer := sync.OnceFunc(func() { close(release) })
	defer answer() // else the backend would not close
	s := mustStart(t, lessonsYAML(backend.URL, ""))

	booked := make(chan string, 1)
	go func() {
		status, decision := s.book(t, "7", "s")
		booked <- fmt.Sprint(status, " ", decision)
	}()
	<-reached
	s.signals <- syscall.SIGHUP // is not the end
	s.signals <- syscall.SIGTERM
	s.log.waitFor(t, "draining")
	for {
		status, _, body := call(t, "GET", s.admin+"/readyz")
		if status == http.StatusServiceUnavailable && strings.Contains(body, `"draining"`) {
			break
		}
	}
	refused := false
	for !refused {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.gate, "http://"))
		if refused = err != nil; !refused {
			conn.Close()
		}
	}
	answer()
	if got := <-booked; got != "201 admitted" {
		t.Errorf("the running booking got %s", got)
	}
	if err := <-s.ended; err != nil {
		t.Errorf("a clean stop: %v", err)
	}
}

func TestADrainThatTakesTooLongIsNoCleanStop(t *testing.T) {
	reached, release := make(chan struct{}), make(chan struct{})
	backend := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(reached)
		<-release
	}))
	defer backend.Close()
	defer close(release)
	for name, end := range map[string]func(*runningService){
		"server.drain (100ms) ended": func(*runningService) {},
		"second signal":              func(s *runningService) { s.signals <- os.Interrupt },
	} {
		reached = make(chan struct{})
		drain := "1h"
		if strings.HasPrefix(name, "server.drain") {
			drain = "100ms"
		}
		s := mustStart(t, lessonsYAML(backend.URL, ""), "server.drain="+drain)
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.gate, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "POST /lessons/7/bookings HTTP/1.1\r\nHost: gate\r\nStudent: s\r\nContent-Length: 0\r\n\r\n")
		<-reached
		s.signals <- syscall.SIGTERM
		end(s)
		if err := <-s.ended; err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("ended with %v, want %q", err, name)
		}
		conn.Close()
	}
}

// The store is away from the first moment on and comes later.
func TestAGateStartsWithoutItsStore(t *testing.T) {
	address := fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t))
	s := mustStart(t, lessonsYAML(createdBackend(t), ""), "store.kind=redis", "store.addresses=["+address+"]")
	if status, decision := s.book(t, "7", "s"); status != 201 || decision != "passthrough" {
		t.Errorf("without the store: %d %s", status, decision)
	}
	if status, _, body := call(t, "GET", s.admin+"/readyz"); status != 200 {
		t.Errorf("not ready without the store: %d %s", status, body)
	}
	status, _, body := call(t, "GET", s.admin+"/v1/slots/lessons/7")
	var problem struct{ Detail string }
	if err := json.Unmarshal([]byte(body), &problem); err != nil || status != 503 || !strings.Contains(problem.Detail, "connection refused") {
		t.Errorf("the slot without the store: %d %s", status, body)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

func TestAListenerThatIsTakenEndsTheService(t *testing.T) {
	leavesNothing(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, listener := range []string{"server.listen", "admin.listen"} {
		_, err := startService(lessonsYAML("http://127.0.0.1:9", ""), listener+"="+taken.Addr().String())
		if err == nil || !strings.Contains(err.Error(), listener) || !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("%s taken: %v", listener, err)
		}
	}
}
