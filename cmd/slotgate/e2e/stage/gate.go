package stage

import (
	"bytes"
	"fmt"
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

// Gate is one running slotgate.
type Gate struct {
	t     testing.TB
	URL   string // where bookings go
	Admin string // base URL of the admin API
	File  string // its configuration
	cmd   *exec.Cmd
	Log   fmt.Stringer // what it printed, at any time
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

// StartGate writes the configuration, to which it adds free addresses, starts the program and waits until it is ready.
func StartGate(t testing.TB, config string) *Gate {
	t.Helper()
	listen := fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t))
	admin := fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t))
	config = "server: { listen: \"" + listen + "\" }\nadmin: { listen: \"" + admin + "\" }\n" + config
	file := filepath.Join(t.TempDir(), "gate.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	g := &Gate{
		t: t, URL: "http://" + listen, Admin: "http://" + admin,
		File: file,
		cmd:  exec.Command(program, "run", "-c", file), ended: make(chan error, 1),
	}
	log := &lockedBuffer{}
	g.Log, g.cmd.Stdout, g.cmd.Stderr = log, log, log
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { g.ended <- g.cmd.Wait() }()
	t.Cleanup(func() {
		g.Stop()
		if t.Failed() {
			t.Logf("gate %s said:\n%s", g.URL, g.Log)
		}
	})
	deadline := time.Now().Add(30 * time.Second)
	for {
		resp, err := http.Get(g.Admin + "/readyz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return g
			}
		}
		select {
		case err := <-g.ended:
			g.ended <- err
			t.Fatalf("slotgate run ended: %v\n%s", err, g.Log)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("slotgate run is not ready: %v\n%s", err, g.Log)
		}
	}
}

// Stop asks for a clean end and returns it; it may be called again.
func (g *Gate) Stop() error {
	_ = g.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-g.ended:
		g.ended <- err
		return err
	case <-time.After(30 * time.Second):
		_ = g.cmd.Process.Kill()
		err := <-g.ended
		g.ended <- err
		g.t.Errorf("slotgate did not end within 30 s of SIGTERM\n%s", g.Log)
		return err
	}
}

// Kill ends the program without warning.
func (g *Gate) Kill() {
	_ = g.cmd.Process.Kill()
	err := <-g.ended
	g.ended <- err
}

// Signal sends a signal.
func (g *Gate) Signal(s os.Signal) error { return g.cmd.Process.Signal(s) }

// RSS is the process's resident memory in bytes.
func (g *Gate) RSS() int64 {
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

// Leads reports whether the gate has said last that it leads the pool's looks.
func (g *Gate) Leads() bool {
	log := g.Log.String()
	return strings.LastIndex(log, "leads=true") > strings.LastIndex(log, "leads=false")
}
