package testbed

import (
	"sync"
	"sync/atomic"
	"testing"

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

func value(t *testing.T, client redis.Cmdable, key string) int {
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

func TestCutBeforeLosesTheRequestItself(t *testing.T) {
	server := Redis(t)
	direct, proxy := dial(t, server.Addr()), Proxy(t, server.Addr())
	cut := proxy.CutBefore("INCR", 2)
	w := dialWire(t, proxy.Addr())
	w.send("SET before 1\r\nINCR first\r\nINCR doomed\r\nINCR behind\r\n")
	w.expect("+OK\r\n", ":1\r\n")
	w.expectCut()
	if !happened(cut) {
		t.Error("the connection ended before the cut was reported")
	}
	for key, want := range map[string]int{"before": 1, "first": 1, "doomed": 0, "behind": 0} {
		if got := value(t, direct, key); got != want {
			t.Errorf("%s is %d, want %d", key, got, want)
		}
	}

	// With nothing unanswered before it, and as what other orders do not count.
	alone, after := proxy.CutBefore("INCR", 1), proxy.CutAfter("INCR", 1)
	w = dialWire(t, proxy.Addr())
	w.send("INCR doomed\r\n")
	w.expectCut()
	if !happened(alone) || happened(after) {
		t.Errorf("cut before: %v, cut after: %v; want only the first", happened(alone), happened(after))
	}
	w = dialWire(t, proxy.Addr())
	w.send("INCR n\r\n")
	w.expectCut()
	if n := value(t, direct, "n"); n != 1 || value(t, direct, "doomed") != 0 || !happened(after) {
		t.Errorf("n is %d, want 1 by the request whose reply was cut", n)
	}
}

// As many requests are lost as were ordered, and none that succeeded.
func TestCutsBeforeUnderConcurrency(t *testing.T) {
	server := Redis(t)
	proxy := Proxy(t, server.Addr())
	client := dial(t, proxy.Addr())
	const clients, calls = 16, 50
	var cuts []<-chan struct{}
	for n := 10; n <= clients*calls; n += 20 {
		cuts = append(cuts, proxy.CutBefore("INCR", n))
	}
	var succeeded atomic.Int64
	var running sync.WaitGroup
	for range clients {
		running.Go(func() {
			for range calls {
				if client.Incr(t.Context(), "n").Err() == nil {
					succeeded.Add(1)
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
	if want := int64(clients*calls - len(cuts)); succeeded.Load() != want {
		t.Errorf("%d calls succeeded, want %d", succeeded.Load(), want)
	}
	if n := value(t, dial(t, server.Addr()), "n"); int64(n) != succeeded.Load() {
		t.Errorf("Redis counted %d, want the %d that succeeded", n, succeeded.Load())
	}
}

func TestCorruptChangesTheChosenReplyAndNoOther(t *testing.T) {
	proxy := Proxy(t, Redis(t).Addr())
	second := proxy.Corrupt("INCR", 2, Flip(1))
	last := proxy.Corrupt("PING", 1, Flip(-3))
	lie := proxy.Corrupt("GET", 1, func([]byte) []byte { return []byte("$1\r\n9\r\n") })
	w := dialWire(t, proxy.Addr())
	w.send("INCR n\r\nINCR n\r\nINCR n\r\nPING\r\nGET n\r\nGET n\r\n")
	w.expect(":1\r\n", ":\xcd\r\n", ":3\r\n", "+PON\xb8\r\n", "$1\r\n9\r\n", "$1\r\n3\r\n")
	if !happened(second) || !happened(last) || !happened(lie) {
		t.Error("a reply was changed that was not reported")
	}
}
