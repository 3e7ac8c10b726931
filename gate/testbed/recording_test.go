package testbed

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

func TestReplaySendsLateCopies(t *testing.T) {
	server := Redis(t)
	direct, proxy := dial(t, server.Addr()), Proxy(t, server.Addr())
	client := dial(t, proxy.Addr())
	if err := client.Incr(t.Context(), "n").Err(); err != nil {
		t.Fatal(err)
	}
	late := proxy.HoldCopy("INCR")
	for _, key := range []string{"n", "m", "n"} {
		if err := client.Incr(t.Context(), key).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if late.Len() != 3 {
		t.Fatalf("recorded %d requests, want the 3 since HoldCopy", late.Len())
	}
	proxy.Refuse(true) // copies go to Redis itself
	proxy.Sever()
	for range 2 {
		if replies, err := late.Replay(t.Context()); err != nil || len(replies) != 3 {
			t.Fatalf("replay gives %q (%v), want 3 replies", replies, err)
		}
	}
	if n, m := value(t, direct, "n"), value(t, direct, "m"); n != 7 || m != 3 {
		t.Errorf("n is %d and m is %d, want 7 and 3", n, m)
	}
}

func TestReplayReportsACopyThatRedisRefused(t *testing.T) {
	server := Redis(t)
	direct, proxy := dial(t, server.Addr()), Proxy(t, server.Addr())
	client := dial(t, proxy.Addr())
	sha, err := client.ScriptLoad(t.Context(), "return 1").Result()
	if err != nil {
		t.Fatal(err)
	}
	late := proxy.HoldCopy("EVALSHA")
	if err := client.EvalSha(t.Context(), sha, nil).Err(); err != nil {
		t.Fatal(err)
	}
	if err := direct.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := late.Replay(t.Context()); err == nil || !strings.Contains(err.Error(), "NOSCRIPT") {
		t.Errorf("error is %v, want NOSCRIPT", err)
	}
}

func TestReplayEndsWithItsContext(t *testing.T) {
	server := Redis(t)
	proxy := Proxy(t, server.Addr())
	late := proxy.HoldCopy("PING")
	if err := dial(t, proxy.Addr()).Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	server.Freeze()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := late.Replay(ctx)
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("error is %v, want the end of the context", err)
	}
	server.Resume()
}
