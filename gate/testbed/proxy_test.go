package testbed

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// wire is a bare connection, for tests that care about single bytes.
type wire struct {
	t *testing.T
	net.Conn
	replies *bufio.Reader
}

func dialWire(t *testing.T, addr string) *wire {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &wire{t: t, Conn: conn, replies: bufio.NewReader(conn)}
}

func (w *wire) send(requests string) {
	w.t.Helper()
	if _, err := io.WriteString(w.Conn, requests); err != nil {
		w.t.Fatal(err)
	}
}

func (w *wire) expect(replies ...string) {
	w.t.Helper()
	for _, want := range replies {
		if got, err := readReply(w.replies); err != nil || string(got) != want {
			w.t.Fatalf("got %q (%v), want %q", got, err, want)
		}
	}
}

// expectCut wants the end of the connection and not a byte before it.
func (w *wire) expectCut() {
	w.t.Helper()
	got, err := io.ReadAll(w.replies)
	if len(got) > 0 || (err != nil && !errors.Is(err, syscall.ECONNRESET)) {
		w.t.Fatalf("got %q (%v), want a cut connection", got, err)
	}
}

// expectSilence wants an open connection on which nothing comes. The moment it
// waits only bounds what it can notice: it never fails a proxy that is right.
func (w *wire) expectSilence() {
	w.t.Helper()
	w.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	defer w.SetReadDeadline(time.Time{})
	if got, err := w.replies.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
		w.t.Fatalf("got %q (%v), want silence", got, err)
	}
}

func TestProxyPassesPipelinesUnchanged(t *testing.T) {
	server := Redis(t)
	proxy := Proxy(t, server.Addr())
	for _, protocol := range []int{2, 3} {
		client := redis.NewClient(&redis.Options{Addr: proxy.Addr(), Protocol: protocol, MaxRetries: -1})
		defer client.Close()
		key := fmt.Sprintf("key:%d", protocol)
		pipe := client.Pipeline()
		for i := range 1500 {
			pipe.HSet(t.Context(), key, fmt.Sprint(i), fmt.Sprintf("value\r\n%d", i))
		}
		all := pipe.HGetAll(t.Context(), key)
		none := pipe.Get(t.Context(), "absent")
		if _, err := pipe.Exec(t.Context()); !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
		if len(all.Val()) != 1500 || all.Val()["7"] != "value\r\n7" || none.Err() != redis.Nil {
			t.Errorf("protocol %d: %d fields, absent key gives %v", protocol, len(all.Val()), none.Err())
		}
	}
	if got := proxy.Requests("hset"); got != 3000 {
		t.Errorf("counted %d HSET, want 3000", got)
	}
}

func TestProxyPassesMessagesToSubscribers(t *testing.T) {
	proxy := Proxy(t, Redis(t).Addr())
	for _, protocol := range []int{2, 3} {
		client := redis.NewClient(&redis.Options{Addr: proxy.Addr(), Protocol: protocol, MaxRetries: -1})
		defer client.Close()
		subscription := client.Subscribe(t.Context(), "news")
		defer subscription.Close()
		if _, err := subscription.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			want := fmt.Sprint(i)
			if err := client.Publish(t.Context(), "news", want).Err(); err != nil {
				t.Fatal(err)
			}
			if message, err := subscription.ReceiveMessage(t.Context()); err != nil || message.Payload != want {
				t.Errorf("protocol %d: got %v (%v), want %q", protocol, message, err, want)
			}
		}
	}
}

func TestProxySeverEndsEveryConnection(t *testing.T) {
	proxy := Proxy(t, Redis(t).Addr())
	wires := []*wire{dialWire(t, proxy.Addr()), dialWire(t, proxy.Addr())}
	for _, w := range wires {
		w.send("PING\r\n")
		w.expect("+PONG\r\n")
	}
	proxy.Sever()
	for _, w := range wires {
		w.expectCut()
	}
	w := dialWire(t, proxy.Addr())
	w.send("PING\r\n")
	w.expect("+PONG\r\n")
}

func TestProxyRefusesOnlyNewConnections(t *testing.T) {
	proxy := Proxy(t, Redis(t).Addr())
	existing := dialWire(t, proxy.Addr())
	existing.send("PING\r\n")
	existing.expect("+PONG\r\n")

	proxy.Refuse(true)
	proxy.Refuse(true) // once more does nothing
	if conn, err := net.Dial("tcp", proxy.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialled %v (%v), want connection refused", conn, err)
	}
	existing.send("PING\r\n")
	existing.expect("+PONG\r\n")

	proxy.Refuse(false)
	proxy.Refuse(false)
	w := dialWire(t, proxy.Addr())
	w.send("PING\r\n")
	w.expect("+PONG\r\n")
}

func TestProxyClosesConnectionsThatRedisLost(t *testing.T) {
	server := Redis(t)
	proxy := Proxy(t, server.Addr())
	w := dialWire(t, proxy.Addr())
	w.send("PING\r\n")
	w.expect("+PONG\r\n")
	server.Kill()
	w.expectCut()
	dialWire(t, proxy.Addr()).expectCut() // accepted, but nobody is behind it

	server.Restart()
	w = dialWire(t, proxy.Addr())
	w.send("PING\r\n")
	w.expect("+PONG\r\n")
}

func TestProxyEndsWhileRedisIsFrozen(t *testing.T) {
	server := Redis(t)
	t.Run("life", func(t *testing.T) {
		proxy := Proxy(t, server.Addr())
		w := dialWire(t, proxy.Addr())
		w.send("PING\r\n")
		w.expect("+PONG\r\n")
		server.Freeze()
		w.send("PING\r\n")
		w.expectSilence()
	})
	server.Resume()
}
