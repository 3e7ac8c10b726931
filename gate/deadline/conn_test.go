package deadline_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/deadline"
)

// counted counts how often the connection's own deadlines are set.
type counted struct {
	*net.TCPConn
	reads, writes atomic.Int64
	moved         chan struct{} // has one for each time that the write deadline is set
}

func (c *counted) SetReadDeadline(t time.Time) error {
	c.reads.Add(1)
	return c.TCPConn.SetReadDeadline(t)
}

func (c *counted) SetWriteDeadline(t time.Time) error {
	c.writes.Add(1)
	c.moved <- struct{}{}
	return c.TCPConn.SetWriteDeadline(t)
}

// pair is a wrapped end of a TCP connection, and the other end.
func pair(t *testing.T) (*deadline.Conn, *counted, *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	far, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	near, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = far.Close(), near.Close() })
	c := &counted{TCPConn: near.(*net.TCPConn), moved: make(chan struct{}, 256)}
	return deadline.New(c), c, far.(*net.TCPConn)
}

const (
	soon  = 50 * time.Millisecond
	later = 300 * time.Millisecond
)

// timed calls op, which has to fail with a time-out, and returns how long it took.
func timed(t *testing.T, op func() error) time.Duration {
	t.Helper()
	began := time.Now()
	err := op()
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %v, want a time-out", err)
	}
	if late := net.Error(nil); !errors.As(err, &late) || !late.Timeout() {
		t.Fatalf("%v is no net.Error with Timeout", err)
	}
	return time.Since(began)
}

func read(c net.Conn) func() error {
	return func() error { _, err := c.Read(make([]byte, 1)); return err }
}

// fill writes until the other end's buffers, and this one's, hold no more.
func fill(c net.Conn) func() error {
	return func() error {
		for {
			if _, err := c.Write(make([]byte, 1<<20)); err != nil {
				return err
			}
		}
	}
}

func TestReadEndsAtTheDeadline(t *testing.T) {
	c, _, _ := pair(t)
	for _, d := range []time.Duration{soon, later, soon} {
		if err := c.SetReadDeadline(time.Now().Add(d)); err != nil {
			t.Fatal(err)
		}
		if took := timed(t, read(c)); took < d-time.Millisecond {
			t.Errorf("a deadline in %v ended the read after %v", d, took)
		}
	}
}

func TestDeadlineMovesToALaterTime(t *testing.T) {
	for name, set := range map[string]func(*deadline.Conn, time.Time) error{
		"both": (*deadline.Conn).SetDeadline, "one way": nil,
	} {
		t.Run(name, func(t *testing.T) {
			for way, op := range map[string]func(net.Conn) func() error{"read": read, "write": fill} {
				c, own, _ := pair(t)
				set := set
				switch {
				case set != nil:
				case way == "read":
					set = (*deadline.Conn).SetReadDeadline
				default:
					set = (*deadline.Conn).SetWriteDeadline
				}
				began := time.Now()
				for _, d := range []time.Duration{soon, 2 * soon, later} {
					if err := set(c, began.Add(d)); err != nil {
						t.Fatal(err)
					}
				}
				if n := own.reads.Load() + own.writes.Load(); n > 2 {
					t.Errorf("%s: three deadlines set that of the connection %d times", way, n)
				}
				timed(t, op(c))
				if took := time.Since(began); took < later-time.Millisecond {
					t.Errorf("%s: a deadline in %v ended it after %v", way, later, took)
				}
			}
		})
	}
}

func TestDeadlineMovesToAnEarlierTime(t *testing.T) {
	c, _, _ := pair(t)
	if err := c.SetDeadline(time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- read(c)() }()
	if err := c.SetReadDeadline(time.Unix(1, 0)); err != nil { // while it waits, or before
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want a time-out", err)
	}
	timed(t, read(c)) // it stands
}

func TestNoDeadline(t *testing.T) {
	c, _, far := pair(t)
	if err := c.SetReadDeadline(time.Now().Add(soon)); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(2*soon, func() { _, _ = far.Write([]byte("x")) })
	if err := read(c)(); err != nil {
		t.Errorf("a read without a deadline ended with %v", err)
	}
}

// A deadline that fires early loses nothing of what is being written.
func TestWriteGoesOnWhereItWas(t *testing.T) {
	c, own, far := pair(t)
	began := time.Now()
	if err := c.SetWriteDeadline(began.Add(soon)); err != nil {
		t.Fatal(err)
	}
	<-own.moved
	if err := c.SetWriteDeadline(began.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	sent := make([]byte, 32<<20) // more than the buffers between them hold
	for i := range sent {
		sent[i] = byte(i >> 8)
	}
	wrote := make(chan error, 1)
	go func() {
		n, err := c.Write(sent)
		if err == nil && n != len(sent) {
			err = io.ErrShortWrite
		}
		wrote <- errors.Join(err, c.CloseWrite())
	}()
	<-own.moved // the first deadline has passed, while the write waited
	got, err := io.ReadAll(far)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d of %d bytes came as they were sent, error %v", len(got), len(sent), err)
	}
	if err := <-wrote; err != nil {
		t.Errorf("the write ended with %v", err)
	}
}

func TestClosed(t *testing.T) {
	c, _, _ := pair(t)
	if err := c.SetDeadline(time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(2 * time.Hour))
	if err := read(c)(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a read of a closed connection ends with %v", err)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a write to a closed connection ends with %v", err)
	}
}

func TestMovingOnAllocatesNothing(t *testing.T) {
	c, _, _ := pair(t)
	at := time.Now().Add(time.Hour)
	if n := testing.AllocsPerRun(100, func() {
		at = at.Add(time.Millisecond)
		_ = c.SetDeadline(at)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSet(b *testing.B) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer ln.Close()
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	for name, c := range map[string]net.Conn{"own": nc, "wrapped": deadline.New(nc)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
