package testbed

import (
	"slices"
)

// SlotMove is one slot on its way from a master to another. Until Finish the old
// owner answers for the keys it still has, and sends clients on (ASK) for others;
// a command whose keys are at both gets TRYAGAIN.
type SlotMove struct {
	cluster  *RedisCluster
	slot     int
	from, to *RedisServer
}

// Reshard moves slots to another master while clients go on, as redis-cli
// --cluster reshard does, and returns when all nodes know.
func (c *RedisCluster) Reshard(to *RedisServer, slots ...int) {
	c.t.Helper()
	for _, slot := range slots {
		c.StartMove(to, slot).Finish()
	}
	c.AwaitReady()
}

// StartMove tells both masters that slot is on its way to another. It moves no key.
func (c *RedisCluster) StartMove(to *RedisServer, slot int) *SlotMove {
	c.t.Helper()
	m := &SlotMove{cluster: c, slot: slot, from: c.owners()[slot], to: to}
	if m.from == to {
		c.t.Fatalf("testbed: slot %d is already at %s", slot, to.Addr())
	}
	// In this order: the new owner must be ready for the clients it is sent.
	m.do(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", c.id(m.from))
	m.do(m.from, "CLUSTER", "SETSLOT", slot, "MIGRATING", c.id(to))
	return m
}

// MoveKeys moves up to n keys and returns how many there were.
func (m *SlotMove) MoveKeys(n int) int {
	m.cluster.t.Helper()
	keys, err := m.from.do("CLUSTER", "GETKEYSINSLOT", m.slot, n).StringSlice()
	if err != nil {
		m.cluster.t.Fatalf("testbed: keys of slot %d at %s: %v", m.slot, m.from.Addr(), err)
	}
	if len(keys) == 0 {
		return 0
	}
	migrate := []any{"MIGRATE", m.to.hosts.peers, m.to.port, "", 0, startTimeout.Milliseconds(), "KEYS"}
	for _, key := range keys {
		migrate = append(migrate, key)
	}
	m.do(m.from, migrate...)
	return len(keys)
}

// Finish moves all keys that are left and makes the new owner known.
func (m *SlotMove) Finish() {
	m.cluster.t.Helper()
	const batch = 10
	for m.MoveKeys(batch) > 0 {
	}
	// The new owner first: were it the old one, and both died then, nobody would
	// own the slot.
	tell := []*RedisServer{m.to, m.from}
	for _, master := range m.cluster.Masters() {
		if master.Running() && !slices.Contains(tell, master) {
			tell = append(tell, master)
		}
	}
	for _, master := range tell {
		m.do(master, "CLUSTER", "SETSLOT", m.slot, "NODE", m.cluster.id(m.to))
	}
}

func (m *SlotMove) do(node *RedisServer, args ...any) {
	m.cluster.t.Helper()
	if err := node.do(args...).Err(); err != nil {
		m.cluster.t.Fatalf("testbed: move of slot %d: %v at %s: %v", m.slot, args[:3], node.Addr(), err)
	}
}

func (c *RedisCluster) id(node *RedisServer) string { return c.ids[c.index(node)] }
