package testbed

import (
	"errors"
	"testing"
	"time"
)

func TestDelayedRequestArrivesAfterItsClientLeft(t *testing.T) {
	server := Redis(t)
	direct, proxy := dial(t, server.Addr()), Proxy(t, server.Addr())
	const delay = 50 * time.Millisecond
	proxy.DelayRequests(delay)
	sent := time.Now()
	w := dialWire(t, proxy.Addr())
	w.send("LPUSH done 1\r\nLPUSH done 2\r\n")
	w.Close()
	for _, want := range []string{"1", "2"} {
		got, err := direct.BRPop(t.Context(), 0, "done").Result()
		if err != nil || got[1] != want {
			t.Fatalf("got %v (%v), want %s", got, err, want)
		}
	}
	if took := time.Since(sent); took < delay {
		t.Errorf("arrived after %s, want at least %s", took, delay)
	}
}

func TestDelayedReplyComesLateThoughTheCommandRan(t *testing.T) {
	server := Redis(t)
	direct, proxy := dial(t, server.Addr()), Proxy(t, server.Addr())
	const delay = 50 * time.Millisecond
	proxy.DelayReplies(delay)
	w := dialWire(t, proxy.Addr())
	sent := time.Now()
	w.send("INCR n\r\n")
	w.expect(":1\r\n")
	if took := time.Since(sent); took < delay {
		t.Errorf("answered after %s, want at least %s", took, delay)
	}

	proxy.DelayReplies(time.Hour)
	w.send("LPUSH done 1\r\n")
	if err := direct.BRPop(t.Context(), 0, "done").Err(); err != nil {
		t.Fatal(err)
	}
	w.expectSilence()
	proxy.Sever()
	w.expectCut()
}

func TestDroppedRepliesLeaveTheConnectionOpenAndSilent(t *testing.T) {
	server := Redis(t)
	direct, proxy := dial(t, server.Addr()), Proxy(t, server.Addr())
	w := dialWire(t, proxy.Addr())
	w.send("PING\r\n")
	w.expect("+PONG\r\n")

	proxy.DropReplies(true)
	w.send("LPUSH done 1\r\n")
	if err := direct.BRPop(t.Context(), 0, "done").Err(); err != nil {
		t.Fatal(err)
	}
	proxy.DropReplies(false)
	w.send("LPUSH done 2\r\n")
	if err := direct.BRPop(t.Context(), 0, "done").Err(); err != nil {
		t.Fatal(err)
	}
	w.expectSilence() // its reply would be taken for the lost one

	fresh := dialWire(t, proxy.Addr())
	fresh.send("PING\r\n")
	fresh.expect("+PONG\r\n")
}

func TestAFrozenProxyDeliversOnThaw(t *testing.T) {
	server := Redis(t)
	direct, proxy := dial(t, server.Addr()), Proxy(t, server.Addr())
	w := dialWire(t, proxy.Addr())
	w.send("PING\r\n")
	w.expect("+PONG\r\n")

	proxy.Freeze()
	proxy.Freeze() // once more does nothing
	w.send("INCR n\r\nINCR n\r\n")
	w.expectSilence()
	fresh := dialWire(t, proxy.Addr())
	fresh.send("INCR m\r\n")
	fresh.expectSilence()
	if n, m := value(t, direct, "n"), value(t, direct, "m"); n != 0 || m != 0 {
		t.Fatalf("n is %d and m is %d: a request passed while frozen", n, m)
	}
	server.Kill() // its end does not pass either
	server.Restart()
	fresh.expectSilence()

	proxy.Thaw()
	proxy.Thaw()
	for _, lost := range []*wire{w, fresh} {
		lost.expectCut() // they were connections of the server that is gone
	}
	w = dialWire(t, proxy.Addr())
	proxy.Freeze()
	w.send("INCR n\r\n")
	w.expectSilence()
	proxy.Thaw()
	w.expect(":1\r\n")
}

func TestAFrozenProxyHoldsRepliesBack(t *testing.T) {
	server := Redis(t)
	direct, proxy := dial(t, server.Addr()), Proxy(t, server.Addr())
	w := dialWire(t, proxy.Addr())
	w.send("BLPOP list 0\r\n")
	awaitBlocked(t, server)
	proxy.Freeze()
	if err := direct.RPush(t.Context(), "list", "a").Err(); err != nil {
		t.Fatal(err)
	}
	w.expectSilence()
	proxy.Thaw()
	w.expect("*2\r\n$4\r\nlist\r\n$1\r\na\r\n")
}

func TestAFrozenProxyEndsWithItsTest(t *testing.T) {
	server := Redis(t)
	t.Run("life", func(t *testing.T) {
		proxy := Proxy(t, server.Addr())
		proxy.Freeze()
		w := dialWire(t, proxy.Addr())
		w.send("PING\r\n")
		w.expectSilence()
	})
}

func TestDroppedRequestsNeverArrive(t *testing.T) {
	server := Redis(t)
	direct, proxy := dial(t, server.Addr()), Proxy(t, server.Addr())
	w := dialWire(t, proxy.Addr())
	w.send("BLPOP list 0\r\n")
	awaitBlocked(t, server)
	proxy.DropRequests(true)
	w.send("INCR n\r\n")
	fresh := dialWire(t, proxy.Addr())
	fresh.send("INCR n\r\n")
	fresh.expectSilence()
	// The other direction is whole.
	if err := direct.RPush(t.Context(), "list", "a").Err(); err != nil {
		t.Fatal(err)
	}
	w.expect("*2\r\n$4\r\nlist\r\n$1\r\na\r\n")

	proxy.DropRequests(false)
	w.send("INCR n\r\n")
	fresh.send("INCR n\r\n")
	w.expectSilence() // what follows a lost request does not arrive on its connection
	fresh.expectSilence()
	if n := value(t, direct, "n"); n != 0 || proxy.Requests("INCR") != 4 {
		t.Errorf("n is %d, %d requests came; want 0 of 4 to arrive", n, proxy.Requests("INCR"))
	}
	last := dialWire(t, proxy.Addr())
	last.send("INCR n\r\n")
	last.expect(":1\r\n")
}

// awaitBlocked returns once a client waits in a blocking command: its request has
// arrived and its reply has not been written.
func awaitBlocked(t *testing.T, server *RedisServer) {
	t.Helper()
	err := await(func() error {
		info, err := server.info("clients")
		if err == nil && info["blocked_clients"] == "0" {
			err = errors.New("no client is blocked")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
