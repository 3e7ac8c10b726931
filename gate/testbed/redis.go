package testbed

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/testbed/child"
)

// RedisServer is a redis-server that belongs to one test: one of its own, or a
// node of a Sentinel deployment or a Cluster. It starts empty and is gone when
// the test is. Addr, DirectAddr, Proxy, CA, PID and Running may be called at any
// time; the other methods by one goroutine at a time.
type RedisServer struct {
	t         testing.TB
	binary    string
	dir       string
	hosts     hosts
	port      int
	seat      *busSeat                  // of a node of a Cluster, else nil
	config    string                    // path of the configuration file that it keeps itself, if it has one
	args      []string                  // of the command line, where they win over config
	authority []byte                    // who signed its certificate, in PEM; nil without TLS
	proxy     *RedisProxy               // before it, if any
	rewrite   func(reply []byte) []byte // of that proxy

	mu       sync.Mutex
	child    *child.Process // nil before the first start
	frozen   bool
	isolated bool
}

// Redis starts redis-server on a free loopback port and returns once it
// answers PING. args are appended to its command line, for example
// "--maxmemory", "64mb", "--maxmemory-policy", "noeviction".
func Redis(t testing.TB, args ...string) *RedisServer {
	t.Helper()
	r := newRedis(t, direct, args...)
	if err := r.launch(); err != nil {
		t.Fatal(err)
	}
	return r
}

// newRedis prepares a server that launch starts.
func newRedis(t testing.TB, hosts hosts, args ...string) *RedisServer {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("testbed: redis-server is not installed; run: apt-get install -y redis-server")
	}
	r := &RedisServer{t: t, binary: binary, dir: t.TempDir(), hosts: hosts, args: args}
	t.Cleanup(r.Kill)
	return r
}

// configure gives the server a configuration file, which it may rewrite: so a
// role that it was given at run time outlives a restart.
func (r *RedisServer) configure(text string) error {
	r.config = filepath.Join(r.dir, "redis.conf")
	if err := os.WriteFile(r.config, []byte(text), 0o600); err != nil {
		return fmt.Errorf("testbed: redis: %w", err)
	}
	return nil
}

// launch starts the server for the first time, on a port of its choice, and what
// stands before it.
func (r *RedisServer) launch() error {
	return onFreePort(func(port int) error {
		r.port = port
		if r.seat != nil {
			if err := r.seat.choosePorts(); err != nil {
				return err
			}
		}
		err := r.start()
		if err == nil && r.hosts == proxied {
			r.proxy, err = startProxy(r.t, r.Addr(), r.DirectAddr(), r.rewrite)
		}
		if err == nil && r.seat != nil && r.seat.bus != nil {
			err = r.seat.bus.attach(r)
		}
		if err != nil {
			r.Kill()
		}
		return err
	})
}

func (r *RedisServer) start() error {
	var args []string
	if r.config != "" {
		args = append(args, r.config)
	}
	args = append(args, "--bind")
	args = append(args, r.hosts.bound()...)
	port := "--port"
	if r.authority != nil {
		args = append(args, port, "0")
		port = "--tls-port"
	}
	args = append(args, port, strconv.Itoa(r.port), "--dir", r.dir, "--save", "", "--appendonly", "no")
	if r.seat != nil {
		args = append(args, r.seat.args()...)
	}
	child, err := startChild(exec.Command(r.binary, append(args, r.args...)...), syscall.SIGKILL)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.child, r.frozen = child, false
	r.mu.Unlock()
	return awaitReady(child, r.ping)
}

// ping succeeds only when the process that answers is our child: a stranger
// that took the port first would otherwise pass for it.
func (r *RedisServer) ping() error {
	conn, err := net.DialTimeout("tcp", r.DirectAddr(), time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if config := r.tlsConfig(); config != nil {
		conn = tls.Client(conn, config)
	}
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("PING\r\nINFO server\r\n")); err != nil {
		return err
	}
	replies := bufio.NewReader(conn)
	pong, err := readReply(replies)
	if err != nil {
		return err
	}
	if bytes.HasPrefix(pong, []byte("-NOAUTH")) {
		return nil // started with --requirepass: it answers, and says no more
	}
	if string(pong) != "+PONG\r\n" {
		return fmt.Errorf("PING answered %q", pong)
	}
	info, err := readReply(replies)
	if err != nil {
		return err
	}
	if own := fmt.Sprintf("\nprocess_id:%d\r\n", r.PID()); !bytes.Contains(info, []byte(own)) {
		return fmt.Errorf("port %d is served by another process", r.port)
	}
	return nil
}

// Addr returns the host:port that clients connect to: the server's own, or that
// of the proxy before it. It stays the same for the life of the server,
// restarts included.
func (r *RedisServer) Addr() string { return loopback(r.port) }

// DirectAddr returns a host:port that leads to the server past any proxy.
func (r *RedisServer) DirectAddr() string { return fmt.Sprintf("%s:%d", r.hosts.inner, r.port) }

// Proxy returns the proxy before the server, nil without WithProxies.
func (r *RedisServer) Proxy() *RedisProxy { return r.proxy }

// PID returns the process id of the current incarnation.
func (r *RedisServer) PID() int { return r.process().PID }

// Running tells whether the server is neither killed nor frozen.
func (r *RedisServer) Running() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.child.Alive() && !r.frozen
}

// reachable tells whether other servers get answers from it.
func (r *RedisServer) reachable() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.child.Alive() && !r.frozen && !r.isolated
}

// Kill ends the server with SIGKILL and returns when it is gone. Killing a
// dead server does nothing.
func (r *RedisServer) Kill() {
	if child := r.process(); child != nil {
		child.End(syscall.SIGKILL, startTimeout)
	}
}

// Freeze stops the process with SIGSTOP: connections stay open and nothing is
// answered until Resume. It returns once the process stands still.
func (r *RedisServer) Freeze() {
	r.t.Helper()
	if err := r.process().Freeze(); err != nil {
		r.t.Fatal(err)
	}
	r.setFrozen(true)
}

// Resume lets a frozen server go on with what it has received meanwhile.
func (r *RedisServer) Resume() {
	r.t.Helper()
	if err := r.process().Resume(); err != nil {
		r.t.Fatal(err)
	}
	r.setFrozen(false)
}

func (r *RedisServer) setFrozen(frozen bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frozen = frozen
}

// process returns the current incarnation.
func (r *RedisServer) process() *child.Process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.child
}

// Restart kills the server if it runs and starts it again on the same port,
// with no data, no cached scripts and a new run id. A node of a Cluster or
// Sentinel deployment comes back in the role it last had.
func (r *RedisServer) Restart() {
	r.t.Helper()
	r.Kill()
	for _, data := range []string{"dump.rdb", "appendonlydir"} {
		if err := os.RemoveAll(filepath.Join(r.dir, data)); err != nil {
			r.t.Fatalf("testbed: redis: %v", err)
		}
	}
	if err := r.start(); err != nil {
		r.t.Fatal(err)
	}
}

// RestartWithData does the same and keeps every write that was acknowledged. A
// server that was started without "--appendonly", "yes" has kept nothing; nodes
// of a Cluster or Sentinel deployment have.
func (r *RedisServer) RestartWithData() {
	r.t.Helper()
	r.Kill()
	if _, err := os.Stat(filepath.Join(r.dir, "appendonlydir")); errors.Is(err, os.ErrNotExist) {
		r.t.Fatal(`testbed: RestartWithData needs a server with "--appendonly", "yes"`)
	}
	if err := r.start(); err != nil {
		r.t.Fatal(err)
	}
}
