package chaos

import (
	"slices"
	"testing"

	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
	"github.com/slotgate/slotgate/gate/testbed"
)

// site is where the gates' store runs, and where its faults fall.
type site struct {
	topology stage.Topology
	servers  []*testbed.RedisServer // that hold data
	proxies  []*testbed.RedisProxy  // before each of them
	// masters lists the servers that decide at this moment.
	masters func() []*testbed.RedisServer
	// failover makes a replica of a master the master.
	failover func(master *testbed.RedisServer)
	// settled returns once the servers agree again on who they are.
	settled func()
}

func startSite(t *testing.T, s setup) *site {
	t.Helper()
	options := []testbed.Option{testbed.WithProxies()}
	if s.minReplicas {
		options = append(options, testbed.MinReplicas())
	}
	switch s.topology {
	case "sentinel":
		return sentinelSite(testbed.Sentinel(t, options...))
	case "cluster":
		return clusterSite(testbed.Cluster(t, options...))
	}
	return standaloneSite(t)
}

// standaloneSite keeps what it acknowledged, over a restart.
func standaloneSite(t *testing.T) *site {
	t.Helper()
	server := testbed.Redis(t, "--appendonly", "yes", "--appendfsync", "no")
	proxy := testbed.Proxy(t, server.Addr())
	servers := []*testbed.RedisServer{server}
	return &site{
		topology: stage.Topology{Mode: "standalone", Addresses: []string{proxy.Addr()}},
		servers:  servers, proxies: []*testbed.RedisProxy{proxy},
		masters: func() []*testbed.RedisServer { return servers },
		settled: func() {},
	}
}

func sentinelSite(s *testbed.SentinelDeployment) *site {
	return &site{
		topology: stage.Topology{Mode: "sentinel", Addresses: s.Addrs(), Master: s.MasterName()},
		servers:  s.Servers(), proxies: proxiesOf(s.Servers()),
		masters:  func() []*testbed.RedisServer { return []*testbed.RedisServer{s.Master()} },
		failover: func(*testbed.RedisServer) { s.Failover() },
		settled:  s.AwaitReady,
	}
}

func clusterSite(c *testbed.RedisCluster) *site {
	return &site{
		topology: stage.Topology{Mode: "cluster", Addresses: c.Addrs()},
		servers:  c.Nodes(), proxies: proxiesOf(c.Nodes()),
		masters:  c.Masters,
		failover: func(master *testbed.RedisServer) { c.Failover(master) },
		settled:  c.AwaitReady,
	}
}

func proxiesOf(servers []*testbed.RedisServer) (proxies []*testbed.RedisProxy) {
	for _, server := range servers {
		proxies = append(proxies, server.Proxy())
	}
	return proxies
}

// target is the server that a fault falls on, and the proxy before it.
func (s *site) target(n int) (*testbed.RedisServer, *testbed.RedisProxy) {
	masters := s.masters()
	master := masters[n%len(masters)]
	return master, s.proxies[slices.Index(s.servers, master)]
}
