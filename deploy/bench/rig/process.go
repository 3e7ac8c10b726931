package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// startTimeout is how long a program may take until it answers. It decides only how
// long a broken set-up waits.
const startTimeout = 30 * time.Second

// Process is one running program. Safe for concurrent use.
type Process struct {
	Name string // what reports call it
	PID  int

	quit   syscall.Signal
	output *tail
	exited chan struct{} // closed once the program has been reaped
	err    error         // how it ended; valid after exited is closed
}

// start starts cmd under the name that reports give it. quit ends it, also when
// this process dies first: a server with workers must get one that it passes on.
func start(name string, quit syscall.Signal, cmd *exec.Cmd) (*Process, error) {
	p := &Process{Name: name, quit: quit, output: &tail{}, exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.output, p.output
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = quit
	started := make(chan error)
	go func() {
		// The death signal comes when the thread that forked ends, not the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			p.PID = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// Stop ends the program and returns when it is gone. It may be called twice.
func (p *Process) Stop() {
	// An error means that it has ended: exited tells.
	_ = syscall.Kill(p.PID, p.quit)
	select {
	case <-p.exited:
	case <-time.After(5 * time.Second):
		_ = syscall.Kill(p.PID, syscall.SIGKILL)
		<-p.exited
	}
}

// await asks probe until it succeeds.
func (p *Process) await(ctx context.Context, probe func() error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		err := probe()
		if err == nil {
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("%s ended before it was ready (%w); it printed:\n%s", p.Name, p.err, p.output)
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w; it printed:\n%s", p.Name, errors.Join(ctx.Err(), err), p.output)
		case <-again.C:
		}
	}
}

// accepts is a probe: somebody listens at addr.
func accepts(addr string) func() error {
	return func() error {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			return err
		}
		return conn.Close()
	}
}

// look finds a program, also where Debian keeps servers, which the PATH of most
// users does not name.
func look(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath(filepath.Join("/usr/sbin", name))
	}
	if err != nil {
		return "", fmt.Errorf("%s is not installed; run: deploy/bench/needs", name)
	}
	return path, nil
}

// tail keeps the end of what a program prints.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 4096

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if excess := len(t.text) - tailSize; excess > 0 {
		t.text = append(t.text[:0], t.text[excess:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
