package redisstore

import (
	"strings"
	"testing"

	"github.com/slotgate/slotgate/gate/testbed"
)

// A shard may have lost data as well when hash slots had been moved just before, so that its
// run was to stand where nobody has seen it yet.
func TestARunEndsThoughHashSlotsWereMovedBefore(t *testing.T) {
	restart := func(_ *Store, c *testbed.RedisCluster, master *testbed.RedisServer) {
		master.Restart()
		c.AwaitReady()
	}
	for name, lose := range map[string]func(s *Store, c *testbed.RedisCluster, master *testbed.RedisServer){
		"killed": func(s *Store, c *testbed.RedisCluster, master *testbed.RedisServer) {
			master.Kill()
			s.checkRun(t.Context())
			c.AwaitFailover(master)
		},
		"restarted with another's": restart,
		"restarted":                restart,
	} {
		t.Run(name, func(t *testing.T) {
			cluster := testbed.Cluster(t)
			s := openStore(t, "", byCluster(cluster))
			atRest(s)
			before := s.tellAll(t)
			notices := s.WatchRun()
			defer notices.Close()
			masters := cluster.Masters()
			if strings.HasSuffix(name, "another's") {
				cluster.Reshard(masters[1], 0)
			} else {
				cluster.Reshard(masters[0], 5461)
			}
			lose(s, cluster, masters[1])
			eventually(t, "another run", func() bool {
				s.checkRun(t.Context())
				return s.tellOf(t, lowest[1]).run != before[1].run
			})
			for i, slot := range lowest {
				if got := s.tellOf(t, slot); !got.changed || (got.run == before[i].run) != (i != 1) {
					t.Errorf("shard %d is told %+v, before %+v", i, got, before[i])
				}
			}
			select {
			case <-notices.C():
			default:
				t.Error("no change was announced")
			}
		})
	}
}
