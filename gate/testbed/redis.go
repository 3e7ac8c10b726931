package testbed

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// RedisServer is a redis-server that belongs to one test. It starts empty,
// persists nothing and is gone when the test is. Addr may be called at any
// time; the other methods by one goroutine at a time.
type RedisServer struct {
	t      testing.TB
	binary string
	dir    string
	port   int
	args   []string
	child  *process
}

// Redis starts redis-server on a free loopback port and returns once it
// answers PING. args are appended to its command line, for example
// "--maxmemory", "64mb".
func Redis(t testing.TB, args ...string) *RedisServer {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("testbed: redis-server is not installed; run: apt-get install -y redis-server")
	}
	r := &RedisServer{t: t, binary: binary, dir: t.TempDir(), args: args}
	t.Cleanup(func() {
		if r.child != nil {
			r.child.end(syscall.SIGKILL, startTimeout)
		}
	})
	// Between choosing a port and binding it another process may be faster.
	const attempts = 5
	for attempt := 1; ; attempt++ {
		r.port = FreePort(t)
		err := r.start()
		if err == nil {
			return r
		}
		if attempt == attempts {
			t.Fatal(err)
		}
	}
}

func (r *RedisServer) start() error {
	args := append([]string{
		"--bind", "127.0.0.1", "--port", strconv.Itoa(r.port), "--dir", r.dir,
		"--save", "", "--appendonly", "no",
	}, r.args...)
	child, err := startProcess(exec.Command(r.binary, args...), syscall.SIGKILL)
	if err != nil {
		return err
	}
	r.child = child
	return child.awaitReady(r.ping)
}

// ping succeeds only when the process that answers is our child: a stranger
// that took the port first would otherwise pass for it.
func (r *RedisServer) ping() error {
	conn, err := net.DialTimeout("tcp", r.Addr(), time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
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
	if own := fmt.Sprintf("\nprocess_id:%d\r\n", r.child.pid); !bytes.Contains(info, []byte(own)) {
		return fmt.Errorf("port %d is served by another process", r.port)
	}
	return nil
}

// Addr returns host:port. It stays the same for the life of the server,
// restarts included.
func (r *RedisServer) Addr() string { return loopback(r.port) }

// PID returns the process id of the current incarnation.
func (r *RedisServer) PID() int { return r.child.pid }

// Kill ends the server with SIGKILL and returns when it is gone. Killing a
// dead server does nothing.
func (r *RedisServer) Kill() {
	r.child.end(syscall.SIGKILL, startTimeout)
}

// Freeze stops the process with SIGSTOP: connections stay open and nothing is
// answered until Resume. It returns once the process stands still.
func (r *RedisServer) Freeze() {
	r.t.Helper()
	if err := r.child.freeze(); err != nil {
		r.t.Fatal(err)
	}
}

// Resume lets a frozen server go on with what it has received meanwhile.
func (r *RedisServer) Resume() {
	r.t.Helper()
	if err := r.child.resume(); err != nil {
		r.t.Fatal(err)
	}
}

// Restart kills the server if it runs and starts it again on the same port,
// with no data, no cached scripts and a new run id.
func (r *RedisServer) Restart() {
	r.t.Helper()
	r.Kill()
	if err := r.start(); err != nil {
		r.t.Fatal(err)
	}
}
