// Package child runs other programs for as long as this one lives: whoever starts one gets to
// know how it ended and what it printed last, and the kernel ends it should this process die
// first.
package child

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Process is one running child. Safe for concurrent use.
type Process struct {
	Name string // as errors call it
	PID  int

	output *tail
	exited chan struct{} // closed once the child has been reaped
	err    error         // how it ended; read it only after exited is closed
}

// Start starts cmd, which errors call by name. The kernel sends death to the child should this
// process die first.
func Start(name string, cmd *exec.Cmd, death syscall.Signal) (*Process, error) {
	p := &Process{Name: name, output: &tail{}, exited: make(chan struct{})}
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
			p.PID = cmd.Process.Pid
		}
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.exited)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", p.Name, err)
	}
	return p, nil
}

// Run runs cmd to its end.
func Run(cmd *exec.Cmd) error {
	p, err := Start(cmd.Path, cmd, syscall.SIGKILL)
	if err != nil {
		return err
	}
	if <-p.exited; p.err != nil {
		return fmt.Errorf("%s: %w; it printed:\n%s", p.Name, p.err, p.output)
	}
	return nil
}

// Alive reports whether the child has not ended yet.
func (p *Process) Alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// End sends sig and waits until the child is gone. A child that has not left
// after grace is killed.
func (p *Process) End(sig syscall.Signal, grace time.Duration) {
	if !p.Alive() {
		return
	}
	// A failed kill means that the child is already gone: exited tells.
	_ = syscall.Kill(p.PID, sig)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.exited:
		return
	case <-timer.C:
	}
	_ = syscall.Kill(p.PID, syscall.SIGKILL)
	<-p.exited
}

// Freeze returns once the kernel has stopped every thread of the child.
func (p *Process) Freeze() error {
	if err := syscall.Kill(p.PID, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("freeze %s (pid %d): %w", p.Name, p.PID, err)
	}
	for {
		// WSTOPPED alone never reaps: the exit stays for cmd.Wait.
		err := unix.Waitid(unix.P_PID, p.PID, nil, unix.WSTOPPED, nil)
		if !errors.Is(err, unix.EINTR) {
			if err != nil {
				return fmt.Errorf("freeze %s (pid %d): %w", p.Name, p.PID, err)
			}
			return nil
		}
	}
}

// Resume lets a child that was frozen go on.
func (p *Process) Resume() error {
	if err := syscall.Kill(p.PID, syscall.SIGCONT); err != nil {
		return fmt.Errorf("resume %s (pid %d): %w", p.Name, p.PID, err)
	}
	return nil
}

// Await asks probe until it succeeds. It gives up when the child exits or ctx ends; the
// error then carries what the child printed.
func (p *Process) Await(ctx context.Context, probe func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.exited:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := Until(ctx, probe)
	switch {
	case err == nil:
		return nil
	case !p.Alive():
		return fmt.Errorf("%s ended before it was ready (%w); it printed:\n%s", p.Name, p.err, p.output)
	default:
		return fmt.Errorf("%s was not ready in time (%w); it printed:\n%s", p.Name, err, p.output)
	}
}

// Printed is the last that the child printed.
func (p *Process) Printed() string { return p.output.String() }

// Until asks probe again and again until it succeeds. It gives up once ctx ends, with what
// probe said last.
func Until(ctx context.Context, probe func() error) error {
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		err := probe()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-again.C:
		}
	}
}
