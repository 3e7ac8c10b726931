package testbed

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/testbed/child"
)

// NginxServer is an nginx that belongs to one test.
type NginxServer struct {
	binary string
	dir    string
	port   int
	child  *child.Process
}

// nginxConfig is the reverse proxy of nginx's own documentation: pooled
// connections to the backend, for which it asks to set HTTP/1.1 and to drop
// Connection, and nothing else. Its arguments: the folder, the backend, the port.
const nginxConfig = `daemon off;
master_process off;
pid %[1]s/nginx.pid;
error_log stderr;
events {}
http {
	access_log off;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	upstream backend {
		server %[2]s;
		keepalive 8;
	}
	server {
		listen 127.0.0.1:%[3]d;
		location / {
			proxy_pass http://backend;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
		}
	}
}
`

// Nginx starts nginx on a free loopback port as a reverse proxy before backend
// (host:port), to which it sends the Host "backend". It returns once nginx
// accepts connections.
func Nginx(t testing.TB, backend string) *NginxServer {
	t.Helper()
	binary, err := lookServer("nginx")
	if err != nil {
		t.Fatal("testbed: nginx is not installed; run: apt-get install -y nginx-light")
	}
	n := &NginxServer{binary: binary, dir: t.TempDir()}
	t.Cleanup(func() {
		if n.child != nil {
			n.child.End(syscall.SIGTERM, 10*time.Second)
		}
	})
	if err := n.start(backend); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *NginxServer) start(backend string) error {
	file := filepath.Join(n.dir, "nginx.conf")
	return onFreePort(func(port int) (err error) {
		n.port = port
		if err := os.WriteFile(file, fmt.Appendf(nil, nginxConfig, n.dir, backend, n.port), 0o600); err != nil {
			return fmt.Errorf("testbed: nginx: %w", err)
		}
		if n.child, err = startChild(exec.Command(n.binary, "-c", file), syscall.SIGKILL); err != nil {
			return err
		}
		return awaitReady(n.child, n.ping)
	})
}

// ping succeeds only when our child has bound the port: had it not, it would have
// left no pid file.
func (n *NginxServer) ping() error {
	if _, err := os.Stat(filepath.Join(n.dir, "nginx.pid")); err != nil {
		return err
	}
	conn, err := net.DialTimeout("tcp", n.Addr(), time.Second)
	if err != nil {
		return err
	}
	return conn.Close()
}

// Addr returns host:port.
func (n *NginxServer) Addr() string { return loopback(n.port) }

// Version returns what the program calls itself, for example "nginx/1.22.1".
func (n *NginxServer) Version() (string, error) {
	var said bytes.Buffer
	cmd := exec.Command(n.binary, "-v")
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("testbed: nginx -v: %w", err)
	}
	_, version, _ := strings.Cut(strings.TrimSpace(said.String()), ": ")
	return version, nil
}

// lookServer finds a program that Debian keeps where the PATH of most users does
// not look.
func lookServer(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath(filepath.Join("/usr/sbin", name))
	}
	return path, err
}
