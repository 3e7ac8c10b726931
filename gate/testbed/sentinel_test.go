package testbed

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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

// all returns data servers and sentinels.
func (s *SentinelDeployment) all() []*RedisServer { return slices.Concat(s.servers, s.sentinels) }

// eventually wants probe to succeed in the end.
func eventually(t *testing.T, probe func() error) {
	t.Helper()
	if err := await(probe); err != nil {
		t.Fatal(err)
	}
}

func increment(t *testing.T, client redis.Cmdable, key string) func() error {
	return func() error { return client.Incr(t.Context(), key).Err() }
}

func TestSentinelFailsOverWhenTheMasterIsKilled(t *testing.T) {
	t.Parallel()
	s := Sentinel(t, WithProxies(), DownAfter(800*time.Millisecond), FailoverTimeout(3*time.Second))
	client := dialSentinel(t, s)
	old := s.Master()
	if old != s.Servers()[0] {
		t.Errorf("the master is %s, want the first server", old.Addr())
	}
	eventually(t, increment(t, client, "n"))
	if n, err := client.Wait(t.Context(), 2, 0).Result(); err != nil || n != 2 {
		t.Errorf("%d replicas have it (%v), want 2", n, err)
	}

	old.Kill()
	master := s.AwaitFailover(old)
	if master == old || master != s.Master() {
		t.Errorf("the new master is %s, the sentinels say %s", master.Addr(), s.Master().Addr())
	}
	eventually(t, increment(t, client, "n"))
	if n := value(t, dial(t, master.DirectAddr()), "n"); n < 2 {
		t.Errorf("n is %d on the new master, want what was written before and after", n)
	}
	for _, server := range []*RedisServer{old, master} {
		if server.Proxy().Requests("INCR") == 0 {
			t.Errorf("the client wrote to %s past its proxy", server.Addr())
		}
	}

	old.RestartWithData() // as the master that it was, until it is told
	s.AwaitReady()        // now it follows
}

func TestSentinelFailoverOnOrder(t *testing.T) {
	t.Parallel()
	s := Sentinel(t, DownAfter(startTimeout)) // on order only
	old := s.Master()
	master := s.Failover()
	s.AwaitReady()
	if master == old || s.Master() != master {
		t.Errorf("the master is %s, want %s, no more %s", s.Master().Addr(), master.Addr(), old.Addr())
	}
	if err := old.follows(master); err != nil {
		t.Error(err)
	}
	// Roles outlive restarts, of sentinels too.
	for _, server := range s.all() {
		server.Kill()
	}
	for _, server := range s.all() {
		server.Restart()
	}
	s.AwaitReady()
	if s.Master() != master {
		t.Errorf("after a restart of all the master is %s, want %s", s.Master().Addr(), master.Addr())
	}
}

// An isolated master acknowledges writes that are lost when it rejoins, unless it
// has to have a replica.
func TestSentinelIsolatedMaster(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]Option{"alone": nil, "min-replicas": {MinReplicas()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Sentinel(t, append(options, WithProxies())...)
			old := s.Master()
			client := dial(t, old.Addr())
			eventually(t, increment(t, client, "before"))
			client.Wait(t.Context(), 2, 0)

			old.Isolate()
			if master := s.AwaitFailover(old); master == old {
				t.Error("the isolated master is still the master")
			}
			err := client.Set(t.Context(), "after", 1, 0).Err()
			if options == nil && err != nil {
				t.Errorf("the old master gives %v, want an acknowledgement", err)
			}
			if options != nil {
				eventually(t, func() error {
					if err := client.Set(t.Context(), "after", 1, 0).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOREPLICAS") {
						return fmt.Errorf("the old master gives %v, want NOREPLICAS", err)
					}
					return nil
				})
			}

			old.Rejoin()
			s.AwaitReady()
			for _, server := range s.Servers() {
				client := dial(t, server.DirectAddr())
				if before, after := value(t, client, "before"), value(t, client, "after"); before != 1 || after != 0 {
					t.Errorf("%s has before %d and after %d, want 1 and 0", server.Addr(), before, after)
				}
			}
		})
	}
}

func TestSentinelFrozenMasterIsReplaced(t *testing.T) {
	t.Parallel()
	s := Sentinel(t)
	old := s.Master()
	old.Freeze()
	if master := s.AwaitFailover(old); master == old {
		t.Error("the frozen master is still the master")
	}
	old.Resume()
	s.AwaitReady() // it follows the new one
}
