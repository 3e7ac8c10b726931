package redisstore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
)

// What Redis itself refuses is told apart, and known to have done nothing. Only a store
// that is full still answers for what it has: that is no reason to do without it.
func TestRefusalsOfRedis(t *testing.T) {
	for _, tt := range []struct {
		code    string
		prepare func(t *testing.T, server *testbed.RedisServer, admin *redis.Client) (change func(*Options))
		kind    store.ErrorKind
	}{
		{"OOM", func(t *testing.T, server *testbed.RedisServer, _ *redis.Client) func(*Options) {
			server.Set("maxmemory", "1")
			return nil
		}, store.KindFull},
		{"READONLY", func(t *testing.T, server *testbed.RedisServer, admin *redis.Client) func(*Options) {
			do(t, admin, "REPLICAOF", "127.0.0.1", testbed.FreePort(t))
			server.Set("replica-serve-stale-data", "yes")
			return nil
		}, store.KindServer},
		{"NOREPLICAS", func(t *testing.T, server *testbed.RedisServer, _ *redis.Client) func(*Options) {
			server.Set("min-replicas-to-write", "1")
			return nil
		}, store.KindServer},
		{"MISCONF", failingSave, store.KindServer},
		{"BUSY", busy, store.KindServer},
		{"LOADING", loading, store.KindServer},
		{"NOPERM", func(t *testing.T, server *testbed.RedisServer, _ *redis.Client) func(*Options) {
			server.SetUser("gate on >pw ~other:* &* +@all")
			return func(o *Options) { o.Username, o.Password = "gate", "pw" }
		}, store.KindServer},
		{"NOAUTH", func(t *testing.T, server *testbed.RedisServer, admin *redis.Client) func(*Options) {
			server.Set("requirepass", "pw")
			return func(*Options) {}
		}, store.KindServer},
		{"WRONGPASS", func(*testing.T, *testbed.RedisServer, *redis.Client) func(*Options) {
			return func(o *Options) { o.Username, o.Password = "gate", "wrong" }
		}, store.KindServer},
	} {
		t.Run(tt.code, func(t *testing.T) {
			server := testbed.Redis(t, "--enable-debug-command", "yes")
			admin := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: 1, MaxRetries: -1})
			t.Cleanup(func() { admin.Close() })
			if err := admin.Ping(context.Background()).Err(); err != nil {
				t.Fatal(err)
			}
			secret := func(o *Options) { o.Secret = "configured" }
			before := openStore(t, server.Addr(), secret)
			connected(t, before)
			change := tt.prepare(t, server, admin)
			s := before
			if change != nil {
				s = openStore(t, server.Addr(), change, secret)
			}
			failure := fails(t, s)
			expectFailure(t, failure, tt.kind, false)
			if code(failure) != tt.code {
				t.Errorf("failure %v, want %s", failure, tt.code)
			}
		})
	}
}

// A replica that lost its master refuses to read, too.
func TestAReplicaThatLostItsMaster(t *testing.T) {
	server := testbed.Redis(t)
	s := openStore(t, server.Addr())
	if _, err := admitted(s, booking(1)); err != nil {
		t.Fatal(err)
	}
	server.Set("replica-serve-stale-data", "no")
	do(t, s.client, "REPLICAOF", "127.0.0.1", testbed.FreePort(t))
	_, err := s.Ledger(t.Context(), "lessons", booking(1).Slot, 10)
	failure, ok := err.(*store.Error)
	if !ok {
		t.Fatal(err)
	}
	expectFailure(t, failure, store.KindServer, false)
	if code(failure) != "MASTERDOWN" {
		t.Errorf("failure %v", failure)
	}
}

// failingSave makes Redis unable to write its file, for which it refuses writes.
func failingSave(t *testing.T, server *testbed.RedisServer, admin *redis.Client) func(*Options) {
	server.Set("save", "3600 1", "stop-writes-on-bgsave-error", "yes")
	dir, err := admin.ConfigGet(context.Background(), "dir").Result()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir["dir"], "dump.rdb"), 0o700); err != nil {
		t.Fatal(err)
	}
	do(t, admin, "BGSAVE")
	eventually(t, "a save that failed", func() bool {
		info, err := admin.Info(context.Background(), "persistence").Result()
		return err == nil && infoField(info, "rdb_last_bgsave_status") == "err"
	})
	return nil
}

