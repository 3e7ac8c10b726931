package testbed

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func dialCluster(t *testing.T, c *RedisCluster) *redis.ClusterClient {
	t.Helper()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	t.Cleanup(func() { client.Close() })
	return client
}

// another returns a master other than the given one.
func another(t *testing.T, c *RedisCluster, master *RedisServer) *RedisServer {
	t.Helper()
	masters := c.Masters()
	if len(masters) != shards {
		t.Fatalf("%d masters, want %d", len(masters), shards)
	}
	return masters[(slices.Index(masters, master)+1)%shards]
}

func TestClusterFailsOverWhenAMasterIsKilled(t *testing.T) {
	t.Parallel()
	c := Cluster(t, MinReplicas())
	client := dialCluster(t, c)
	eventually(t, increment(t, client, "n"))
	old := c.MasterOf("n")
	if n, err := dial(t, old.Addr()).Wait(t.Context(), 1, 0).Result(); err != nil || n != 1 {
		t.Errorf("%d replicas have it (%v), want 1", n, err)
	}

	old.Kill()
	master := c.AwaitFailover(old)
	if master != c.Partner(old) || master != c.MasterOf("n") {
		t.Errorf("the new master is %s, the nodes say %s, want the partner %s",
			master.Addr(), c.MasterOf("n").Addr(), c.Partner(old).Addr())
	}
	client.ReloadState(t.Context())
	if err := client.Incr(t.Context(), "n").Err(); err == nil || !strings.HasPrefix(err.Error(), "NOREPLICAS") {
		t.Errorf("alone the new master gives %v, want NOREPLICAS", err)
	}

	old.Restart()
	c.AwaitReady() // now it follows
	eventually(t, increment(t, client, "n"))
	if n := value(t, dial(t, c.MasterOf("n").Addr()), "n"); n < 2 {
		t.Errorf("n is %d on the new master, want what was written before and after", n)
	}
}

// An isolated master stops by itself once it misses most of the others, and what it
// took until then is lost.
func TestClusterIsolatedMaster(t *testing.T) {
	t.Parallel()
	c := Cluster(t, WithProxies())
	old := c.MasterOf("n")
	client := dial(t, old.Addr())
	eventually(t, increment(t, client, "n"))
	client.Wait(t.Context(), 1, 0)

	old.Isolate()
	_ = client.Incr(t.Context(), "n").Err() // most likely acknowledged
	eventually(t, func() error {
		if err := client.Incr(t.Context(), "n").Err(); err == nil || !strings.HasPrefix(err.Error(), "CLUSTERDOWN") {
			return fmt.Errorf("the old master gives %v, want CLUSTERDOWN", err)
		}
		return nil
	})
	if master := c.AwaitFailover(old); c.MasterOf("n") != master {
		t.Errorf("the nodes say that the master is %s, want %s", c.MasterOf("n").Addr(), master.Addr())
	}

	old.Rejoin()
	c.AwaitReady() // now it follows
	if n := value(t, dialCluster(t, c), "n"); n != 1 {
		t.Errorf("n is %d, want the 1 from before", n)
	}
}

// One cluster for all that leaves its nodes alive. Failover comes on order only.
func TestClusterWhoseNodesLive(t *testing.T) {
	t.Parallel()
	c := Cluster(t, WithProxies(), DownAfter(5*time.Second))
	testHalfMovedSlot(t, c)
	testReshard(t, c)
	testFailoverOnOrder(t, c)
	testFlushOfOneNode(t, c)
}

func testFailoverOnOrder(t *testing.T, c *RedisCluster) {
	old := c.MasterOf("k")
	if master := c.Failover(old); master != c.Partner(old) || c.MasterOf("k") != master {
		t.Errorf("the new master is %s, the nodes say %s", master.Addr(), c.MasterOf("k").Addr())
	}
	c.AwaitReady()
}

func testFlushOfOneNode(t *testing.T, c *RedisCluster) {
	client := dialCluster(t, c)
	mine, other := "k", ""
	for i := 0; other == ""; i++ {
		if key := fmt.Sprint(i); c.MasterOf(key) != c.MasterOf(mine) {
			other = key
		}
	}
	eventually(t, increment(t, client, mine))
	eventually(t, increment(t, client, other))
	c.MasterOf(mine).Flush()
	if n, m := value(t, client, mine), value(t, client, other); n != 0 || m != 1 {
		t.Errorf("the flushed key is %d, the other %d; want 0 and 1", n, m)
	}
}

// While a slot is on its way keys are where they are, and clients are sent to
// addresses of proxies.
func testHalfMovedSlot(t *testing.T, c *RedisCluster) {
	client := dialCluster(t, c)
	for _, key := range []string{"{s}a", "{s}b"} {
		eventually(t, increment(t, client, key))
	}
	from := c.MasterOf("{s}")
	to := another(t, c, from)
	before := dial(t, from.Addr())
	wants := func(prefix string, err error) {
		t.Helper()
		if err == nil || !strings.HasPrefix(err.Error(), prefix) {
			t.Errorf("the answer is %v, want %s", err, prefix)
		}
	}

	move := c.StartMove(to, c.Slot("{s}"))
	if n := move.MoveKeys(1); n != 1 {
		t.Fatalf("moved %d keys, want 1", n)
	}
	present, err := before.Exists(t.Context(), "{s}a").Result()
	gone := "{s}a"
	if err == nil && present == 1 {
		gone = "{s}b"
	}
	ask := fmt.Sprintf("ASK %d %s", c.Slot("{s}"), to.Addr())
	wants(ask, before.Get(t.Context(), gone).Err())
	wants("TRYAGAIN", before.MGet(t.Context(), "{s}a", "{s}b").Err())
	for _, key := range []string{"{s}a", "{s}b"} {
		if n := value(t, client, key); n != 1 {
			t.Errorf("%s is %d, want 1", key, n)
		}
	}
	move.Finish()
	c.AwaitReady()
	moved := fmt.Sprintf("MOVED %d %s", c.Slot("{s}"), to.Addr())
	wants(moved, before.Get(t.Context(), gone).Err())
}

func testReshard(t *testing.T, c *RedisCluster) {
	client := dialCluster(t, c)
	from := c.MasterOf("{r}")
	to := another(t, c, from)
	const clients, keys = 4, 25
	var stop atomic.Bool
	var running sync.WaitGroup
	var done [clients]int
	for i := range clients {
		running.Go(func() {
			for n := 0; !stop.Load() || n == 0; n++ {
				for key := range keys {
					if err := client.Incr(t.Context(), fmt.Sprintf("{r}%d:%d", i, key)).Err(); err != nil {
						t.Errorf("a client gets %v", err)
						return
					}
				}
				done[i] = n + 1
			}
		})
	}
	slot := c.Slot("{r}")
	c.Reshard(to, slot)
	c.Reshard(from, slot)
	c.Reshard(to, slot)
	stop.Store(true)
	running.Wait()
	if owner := c.MasterOf("{r}"); owner != to {
		t.Errorf("the slot is at %s, want %s", owner.Addr(), to.Addr())
	}
	for _, node := range []*RedisServer{from, to} {
		if node.Proxy().Requests("INCR") == 0 {
			t.Errorf("the clients wrote to %s past its proxy", node.Addr())
		}
	}
	for i := range clients {
		for key := range keys {
			if n := value(t, client, fmt.Sprintf("{r}%d:%d", i, key)); n != done[i] {
				t.Errorf("client %d did %d rounds, key %d says %d", i, done[i], key, n)
			}
		}
	}
}
