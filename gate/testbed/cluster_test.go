package testbed

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
)

func dialCluster(t *testing.T, c *RedisCluster) *redis.ClusterClient {
	t.Helper()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	t.Cleanup(func() { client.Close() })
	return client
}

func TestClusterFailsOverWhenAMasterIsKilled(t *testing.T) {
	c := Cluster(t)
	client := dialCluster(t, c)
	if err := client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	old := c.MasterOf("k")
	old.Kill()
	if master := c.AwaitFailover(old); master == old || master != c.MasterOf("k") {
		t.Errorf("the new master is %s, the nodes say %s", master.Addr(), c.MasterOf("k").Addr())
	}
}

func TestClusterReshardsWhileClientsGoOn(t *testing.T) {
	c := Cluster(t, WithProxies())
	client := dialCluster(t, c)
	const keys = 200
	for i := range keys {
		if err := client.Set(t.Context(), fmt.Sprintf("{slot}%d", i), i, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	from := c.MasterOf("{slot}")
	to := c.Masters()[0]
	if to == from {
		to = c.Masters()[1]
	}
	c.Reshard(to, c.Slot("{slot}"))
	if owner := c.MasterOf("{slot}"); owner != to {
		t.Errorf("the slot is at %s, want %s", owner.Addr(), to.Addr())
	}
	for i := range keys {
		if got, err := client.Get(t.Context(), fmt.Sprintf("{slot}%d", i)).Int(); err != nil || got != i {
			t.Fatalf("key %d is %d (%v)", i, got, err)
		}
	}
}
