package redisstore

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/testbed"
)

// A reply that is here counts, however late its reader comes.
func TestAReplyThatIsHereIsReadAfterItsDeadline(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	plain, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn := lookingAgain(plain)
	defer conn.Close()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()

	if _, err := server.Write([]byte("+OK")); err != nil {
		t.Fatal(err)
	}
	arrived(t, plain.(syscall.Conn))
	_ = conn.SetReadDeadline(time.Now().Add(-time.Second))
	buffer := make([]byte, 16)
	if n, err := conn.Read(buffer); string(buffer[:n]) != "+OK" || err != nil {
		t.Fatalf("%q, %v", buffer[:n], err)
	}

	_ = conn.SetReadDeadline(time.Now().Add(-time.Second))
	if n, err := conn.Read(buffer); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("where nothing is: %d bytes, %v", n, err)
	}
	server.Close()
	_ = conn.SetReadDeadline(time.Time{})
	if n, err := conn.Read(buffer); n != 0 || err == nil {
		t.Fatalf("after its end: %d bytes, %v", n, err)
	}
}

// arrived returns once a socket has bytes to read.
func arrived(t *testing.T, socket syscall.Conn) {
	t.Helper()
	raw, err := socket.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Read(func(fd uintptr) bool {
		n, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK)
		return n > 0 || err != syscall.EAGAIN
	}); err != nil {
		t.Fatal(err)
	}
}

// The library looks at a connection from its pool: what stands before it must not hide it.
func TestConnectionsToRedisCanBeLookedAt(t *testing.T) {
	server := testbed.Redis(t)
	dial := lazily(Options{Addresses: []string{server.Addr()}, Timeout: time.Second}.dialer())
	conn, err := dial(context.Background(), "tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, ok := conn.(syscall.Conn); !ok {
		t.Errorf("%T is no syscall.Conn", conn)
	}
}
