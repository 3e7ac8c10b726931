package rig

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"text/template"
)

// Rig is a temporary folder with the programs of this repository in it. It is used
// by one goroutine at a time.
type Rig struct {
	dir  string
	made int // folders so far
}

// New makes the folder and builds the programs there.
func New(ctx context.Context) (*Rig, error) {
	dir, err := os.MkdirTemp("", "slotgate-bench-")
	if err != nil {
		return nil, err
	}
	r := &Rig{dir: dir}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", dir+string(filepath.Separator),
		"github.com/slotgate/slotgate/cmd/slotgate",
		"github.com/slotgate/slotgate/cmd/legacybooking",
		"github.com/slotgate/slotgate/deploy/bench/peer")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // and so as they are released (Makefile)
	if out, err := build.CombinedOutput(); err != nil {
		r.Close()
		return nil, fmt.Errorf("go build: %w\n%s", err, out)
	}
	// Servers that drop root's rights have to get at their files.
	if err := os.Chmod(dir, 0o755); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Close removes the folder. All processes must have been stopped.
func (r *Rig) Close() { os.RemoveAll(r.dir) }

// Folder makes a new folder, for example for one server's files.
func (r *Rig) Folder() (string, error) {
	r.made++
	dir := filepath.Join(r.dir, strconv.Itoa(r.made))
	return dir, os.Mkdir(dir, 0o755)
}

// Start starts a program of this repository, named like its command, and returns
// when it accepts connections at addr.
func (r *Rig) Start(ctx context.Context, name, program, addr string, args ...string) (*Process, error) {
	return launch(ctx, name, filepath.Join(r.dir, program), accepts(addr), syscall.SIGTERM, args...)
}

// StartInstalled does the same with a program of the machine.
func (r *Rig) StartInstalled(ctx context.Context, name, program, addr string, args ...string) (*Process, error) {
	path, err := look(program)
	if err != nil {
		return nil, err
	}
	return launch(ctx, name, path, accepts(addr), syscall.SIGTERM, args...)
}

func launch(ctx context.Context, name, path string, probe func() error, quit syscall.Signal, args ...string) (*Process, error) {
	p, err := start(name, quit, exec.Command(path, args...))
	if err != nil {
		return nil, err
	}
	if err := p.await(ctx, probe); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// Write fills in a template and writes it to a file of that name in dir.
func Write(dir, name, text string, data any) (path string, err error) {
	parsed, err := template.New(name).Option("missingkey=error").Parse(text)
	if err != nil {
		return "", err
	}
	var file bytes.Buffer
	if err := parsed.Execute(&file, data); err != nil {
		return "", err
	}
	path = filepath.Join(dir, name)
	return path, os.WriteFile(path, file.Bytes(), 0o644)
}

// FreeAddr returns host:port of a loopback port on which nobody listens. It is
// below the range from which the kernel takes the near ends of connections (32768
// and up), where the load's own could sit on it.
func FreeAddr() (string, error) {
	var last error
	for range 200 {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(10_000+rand.IntN(22_000)))
		listener, err := net.Listen("tcp", addr)
		if err == nil {
			return addr, listener.Close()
		}
		last = err
	}
	return "", fmt.Errorf("no free port: %w", last)
}
