package redisstore

import (
	"context"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
)

// A replica that takes the place of its master lacks what was not yet replicated.
func TestAPromotedReplicaIsLearned(t *testing.T) {
	master, replica := testbed.Redis(t, "--repl-diskless-sync-delay", "0"), testbed.Redis(t)
	_, port, err := net.SplitHostPort(master.Addr())
	if err != nil {
		t.Fatal(err)
	}
	admin := redis.NewClient(&redis.Options{Addr: replica.Addr(), PoolSize: 1})
	t.Cleanup(func() { admin.Close() })
	do(t, admin, "REPLICAOF", "127.0.0.1", port)

	door := openDoor(t, master.Addr())
	s := openStore(t, door.addr)
	if n := admits(t, s, "one", 0); n != 10 {
		t.Fatalf("%d admitted at once", n)
	}
	eventually(t, "the replica", func() bool {
		got, err := admin.HGet(context.Background(), s.keys.Slot("lessons", "one").State, "h:"+at("one", 9).ID).Result()
		return err == nil && got != ""
	})
	door.to.Store(replica.Addr())
	master.Kill()
	do(t, admin, "REPLICAOF", "NO", "ONE")
	connected(t, s)
	if got := standing(t, s, "one", false); got.Held != 10 {
		t.Errorf("slot %+v", got)
	}
	if n := admits(t, s, "one", 20); n != 0 {
		t.Errorf("%d more admitted at once", n)
	}
	if n := admits(t, s, "two", 30); n != store.LearnedInflight {
		t.Errorf("%d admitted at once, want %d", n, store.LearnedInflight)
	}
}

// The store is asked every second, for a server may be replaced behind a connection
// that stays.
func TestTheRunIsSeenBehindAConnectionThatStays(t *testing.T) {
	server := testbed.Redis(t)
	s := openStore(t, server.Addr())
	if n := admits(t, s, "one", 0); n != 10 {
		t.Fatalf("%d admitted at once", n)
	}
	admin := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: 1})
	t.Cleanup(func() { admin.Close() })
	clients := func() string {
		list, err := admin.ClientList(context.Background()).Result()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(regexp.MustCompile(`(?m)^id=\d+ addr=\S+`).FindAllString(list, -1), "\n")
	}
	before, run := clients(), s.server.now.Load()
	do(t, admin, "REPLICAOF", "127.0.0.1", testbed.FreePort(t))
	do(t, admin, "REPLICAOF", "NO", "ONE")
	eventually(t, "the notice", func() bool { return s.server.now.Load() != run })
	if after := clients(); after != before {
		t.Errorf("connections before:\n%s\nafter:\n%s", before, after)
	}
	standing(t, s, "one", false)
}

// A master stays itself when replicas come and go, though its replication ids change:
// it has lost nothing.
func TestReplicasThatComeAndGoChangeNothing(t *testing.T) {
	for name, promoted := range map[string]bool{"started as a master": false, "promoted before": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits a second for Redis
			master := testbed.Redis(t, "--repl-diskless-sync-delay", "0", "--repl-backlog-ttl", "1")
			replica := testbed.Redis(t)
			atMaster := redis.NewClient(&redis.Options{Addr: master.Addr(), PoolSize: 1})
			atReplica := redis.NewClient(&redis.Options{Addr: replica.Addr(), PoolSize: 1})
			t.Cleanup(func() { atMaster.Close(); atReplica.Close() })
			if promoted {
				do(t, atMaster, "REPLICAOF", "127.0.0.1", testbed.FreePort(t))
				do(t, atMaster, "REPLICAOF", "NO", "ONE")
			}
			s := openStore(t, master.Addr())
			if n := admits(t, s, "one", 0); n != 10 {
				t.Fatalf("%d admitted at once", n)
			}
			replication := func(field string) string {
				text, err := atMaster.Info(context.Background(), "replication").Result()
				if err != nil {
					t.Fatal(err)
				}
				return infoField(text, field)
			}
			alone := replication("master_replid")
			_, port, err := net.SplitHostPort(master.Addr())
			if err != nil {
				t.Fatal(err)
			}
			do(t, atReplica, "REPLICAOF", "127.0.0.1", port)
			eventually(t, "the replica", func() bool { return replication("connected_slaves") == "1" })
			s.checkRun(t.Context())
			standing(t, s, "one", true)
			replica.Kill()
			eventually(t, "the end of the backlog", func() bool { return replication("repl_backlog_active") == "0" })
			if replication("master_replid") == alone || strings.Trim(replication("master_replid2"), "0") != "" {
				t.Errorf("the replication ids are still %q and %q", replication("master_replid"), replication("master_replid2"))
			}
			s.checkRun(t.Context())
			standing(t, s, "one", true)
			standing(t, openStore(t, master.Addr()), "one", true)
		})
	}
}

// door passes connections on to whatever server it leads to when they come.
type door struct {
	addr string
	to   atomic.Value
}

func openDoor(t *testing.T, to string) *door {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{addr: listener.Addr().String()}
	d.to.Store(to)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", d.to.Load().(string))
			if err != nil {
				client.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
				running.Go(func() {
					_, _ = io.Copy(way[0], way[1]) // ends with either side
					client.Close()
					server.Close()
				})
			}
		}
	})
	// After the store's own, which ends its connections.
	t.Cleanup(func() {
		listener.Close()
		running.Wait()
	})
	return d
}
