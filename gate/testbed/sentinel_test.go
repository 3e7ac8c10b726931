package testbed

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

// dialSentinel returns a client that asks the sentinels for the master.
func dialSentinel(t *testing.T, s *SentinelDeployment) *redis.Client {
	t.Helper()
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		SentinelAddrs: s.Addrs(), MasterName: s.MasterName(), MaxRetries: -1,
	})
	t.Cleanup(func() { client.Close() })
	return client
}

func TestSentinelFailsOverWhenTheMasterIsKilled(t *testing.T) {
	s := Sentinel(t)
	client := dialSentinel(t, s)
	if err := client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	old := s.Master()
	old.Kill()
	if master := s.AwaitFailover(old); master == old || master != s.Master() {
		t.Errorf("the new master is %s, the sentinels say %s", master.Addr(), s.Master().Addr())
	}
}
