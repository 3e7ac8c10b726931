package testbed

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// startTimeout is how long a program may take until it answers. Generous: it
// only decides how long a broken test waits, never whether a good one passes.
const startTimeout = 60 * time.Second

// process is one running child. Safe for concurrent use.
type process struct {
	name   string
	pid    int
	output *tail
	exited chan struct{} // closed once the child has been reaped
	err    error         // how it ended; read it only after exited is closed
}

// startProcess starts cmd. The kernel sends death to the child should this
// process die first.
func startProcess(cmd *exec.Cmd, death syscall.Signal) (*process, error) {
	p := &process{name: cmd.Path, output: &tail{}, exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.output, p.output
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = death

	started := make(chan error)
	go func() {
		// The death signal is bound to the thread that forked, not to the
		// process: keep that thread until the child is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.exited)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("testbed: start %s: %w", p.name, err)
	}
	return p, nil
}

// runProcess runs cmd to its end.
func runProcess(cmd *exec.Cmd) error {
	p, err := startProcess(cmd, syscall.SIGKILL)
	if err != nil {
		return err
	}
	if <-p.exited; p.err != nil {
		return fmt.Errorf("testbed: %s: %w; it printed:\n%s", p.name, p.err, p.output)
	}
	return nil
}

func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// end sends sig and waits until the child is gone. A child that has not left
// after grace is killed.
func (p *process) end(sig syscall.Signal, grace time.Duration) {
	if !p.alive() {
		return
	}
	// A failed kill means that the child is already gone: exited tells.
	_ = syscall.Kill(p.pid, sig)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.exited:
		return
	case <-timer.C:
	}
	_ = syscall.Kill(p.pid, syscall.SIGKILL)
	<-p.exited
}

// freeze returns once the kernel has stopped every thread of the child.
func (p *process) freeze() error {
	if err := syscall.Kill(p.pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("testbed: freeze %s (pid %d): %w", p.name, p.pid, err)
	}
	for {
		// WSTOPPED alone never reaps: the exit stays for cmd.Wait.
		err := unix.Waitid(unix.P_PID, p.pid, nil, unix.WSTOPPED, nil)
		if !errors.Is(err, unix.EINTR) {
			if err != nil {
				return fmt.Errorf("testbed: freeze %s (pid %d): %w", p.name, p.pid, err)
			}
			return nil
		}
	}
}

func (p *process) resume() error {
	if err := syscall.Kill(p.pid, syscall.SIGCONT); err != nil {
		return fmt.Errorf("testbed: resume %s (pid %d): %w", p.name, p.pid, err)
	}
	return nil
}

// awaitReady asks probe until it succeeds. It gives up when the child exits or
// startTimeout passes; the error then carries what the child printed.
func (p *process) awaitReady(probe func() error) error {
	err := await(p.exited, probe)
	switch {
	case err == nil:
		return nil
	case !p.alive():
		return fmt.Errorf("testbed: %s ended before it was ready (%w); it printed:\n%s", p.name, p.err, p.output)
	default:
		return fmt.Errorf("testbed: %s was not ready after %s (%w); it printed:\n%s", p.name, startTimeout, err, p.output)
	}
}
