package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// reloadable runs a gate from a file that the test changes.
type reloadable struct {
	*runningService
	t    *testing.T
	file string
}

const reloadedYAML = `version: 1
server: { listen: "127.0.0.1:0" }
admin: { listen: "127.0.0.1:0" }
upstream: { url: "BACKEND" }
pools:
  lessons: { capacity: 1, hold_ttl: 10m }
rules:
  - name: NAME
    match: { methods: [POST], path: "/lessons/{lesson}/bookings" }
    pool: lessons
    slot: path:lesson
    subject: header:Student
    answers: { sold_out: { status: 409, content_type: text/plain, body: "NAME" } }
`

func startReloadable(t *testing.T, backend string) *reloadable {
	t.Helper()
	r := &reloadable{t: t, file: filepath.Join(t.TempDir(), "slotgate.yaml")}
	r.write("BACKEND", backend)
	flags := &configFlags{file: r.file}
	config, faults, err := flags.load()
	if err != nil || config == nil {
		t.Fatalf("%v %s", err, faults)
	}
	r.runningService = &runningService{log: newLogCapture(), signals: make(chan os.Signal, 4), ended: make(chan error, 1)}
	go func() {
		r.ended <- serve(config, flags, r.signals, logs{log: slog.New(r.log), level: new(slog.LevelVar), stdout: io.Discard})
	}()
	select {
	case serves := <-r.log.serves:
		r.gate, r.admin = "http://"+serves["listen"], "http://"+serves["admin"]
	case err := <-r.ended:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// write puts the file there in one step, with NAME and BACKEND and what else is told
// replaced.
func (r *reloadable) write(pairs ...string) {
	r.t.Helper()
	text := strings.NewReplacer(append(pairs, "NAME", "first")...).Replace(reloadedYAML)
	draft := r.file + ".new"
	if err := os.WriteFile(draft, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(draft, r.file); err != nil {
		r.t.Fatal(err)
	}
}

func (r *reloadable) post() (status int, body string) {
	r.t.Helper()
	answer, err := http.Post(r.admin+"/v1/reload", "", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text)
}

func (r *reloadable) get(path string) string {
	r.t.Helper()
	answer, err := http.Get(r.admin + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return string(text)
}

func TestReloadChangesWhatFollows(t *testing.T) {
	backend := createdBackend(t)
	r := startReloadable(t, backend)
	if status, _ := r.book(t, "7", "ann"); status != http.StatusCreated {
		t.Fatalf("status %d", status)
	}
	if _, decision := r.book(t, "7", "bob"); decision != "sold-out" {
		t.Fatalf("decision %s", decision)
	}

	r.write("BACKEND", backend, "capacity: 1", "capacity: 2")
	status, body := r.post()
	if status != http.StatusOK || !strings.Contains(body, "pools.lessons.capacity: 1 → 2") || !strings.Contains(body, `"need_restart":[]`) {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := r.book(t, "7", "bob"); status != http.StatusCreated {
		t.Errorf("status %d after more seats", status)
	}

	// The last good one stays, whatever is wrong with the next.
	r.write("BACKEND", backend, "capacity: 1", "capacity: none", "path:lesson", "path:lessen")
	status, body = r.post()
	if status != http.StatusUnprocessableEntity || !strings.Contains(body, "slotgate.yaml:6:") || !strings.Contains(body, "slotgate.yaml:11:") {
		t.Errorf("%d %s", status, body)
	}
	if metrics := r.get("/metrics"); !strings.Contains(metrics, "slotgate_config_reload_success 0") {
		t.Error("the gauge did not fall")
	}
	if s := r.get("/v1/status"); !strings.Contains(s, `"success":false`) || !strings.Contains(s, "slotgate.yaml:6:") {
		t.Errorf("status %s", s)
	}
	if _, decision := r.book(t, "7", "eve"); decision != "sold-out" {
		t.Errorf("decision %s under the last good one", decision)
	}

	// What a running gate cannot change is said, the rest is done.
	r.write("BACKEND", backend, "capacity: 1", "capacity: 3", "server: {", "server: { drain: 3s, max_body: 2KiB,")
	status, body = r.post()
	if status != http.StatusOK || !strings.Contains(body, "server.drain: 15s → 3s") || !strings.Contains(body, "capacity: 2 → 3") {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := r.book(t, "7", "eve"); status != http.StatusCreated {
		t.Errorf("status %d", status)
	}
	if s := r.get("/v1/status"); !strings.Contains(s, `"server.drain: 15s → 3s"]`) {
		t.Errorf("status %s", s)
	}
	if metrics := r.get("/metrics"); !strings.Contains(metrics, "slotgate_config_reload_success 1") {
		t.Error("the gauge did not rise")
	}
}

func TestReloadOnSignalAndOnChangeOfTheFile(t *testing.T) {
	backend := createdBackend(t)
	r := startReloadable(t, backend)
	r.write("BACKEND", backend, "capacity: 1", "capacity: 2")
	r.signals <- syscall.SIGHUP
	r.log.waitFor(t, "configuration reloaded")

	// As Kubernetes changes a mounted ConfigMap: the file is a link into a directory
	// that is a link itself.
	dir := filepath.Dir(r.file)
	for _, version := range []string{"one", "two"} {
		if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(r.file)
	if err != nil {
		t.Fatal(err)
	}
	swap := func(version, capacity string) {
		changed := strings.Replace(string(text), "capacity: 2", "capacity: "+capacity, 1)
		if err := os.WriteFile(filepath.Join(dir, version, "slotgate.yaml"), []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(dir, "data.new")
		if err := os.Symlink(version, link); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link, filepath.Join(dir, "data")); err != nil {
			t.Fatal(err)
		}
	}
	swap("one", "3")
	if err := os.Remove(r.file); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("data/slotgate.yaml", r.file); err != nil {
		t.Fatal(err)
	}
	r.log.waitFor(t, "configuration reloaded")
	swap("two", "4")
	r.log.waitFor(t, "configuration reloaded")
	for i := range 4 {
		if status, _ := r.book(t, "7", fmt.Sprint("s", i)); status != http.StatusCreated {
			t.Errorf("booking %d: status %d", i, status)
		}
	}
	if _, decision := r.book(t, "7", "late"); decision != "sold-out" {
		t.Errorf("decision %s", decision)
	}
}

// What one way of asking has read, the watch of the file does not read once more.
func TestAFileIsReadOnceAndMissedWhenItIsGone(t *testing.T) {
	backend := createdBackend(t)
	r := startReloadable(t, backend)
	r.write("BACKEND", backend, "capacity: 1", "capacity: 2")
	if status, body := r.post(); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	looked := "the configuration file is gone"
	for range 2 {
		if err := os.Remove(r.file); err != nil {
			t.Fatal(err)
		}
		r.log.waitFor(t, looked) // the watch has looked at what was there, and at nothing
		r.write("BACKEND", backend, "capacity: 1", "capacity: 3")
		r.log.waitFor(t, "configuration reloaded")
	}
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	if n := strings.Count(r.log.text.String(), "has changed"); n != 2 {
		t.Errorf("the watch reloaded %d times, want 2:\n%s", n, r.log.text.String())
	}
}

func TestSwitchedModeSurvivesAReloadUntilTheFileSaysElse(t *testing.T) {
	backend := createdBackend(t)
	r := startReloadable(t, backend)
	mode := func() string {
		list := r.get("/v1/rules")
		_, rest, _ := strings.Cut(list, `"mode":"`)
		word, _, _ := strings.Cut(rest, `"`)
		return word
	}
	request, _ := http.NewRequest("PUT", r.admin+"/v1/rules/first/mode", strings.NewReader(`{"mode":"off"}`))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	r.write("BACKEND", backend, "capacity: 1", "capacity: 2")
	r.post()
	if got := mode(); got != "off" {
		t.Errorf("mode %s after a reload that says nothing of it", got)
	}
	r.write("BACKEND", backend, "pool: lessons\n", "pool: lessons\n    mode: off\n")
	r.post()
	r.write("BACKEND", backend)
	r.post()
	if got := mode(); got != "enforce" {
		t.Errorf("mode %s, and the file says enforce now", got)
	}
}

// Many reloads (a thousand under SLOTGATE_SOAK) while requests come: none fails, each is answered by the rules of
// one configuration, and nothing is left of the others.
func TestManyReloadsUnderLoad(t *testing.T) {
	reloads := 200
	if os.Getenv("SLOTGATE_SOAK") != "" {
		reloads = 1000
	}
	slow := make(chan struct{})
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Student") == "slow" {
			<-slow
		}
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(backend.Close)
	r := startReloadable(t, backend.URL+"\", timeout: \"5m")
	r.log.forget.Store(true)
	svc := make(chan error, 1)
	go func() { // under way all the time, and answered in the end
		status, decision := r.bookErr("5", "slow")
		if status != http.StatusCreated || decision != "admitted" {
			svc <- fmt.Errorf("the slow one: %d %s", status, decision)
		}
		svc <- nil
	}()
	r.book(t, "7", "ann") // all others find it sold out

	var done atomic.Bool
	var asked, mixed atomic.Int64
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for !done.Load() {
				request, _ := http.NewRequest("POST", r.gate+"/lessons/7/bookings", nil)
				request.Header.Set("Student", "bob")
				answer, err := http.DefaultClient.Do(request)
				if err != nil {
					t.Error(err)
					return
				}
				text, _ := io.ReadAll(answer.Body)
				_ = answer.Body.Close()
				asked.Add(1)
				if answer.StatusCode != http.StatusConflict || string(text) != answer.Header.Get("Gate-Rule") {
					mixed.Add(1)
					t.Errorf("%d: rule %q answers %q", answer.StatusCode, answer.Header.Get("Gate-Rule"), text)
					return
				}
			}
		})
	}
	settled := func() (heap uint64, goroutines int) {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, runtime.NumGoroutine()
	}
	var heap uint64
	var goroutines int
	for i := range reloads {
		name := "first"
		if i%2 == 0 {
			name = "second"
		}
		r.write("NAME", name, "BACKEND\" }", backend.URL+"\", timeout: 5m }", "10m", fmt.Sprintf("%ds", 400+i%3))
		if status, body := r.post(); status != http.StatusOK {
			t.Fatalf("reload %d: %d %s", i, status, body)
		}
		if i == 100 {
			heap, goroutines = settled()
		}
	}
	close(slow)
	if err := <-svc; err != nil {
		t.Error(err)
	}
	done.Store(true)
	clients.Wait()
	var after uint64
	var left int
	for range 100 { // the rules of the slow one go when it has ended
		if after, left = settled(); left <= goroutines && after < heap+8<<20 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if after > heap+8<<20 || left > goroutines+5 {
		t.Errorf("heap %d KiB and %d goroutines, after 100 reloads it was %d KiB and %d", after>>10, left, heap>>10, goroutines)
	}
	t.Logf("%d reloads, %d requests, %d mixed, heap %d → %d KiB", reloads, asked.Load(), mixed.Load(), heap>>10, after>>10)
}

// bookErr is book for a goroutine of its own.
func (s *runningService) bookErr(lesson, student string) (status int, decision string) {
	request, _ := http.NewRequest("POST", s.gate+"/lessons/"+lesson+"/bookings", nil)
	request.Header.Set("Student", student)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	return answer.StatusCode, answer.Header.Get("Gate-Decision")
}
