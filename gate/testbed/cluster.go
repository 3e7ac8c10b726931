package testbed

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"
)

// RedisCluster is six Redis nodes: three masters that share the slots, each with
// one replica. Its methods may be called at any time, also while another goroutine
// kills and restarts nodes.
type RedisCluster struct {
	t     testing.TB
	nodes []*RedisServer // node i and node i+shards hold the same slots
	ids   []string       // of the nodes
}

const (
	shards = 3
	slots  = 16384
)

// Cluster starts a Cluster on free loopback ports. It returns once every node
// says that the cluster is ok and every replica follows its master.
func Cluster(t testing.TB, options ...Option) *RedisCluster {
	t.Helper()
	o := newTopology(t, 1500*time.Millisecond, options)
	c := &RedisCluster{t: t}
	seat := func() *busSeat { return &busSeat{} }
	if o.hosts != direct {
		seat = newBus().newSeat
	}
	for range 2 * shards {
		if err := c.startNode(o, seat()); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.join(); err != nil {
		t.Fatalf("testbed: cluster: %v", err)
	}
	c.AwaitReady()
	return c
}

func (c *RedisCluster) startNode(o topology, seat *busSeat) error {
	args := append(slices.Clip(o.args), "--repl-diskless-sync-delay", "0",
		"--cluster-node-timeout", strconv.FormatInt(o.downAfter.Milliseconds(), 10),
		"--cluster-announce-ip", o.hosts.peers)
	if o.hosts != direct {
		// Clients are told this name and the common port: that is the proxy.
		args = append(args, "--cluster-announce-hostname", clientHost, "--cluster-preferred-endpoint-type", "hostname")
	}
	node := o.newServer(c.t, args...)
	node.seat = seat
	if err := node.launch(); err != nil {
		return err
	}
	id, err := node.do("CLUSTER", "MYID").Text()
	if err != nil {
		return fmt.Errorf("testbed: cluster: %w", err)
	}
	c.nodes, c.ids = append(c.nodes, node), append(c.ids, id)
	return nil
}

// join makes one cluster of the nodes, as redis-cli --cluster create does.
func (c *RedisCluster) join() error {
	for i, node := range c.nodes {
		if err := node.do("CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			return err
		}
		if i < shards {
			first, end := i*slots/shards, (i+1)*slots/shards
			if err := node.do("CLUSTER", "ADDSLOTSRANGE", first, end-1).Err(); err != nil {
				return err
			}
		}
		for _, other := range c.nodes[:i] {
			if err := node.do("CLUSTER", "MEET", other.hosts.peers, other.port, other.seat.announced).Err(); err != nil {
				return err
			}
		}
	}
	for i, replica := range c.nodes[shards:] {
		// It must have heard of its master first.
		err := await(func() error { return replica.do("CLUSTER", "REPLICATE", c.ids[i]).Err() })
		if err != nil {
			return err
		}
	}
	return nil
}

// Addrs returns the addresses of all nodes, first those that began as masters.
func (c *RedisCluster) Addrs() []string {
	addrs := make([]string, len(c.nodes))
	for i, node := range c.nodes {
		addrs[i] = node.Addr()
	}
	return addrs
}

// Nodes returns all nodes, first those that began as masters.
func (c *RedisCluster) Nodes() []*RedisServer { return slices.Clone(c.nodes) }

// Masters returns the nodes that own slots, dead ones included.
func (c *RedisCluster) Masters() []*RedisServer {
	c.t.Helper()
	owners := c.owners()
	var masters []*RedisServer
	for _, node := range c.nodes {
		if slices.Contains(owners[:], node) {
			masters = append(masters, node)
		}
	}
	return masters
}

// Partner returns the other node that holds the same slots: the replica of a
// master, the master of a replica.
func (c *RedisCluster) Partner(node *RedisServer) *RedisServer {
	return c.nodes[(c.index(node)+shards)%(2*shards)]
}

// Slot returns the slot of a key.
func (c *RedisCluster) Slot(key string) int {
	c.t.Helper()
	for _, node := range c.nodes {
		if !node.Running() {
			continue
		}
		if slot, err := node.do("CLUSTER", "KEYSLOT", key).Int(); err == nil {
			return slot
		}
	}
	c.t.Fatalf("testbed: no node tells the slot of %q", key)
	return 0
}

// MasterOf returns the node that owns the slot of key. While a failover is due
// that is the dead one.
func (c *RedisCluster) MasterOf(key string) *RedisServer {
	c.t.Helper()
	return c.owners()[c.Slot(key)]
}

func (c *RedisCluster) index(node *RedisServer) int { return slices.Index(c.nodes, node) }

// AwaitReady returns once all nodes in reach (running and not isolated) agree which
// of them owns each slot, and every other of them replicates its partner.
func (c *RedisCluster) AwaitReady() {
	c.t.Helper()
	if err := await(c.ready); err != nil {
		c.t.Fatalf("testbed: the Cluster is not ready: %v", err)
	}
}

func (c *RedisCluster) ready() error {
	owners, err := c.agreedOwners()
	if err != nil {
		return err
	}
	for _, node := range c.nodes {
		if !node.reachable() || slices.Contains(owners[:], node) {
			continue
		}
		if err := node.follows(c.Partner(node)); err != nil {
			return err
		}
	}
	return nil
}

// Failover promotes the replica of a running master by its own consent: no write
// is lost. It returns the new master.
func (c *RedisCluster) Failover(old *RedisServer) *RedisServer {
	c.t.Helper()
	c.AwaitReady()
	// A replica that has not got its votes after five seconds forgets the order.
	const patience = 6 * time.Second
	var ordered time.Time
	err := await(func() error {
		err := c.succeeded(old)
		if err != nil && time.Since(ordered) > patience {
			ordered = time.Now()
			if err := c.Partner(old).do("CLUSTER", "FAILOVER").Err(); err != nil {
				return err
			}
		}
		return err
	})
	if err != nil {
		c.t.Fatalf("testbed: failover on order from %s: %v", old.Addr(), err)
	}
	return c.Partner(old)
}

// AwaitFailover returns the new master once the partner of old owns its slots and
// all nodes in reach agree on that.
func (c *RedisCluster) AwaitFailover(old *RedisServer) *RedisServer {
	c.t.Helper()
	if err := await(func() error { return c.succeeded(old) }); err != nil {
		c.t.Fatalf("testbed: failover from %s: %v", old.Addr(), err)
	}
	return c.Partner(old)
}

// succeeded returns nil if old owns no slots any more, as all nodes in reach see it.
func (c *RedisCluster) succeeded(old *RedisServer) error {
	owners, err := c.agreedOwners()
	if err == nil && slices.Contains(owners[:], old) {
		err = errors.New("it still owns slots")
	}
	return err
}
