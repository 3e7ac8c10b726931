package upstream

import (
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/deadline"
	"github.com/slotgate/slotgate/rules"
)

// canned is a connection to a backend that has answered before it is asked.
type canned struct {
	net.Conn
	answer string
}

func (c *canned) Read(p []byte) (int, error)       { return copy(p, c.answer), nil }
func (c *canned) Write(p []byte) (int, error)      { return len(p), nil }
func (c *canned) SetReadDeadline(time.Time) error  { return nil }
func (c *canned) SetWriteDeadline(time.Time) error { return nil }
func (c *canned) SetDeadline(time.Time) error      { return nil }
func (c *canned) Close() error                     { return nil }

// silent is a socket on which nothing has come.
type silent struct{}

func (silent) Control(func(uintptr)) error    { return nil }
func (silent) Read(func(uintptr) bool) error  { return nil }
func (silent) Write(func(uintptr) bool) error { return nil }

var _ syscall.RawConn = silent{}

// BenchmarkPassAlone is what the client itself costs: no socket is used.
func BenchmarkPassAlone(b *testing.B) {
	c, err := New(Options{URL: "http://127.0.0.1:1"})
	if err != nil {
		b.Fatal(err)
	}
	c.open = newPool(func(time.Time) (*conn, error) {
		return newConn(deadline.New(&canned{answer: "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nDate: Mon, 30 Nov 2026 14:00:00 GMT\r\nContent-Length: 25\r\n\r\n{\"data\":{\"booking_id\":1}}"}), silent{}, false, 4<<10), nil
	}, 1, time.Minute)
	defer c.Close()
	r := &gate.Request{ID: "ABCDEFGHIJKLMNOPQRSTUVWXYZ", Target: "/anything"}
	r.Method, r.Path, r.Host = "GET", "/anything", "127.0.0.1:18080"
	r.Header = []rules.Field{
		{Name: "Host", Value: "127.0.0.1:18080"},
		{Name: "X-Forwarded-For", Value: "127.0.0.1"},
		{Name: "X-Forwarded-Host", Value: "127.0.0.1:18080"},
		{Name: "X-Forwarded-Proto", Value: "http"},
		{Name: "Forwarded", Value: `for=127.0.0.1;host="127.0.0.1:18080";proto=http`},
		{Name: "Via", Value: "1.1 slotgate"},
	}
	buf := make([]byte, 64)
	b.ReportAllocs()
	for b.Loop() {
		stream, err := c.Pass(r, nil, 0)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(stream.Body, buf[:stream.Length]); err != nil {
			b.Fatal(err)
		}
		_ = stream.Body.Close()
		stream.Free()
	}
}
