package testbed

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// happened tells whether a cut has been made.
func happened(cut <-chan struct{}) bool {
	select {
	case <-cut:
		return true
	default:
		return false
	}
}

func value(t *testing.T, client *redis.Client, key string) int {
	t.Helper()
	n, err := client.Get(t.Context(), key).Int()
	if err != nil && err != redis.Nil {
		t.Fatal(err)
	}
	return n
}

func TestCutAfterLosesTheReplyOfAScriptThatRan(t *testing.T) {
	server := Redis(t)
	direct, proxy := dial(t, server.Addr()), Proxy(t, server.Addr())
	client := dial(t, proxy.Addr())
	load := func(script string) string {
		sha, err := direct.ScriptLoad(t.Context(), script).Result()
		if err != nil {
			t.Fatal(err)
		}
		return sha
	}
	one, other := load("return redis.call('INCR', KEYS[1])"), load("return redis.call('INCRBY', KEYS[1], 100)")

	second := proxy.CutAfter("evalsha", 2)
	ofOther := proxy.CutAfter("EVALSHA "+other, 1)
	fourth := proxy.CutAfter("EVALSHA", 4) // meets the one above
	call := func(sha string) error { return client.EvalSha(t.Context(), sha, []string{"n"}).Err() }
	if err := call(one); err != nil || happened(second) {
		t.Fatalf("the first call gives %v (cut: %v), want success", err, happened(second))
	}
	if err := call(one); err == nil || !happened(second) {
		t.Fatalf("the second call gives %v (cut: %v), want a cut", err, happened(second))
	}
	if n := value(t, direct, "n"); n != 2 {
		t.Fatalf("the counter is %d, want 2: the script must have run", n)
	}
	if err := call(one); err != nil || happened(ofOther) {
		t.Fatalf("the third call gives %v (cut: %v), want success", err, happened(ofOther))
	}
	if err := call(other); err == nil || !happened(ofOther) || !happened(fourth) {
		t.Fatalf("the other script gives %v (cut: %v), want a cut", err, happened(ofOther))
	}
	if err := call(other); err != nil {
		t.Fatalf("after both cuts a call gives %v, want success", err)
	}
	if n := value(t, direct, "n"); n != 203 {
		t.Errorf("the counter is %d, want 203", n)
	}
}

func TestCutAfterInsideAPipeline(t *testing.T) {
	server := Redis(t)
	direct, proxy := dial(t, server.Addr()), Proxy(t, server.Addr())
	cut := proxy.CutAfter("INCR", 2)
	w := dialWire(t, proxy.Addr())
	w.send("SET before 1\r\nINCR first\r\nINCR doomed\r\nINCR behind\r\n")
	w.expect("+OK\r\n", ":1\r\n")
	w.expectCut()
	if !happened(cut) {
		t.Error("the connection ended before the cut was reported")
	}
	for key, want := range map[string]int{"before": 1, "first": 1, "doomed": 1, "behind": 0} {
		if got := value(t, direct, key); got != want {
			t.Errorf("%s is %d, want %d", key, got, want)
		}
	}
}

func TestCutAfterWaitsForRedis(t *testing.T) {
	server := Redis(t)
	proxy := Proxy(t, server.Addr())
	cut := proxy.CutAfter("INCR", 1)
	server.Freeze()
	w := dialWire(t, proxy.Addr())
	w.send("INCR n\r\n")
	w.expectSilence()
	if happened(cut) {
		t.Fatal("cut before Redis had answered")
	}
	server.Resume()
	w.expectCut()
	if n := value(t, dial(t, server.Addr()), "n"); n != 1 {
		t.Errorf("the counter is %d, want 1", n)
	}
}

// Every request reaches Redis, and as many replies are lost as were ordered.
func TestCutsUnderConcurrency(t *testing.T) {
	server := Redis(t)
	proxy := Proxy(t, server.Addr())
	client := dial(t, proxy.Addr())
	const clients, calls = 16, 50
	var cuts []<-chan struct{}
	for n := 10; n <= clients*calls; n += 20 {
		cuts = append(cuts, proxy.CutAfter("INCR", n))
	}
	var failed atomic.Int64
	var running sync.WaitGroup
	for range clients {
		running.Go(func() {
			for range calls {
				if client.Incr(t.Context(), "n").Err() != nil {
					failed.Add(1)
				}
			}
		})
	}
	running.Wait()
	for i, cut := range cuts {
		if !happened(cut) {
			t.Errorf("cut %d was not made", i)
		}
	}
	if got := failed.Load(); got != int64(len(cuts)) {
		t.Errorf("%d calls failed, want %d", got, len(cuts))
	}
	if n := value(t, dial(t, server.Addr()), "n"); n != clients*calls || proxy.Requests("INCR") != n {
		t.Errorf("Redis counted %d, the proxy %d, want %d", n, proxy.Requests("INCR"), clients*calls)
	}
}

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
