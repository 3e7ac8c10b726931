package faults

import (
	"testing"

	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
	"github.com/slotgate/slotgate/gate/testbed"
)

const (
	standalone = "standalone"
	sentinel   = "sentinel"
	cluster    = "cluster"
)

// place is a running store, with a proxy before each of its servers.
type place struct {
	topology stage.Topology
	servers  []*testbed.RedisServer // that hold data
	proxies  []*testbed.RedisProxy  // before them

	sentinels *testbed.SentinelDeployment // with sentinel
	cluster   *testbed.RedisCluster       // with cluster
}

// openPlace starts a topology of that name; options do not concern standalone.
func openPlace(t *testing.T, name string, options ...testbed.Option) *place {
	t.Helper()
	p := &place{topology: stage.Topology{Mode: name}}
	options = append(options, testbed.WithProxies())
	switch name {
	case standalone:
		server := testbed.Redis(t, "--appendonly", "yes", "--appendfsync", "no")
		p.servers, p.proxies = []*testbed.RedisServer{server}, []*testbed.RedisProxy{testbed.Proxy(t, server.Addr())}
		p.topology.Addresses = []string{p.proxies[0].Addr()}
		return p
	case sentinel:
		p.sentinels = testbed.Sentinel(t, options...)
		p.servers = p.sentinels.Servers()
		p.topology.Addresses, p.topology.Master = p.sentinels.Addrs(), p.sentinels.MasterName()
	case cluster:
		p.cluster = testbed.Cluster(t, options...)
		p.servers = p.cluster.Nodes()
		p.topology.Addresses = p.cluster.Addrs()
	default:
		t.Fatalf("no topology %q", name)
	}
	for _, server := range p.servers {
		p.proxies = append(p.proxies, server.Proxy())
	}
	return p
}

// masters take the writes at the moment.
func (p *place) masters() []*testbed.RedisServer {
	switch {
	case p.sentinels != nil:
		return []*testbed.RedisServer{p.sentinels.Master()}
	case p.cluster != nil:
		return p.cluster.Masters()
	}
	return p.servers
}

// failover waits until another server leads in the place of old.
func (p *place) failover(old *testbed.RedisServer) {
	if p.sentinels != nil {
		p.sentinels.AwaitFailover(old)
	} else {
		p.cluster.AwaitFailover(old)
	}
}

// ready waits until all servers that run know each other's roles.
func (p *place) ready() {
	switch {
	case p.sentinels != nil:
		p.sentinels.AwaitReady()
	case p.cluster != nil:
		p.cluster.AwaitReady()
	}
}
