package redisstore

import (
	"fmt"
	"testing"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
)

// onShard is a booking of a slot whose hash slot a node serves.
func onShard(s *Store, cluster *testbed.RedisCluster, node *testbed.RedisServer) *store.Decide {
	for n := 0; ; n++ {
		d := at(fmt.Sprint("slot-", n), int64(n))
		if cluster.MasterOf(s.keys.Slot(d.Pool, d.Slot).State) == node {
			return d
		}
	}
}

// However the master of a shard goes, bookings go on a moment after there is another,
// and never stop on the others.
func TestAClusterFailover(t *testing.T) {
	for name, end := range map[string]func(*testbed.RedisServer){
		"by kill": (*testbed.RedisServer).Kill, "by pause": (*testbed.RedisServer).Freeze,
	} {
		t.Run(name, func(t *testing.T) {
			cluster := testbed.Cluster(t, testbed.ServerArgs("--cluster-require-full-coverage", "no"))
			s, calm := openStore(t, "", hasty, byCluster(cluster)), openStore(t, "", byCluster(cluster))
			masters := cluster.Masters()
			here, there := onShard(s, cluster, masters[0]), onShard(s, cluster, masters[1])
			for _, d := range []*store.Decide{here, there} {
				if n := admits(t, calm, d.Slot, 0); n != 10 {
					t.Fatalf("%d admitted at once", n)
				}
			}
			replicated(t, masters[0], 1)
			outage(t, s, here, func() { end(masters[0]) }, func() {
				for n := range int64(50) {
					if _, err := admitted(calm, at(there.Slot, 10+n)); err != nil {
						t.Errorf("the other shard: %v", err)
					}
				}
				cluster.AwaitFailover(masters[0])
			})
			standing(t, calm, here.Slot, false)
			standing(t, calm, there.Slot, true)
		})
	}
}
