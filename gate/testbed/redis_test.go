package testbed

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// dial returns a client that never retries, so that each fault is seen.
func dial(t *testing.T, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { client.Close() })
	return client
}

func runID(t *testing.T, client *redis.Client) string {
	t.Helper()
	info, err := client.Info(t.Context(), "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(info, "run_id:")
	id, _, _ := strings.Cut(rest, "\r\n")
	return id
}

func TestRedisStartsWithItsArgumentsAndEndsWithItsTest(t *testing.T) {
	var pid int
	t.Run("life", func(t *testing.T) {
		server := Redis(t, "--maxmemory", "64mb")
		pid = server.PID()
		got, err := dial(t, server.Addr()).ConfigGet(t.Context(), "maxmemory").Result()
		if err != nil || got["maxmemory"] != "67108864" {
			t.Errorf("maxmemory is %v (%v), want 67108864", got, err)
		}
	})
	if running(pid) {
		t.Errorf("redis-server %d outlived its test", pid)
	}
}

func TestRedisWithAPasswordStarts(t *testing.T) {
	server := Redis(t, "--requirepass", "secret")
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: "secret"})
	defer client.Close()
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
}

func TestRedisWithBadArgumentsSaysWhy(t *testing.T) {
	server := Redis(t)
	server.args = []string{"--no-such-option", "1"}
	server.Kill()
	if err := server.start(); err == nil || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("error is %v, want what redis-server printed", err)
	}
}

func TestRedisRestartsEmptyOnItsPort(t *testing.T) {
	server := Redis(t)
	client := dial(t, server.Addr())
	if err := client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	addr, pid, id := server.Addr(), server.PID(), runID(t, client)

	server.Kill()
	if running(pid) {
		t.Fatal("Kill returned before the server was gone")
	}
	if conn, err := net.Dial("tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("dialled %v (%v) after Kill, want connection refused", conn, err)
	}
	server.Kill() // once more does nothing

	server.Restart()
	client = dial(t, server.Addr())
	if n, err := client.DBSize(t.Context()).Result(); err != nil || n != 0 {
		t.Errorf("restarted with %d keys (%v), want none", n, err)
	}
	if server.Addr() != addr || runID(t, client) == id {
		t.Errorf("restarted at %s with run id %s, want %s and another run id", server.Addr(), id, addr)
	}
}

func TestRedisFrozenAnswersNothingUntilResumed(t *testing.T) {
	server := Redis(t)
	client := dial(t, server.Addr())
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		server.Freeze()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		silent := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true})
		if err := silent.Ping(ctx).Err(); err == nil {
			t.Error("a frozen server answered")
		}
		silent.Close()
		cancel()
		server.Resume()
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Errorf("a resumed server gives %v", err)
		}
	}
}

func TestRedisRestartsWithData(t *testing.T) {
	server := Redis(t, "--appendonly", "yes")
	client := dial(t, server.Addr())
	for range 100 {
		client.Incr(t.Context(), "n")
	}
	server.RestartWithData()
	client = dial(t, server.Addr())
	if n := value(t, client, "n"); n != 100 {
		t.Errorf("n is %d, want the 100 that were acknowledged", n)
	}
	server.Restart()
	if n := value(t, dial(t, server.Addr()), "n"); n != 0 {
		t.Errorf("n is %d after Restart, want no data", n)
	}
}
