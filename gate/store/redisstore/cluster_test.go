package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/store/storetest"
	"github.com/slotgate/slotgate/gate/testbed"
)

// onCluster opens a store on a cluster.
func onCluster(cluster *testbed.RedisCluster) func(*Options) {
	return func(o *Options) { o.Mode, o.Addresses = Cluster, cluster.Addrs() }
}

// TestCluster holds the store to the same contract where each call takes several steps on
// several shards.
func TestCluster(t *testing.T) {
	cluster := testbed.Cluster(t)
	corner := 0
	open := func(t *testing.T) *storetest.Harness {
		corner++
		prefix := withPrefix(fmt.Sprintf("corner-%d", corner))
		one, other := openStore(t, "", onCluster(cluster), prefix), openStore(t, "", onCluster(cluster), prefix)
		return &storetest.Harness{Store: one, Other: other, Stepwise: true, Histories: 40,
			Advance: func(d time.Duration) { advance(d, one, other) }}
	}
	for name, run := range map[string]func(*testing.T, func(*testing.T) *storetest.Harness){
		"conformance": storetest.Run, "truth": storetest.RunTruth, "backend": storetest.RunBackend,
		"model": storetest.RunModel, "truth model": storetest.RunTruthModel,
	} {
		t.Run(name, func(t *testing.T) { run(t, open) })
	}
}
