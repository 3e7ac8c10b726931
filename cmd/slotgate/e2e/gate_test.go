package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/testbed"
)

// gateProcess is one running slotgate.
type gateProcess struct {
	t     testing.TB
	url   string
	admin string
	cmd   *exec.Cmd
	log   *lockedBuffer
	ended chan error
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// startGate writes the configuration, in which LISTEN and ADMIN stand for free
// addresses, starts the program and waits until it is ready.
func startGate(t testing.TB, config string) *gateProcess {
	t.Helper()
	listen := fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t))
	admin := fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t))
	config = "server: { listen: \"" + listen + "\" }\nadmin: { listen: \"" + admin + "\" }\n" + config
	file := filepath.Join(t.TempDir(), "gate.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	g := &gateProcess{
		t: t, url: "http://" + listen, admin: "http://" + admin,
		cmd: exec.Command(program, "run", "-c", file), log: &lockedBuffer{}, ended: make(chan error, 1),
	}
	g.cmd.Stdout, g.cmd.Stderr = g.log, g.log
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { g.ended <- g.cmd.Wait() }()
	t.Cleanup(func() {
		g.stop()
		if t.Failed() {
			t.Logf("gate %s said:\n%s", g.url, g.log)
		}
	})
	deadline := time.Now().Add(30 * time.Second)
	for {
		resp, err := http.Get(g.admin + "/readyz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return g
			}
		}
		select {
		case err := <-g.ended:
			g.ended <- err
			t.Fatalf("slotgate run ended: %v\n%s", err, g.log)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("slotgate run is not ready: %v\n%s", err, g.log)
		}
	}
}

// stop asks for a clean end and returns it; it may be called again.
func (g *gateProcess) stop() error {
	_ = g.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-g.ended:
		g.ended <- err
		return err
	case <-time.After(30 * time.Second):
		_ = g.cmd.Process.Kill()
		err := <-g.ended
		g.ended <- err
		g.t.Errorf("slotgate did not end within 30 s of SIGTERM\n%s", g.log)
		return err
	}
}

// kill ends the program without warning.
func (g *gateProcess) kill() {
	_ = g.cmd.Process.Kill()
	err := <-g.ended
	g.ended <- err
}

// rss is the process's resident memory in bytes.
func (g *gateProcess) rss() int64 {
	g.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.cmd.Process.Pid))
	if err != nil {
		g.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	g.t.Fatal("no VmRSS")
	return 0
}

// slot reads a slot through the admin API.
func (g *gateProcess) slot(pool, slot string) (view struct {
	Capacity, Available *int64
	Confirmed, Held     int64
	Full, Closed, Dirty bool
	Holds               []struct{ ID, Subject, State string }
}) {
	g.t.Helper()
	resp, err := http.Get(g.admin + "/v1/slots/" + pool + "/" + slot)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		g.t.Fatalf("slot %s/%s: %d %s", pool, slot, resp.StatusCode, body)
	}
	if err := json.Unmarshal(body, &view); err != nil {
		g.t.Fatalf("slot %s/%s: %v in %s", pool, slot, err, body)
	}
	return view
}

// answer is a response with its body read.
type answer struct {
	status int
	header http.Header
	body   []byte
	err    error
}

func (a answer) String() string {
	if a.err != nil {
		return a.err.Error()
	}
	return fmt.Sprintf("%d %s %v", a.status, a.body, a.header)
}

// client neither follows redirects nor repeats requests.
var client = &http.Client{
	Transport:     &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Timeout:       60 * time.Second,
}

// send is one request; fields are "Name: value".
func send(method, url, body string, fields ...string) answer {
	// A reader of no known kind keeps net/http from repeating the request.
	req, err := http.NewRequest(method, url, io.NopCloser(strings.NewReader(body)))
	if err != nil {
		return answer{err: err}
	}
	req.ContentLength = int64(len(body))
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	} else {
		req.Body = http.NoBody
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		req.Header.Add(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{status: resp.StatusCode, header: resp.Header, body: b, err: err}
}

// book is a booking of a lesson through a gate, or straight at the backend.
func book(base string, lesson int, student string, fields ...string) answer {
	return send("POST", fmt.Sprintf("%s/api/lessons/%d/bookings", base, lesson), fmt.Sprintf(`{"student_id":%q}`, student), fields...)
}
