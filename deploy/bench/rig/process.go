package rig

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/slotgate/slotgate/gate/testbed/child"
)

// startTimeout is how long a program may take until it answers. It decides only how
// long a broken set-up waits.
const startTimeout = 30 * time.Second

// Process is one running program. Safe for concurrent use.
type Process struct {
	*child.Process
	quit syscall.Signal
}

// start starts cmd under the name that reports give it. quit ends it, also when
// this process dies first: a server with workers must get one that it passes on.
func start(name string, quit syscall.Signal, cmd *exec.Cmd) (*Process, error) {
	p, err := child.Start(name, cmd, quit)
	if err != nil {
		return nil, err
	}
	return &Process{p, quit}, nil
}

// Stop ends the program and returns when it is gone. It may be called twice.
func (p *Process) Stop() { p.End(p.quit, 5*time.Second) }

// await asks probe until it succeeds.
func (p *Process) await(ctx context.Context, probe func() error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return p.Await(ctx, probe)
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
