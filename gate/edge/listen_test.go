package edge

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestListenOnUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gate.sock")
	f := start(t, echo(t).URL, nil)
	stale, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	stale.(*net.UnixListener).SetUnlinkOnClose(false) // as a killed process leaves it
	_ = stale.Close()

	ln, err := Listen("unix:" + path)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- f.Serve(ln) }()
	if _, err := Listen("unix:" + path); err == nil || !strings.Contains(err.Error(), "another process serves") {
		t.Fatalf("a served socket was taken: %v", err)
	}
	nc, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(nc, "GET /a? HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(resp.Body); string(body) != "GET /a? " {
		t.Fatalf("%q", body)
	}
	_ = nc.Close()
	_ = f.Shutdown(t.Context())
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Fatalf("the socket stays behind: %v", err)
	}

	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen("unix:" + path); err == nil || !strings.Contains(err.Error(), "is no socket") {
		t.Fatalf("a file was taken for a socket: %v", err)
	}
}