// busy keeps Redis at a script until the test ends.
func busy(t *testing.T, server *testbed.RedisServer, admin *redis.Client) func(*Options) {
	server.Set("busy-reply-threshold", "1")
	ended := make(chan struct{})
	worker := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: 1, MaxRetries: -1, ReadTimeout: -1})
	go func() {
		defer close(ended)
		_ = worker.Eval(context.Background(), "while true do end", nil).Err() // which ends in being killed
	}()
	t.Cleanup(func() {
		do(t, admin, "SCRIPT", "KILL")
		<-ended
		worker.Close()
	})
	awaitRefusal(t, admin, "BUSY")
	return nil
}

// loading keeps Redis at reading its data.
func loading(t *testing.T, server *testbed.RedisServer, admin *redis.Client) func(*Options) {
	const keys, microseconds = 5000, 1000
	do(t, admin, "DEBUG", "POPULATE", keys)
	server.Set("key-load-delay", fmt.Sprint(microseconds), "loading-process-events-interval-bytes", "1024")
	ended := make(chan struct{})
	worker := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: 1, MaxRetries: -1, ReadTimeout: -1})
	go func() {
		defer close(ended)
		_ = worker.Do(context.Background(), "DEBUG", "RELOAD").Err()
	}()
	t.Cleanup(func() {
		server.Kill()
		<-ended
		worker.Close()
	})
	awaitRefusal(t, admin, "LOADING")
	return nil
}

func awaitRefusal(t *testing.T, admin *redis.Client, word string) {
	t.Helper()
	eventually(t, word, func() bool { return code(admin.Get(context.Background(), "any").Err()) == word })
}

// A server that became a replica is the wrong one: the call goes to where a new
// connection leads, in the same time.
func TestADemotedServerIsLeftInTheSameCall(t *testing.T) {
	old, promoted := testbed.Redis(t), testbed.Redis(t)
	admin := redis.NewClient(&redis.Options{Addr: old.Addr(), PoolSize: 1})
	t.Cleanup(func() { admin.Close() })
	door := openDoor(t, old.Addr())
	s := openStore(t, door.addr)
	if _, err := admitted(s, booking(1)); err != nil {
		t.Fatal(err)
	}
	door.to.Store(promoted.Addr())
	do(t, admin, "REPLICAOF", "127.0.0.1", testbed.FreePort(t))
	if _, err := admitted(s, booking(2)); err != nil {
		t.Error(err)
	}
}

// What a cluster refuses is followed where that leads anywhere.
func TestRefusalsOfACluster(t *testing.T) {
	cluster := testbed.Cluster(t)
	s := openStore(t, "", hasty, byCluster(cluster))
	s.tellAll(t)
	for word, keys := range map[string][]string{
		"CROSSSLOT": {"{" + tags()[lowest[0]] + "}", "{" + tags()[lowest[1]] + "}"},
		"TRYAGAIN":  {"{" + tags()[7] + "}a", "{" + tags()[7] + "}b"},
	} {
		if word == "TRYAGAIN" {
			if _, err := s.run(t.Context(), &call{op: "tell", script: tell, keys: keys[:1]}); err != nil {
				t.Fatal(err)
			}
			move := cluster.StartMove(cluster.Masters()[1], 7)
			defer move.Finish()
		}
		start := time.Now()
		_, err := s.run(t.Context(), &call{op: "tell", script: tell, keys: keys})
		failure, ok := err.(*store.Error)
		if !ok {
			t.Fatalf("%s: %v", word, err)
		}
		expectFailure(t, failure, store.KindServer, false)
		if took := time.Since(start); took > s.timeout+grace {
			t.Errorf("%s took %v", word, took)
		}
		if code(failure) != word {
			t.Errorf("failure %v, want %s", failure, word)
		}
	}
}

func TestANodeWithoutHashSlots(t *testing.T) {
	server := testbed.Redis(t, "--cluster-enabled", "yes")
	s := openStore(t, server.Addr(), quick, func(o *Options) { o.Mode, o.Secret = Cluster, "configured" })
	_, err := s.run(t.Context(), &call{op: "tell", script: tell, keys: []string{"any"}})
	failure, ok := err.(*store.Error)
	if !ok {
		t.Fatal(err)
	}
	expectFailure(t, failure, store.KindServer, false)
	if code(failure) != "CLUSTERDOWN" {
		t.Errorf("failure %v", failure)
	}
}
