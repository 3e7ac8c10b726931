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

// clusterHarness opens two gates on an empty corner of one cluster.
func clusterHarness(cluster *testbed.RedisCluster) func(t *testing.T) *storetest.Harness {
	corner := 0
	return func(t *testing.T) *storetest.Harness {
		corner++
		prefix := withPrefix(fmt.Sprintf("corner-%d", corner))
		one, other := openStore(t, "", onCluster(cluster), prefix), openStore(t, "", onCluster(cluster), prefix)
		return &storetest.Harness{Store: one, Other: other, Stepwise: true,
			Advance: func(d time.Duration) { advance(d, one, other) }}
	}
}

func TestClusterConformance(t *testing.T) { storetest.Run(t, clusterHarness(testbed.Cluster(t))) }

func TestClusterTruth(t *testing.T) { storetest.RunTruth(t, clusterHarness(testbed.Cluster(t))) }

func TestClusterBackend(t *testing.T) { storetest.RunBackend(t, clusterHarness(testbed.Cluster(t))) }

func TestClusterModel(t *testing.T) { storetest.RunModel(t, clusterHarness(testbed.Cluster(t))) }

func TestClusterTruthModel(t *testing.T) {
	storetest.RunTruthModel(t, clusterHarness(testbed.Cluster(t)))
}
