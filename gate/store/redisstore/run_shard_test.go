package redisstore

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/luascripts"
)

// byCluster are the options of a store on a cluster.
func byCluster(c *testbed.RedisCluster) func(*Options) {
	return func(o *Options) { o.Mode, o.Addresses, o.Secret = Cluster, c.Addrs(), "configured" }
}

// tell writes its key and returns what it is told of runs.
var tell = func() *luascripts.Script {
	const source = "redis.call('SET', KEYS[1], 'x', 'PX', 60000) return ARGV[#ARGV]"
	return &luascripts.Script{Source: source, SHA1: redis.NewScript(source).Hash()}
}()

// told is what the scripts of a shard are told.
type told struct {
	run     string
	others  []string // in order
	changed bool
	since   string
}

func (s *Store) tellOf(t *testing.T, slot int) told {
	t.Helper()
	var reply any
	eventually(t, "what scripts are told", func() (told bool) {
		var err error
		reply, err = s.run(context.Background(), &call{op: "tell", script: tell, keys: []string{"{" + tags()[slot] + "}"}})
		return err == nil // a gate needs a moment to see a failover
	})
	parts := strings.Split(reply.(string), "|")
	if len(parts) != 3 {
		t.Fatalf("told %q", reply)
	}
	ids := strings.Split(parts[0], ",")
	slices.Sort(ids[1:])
	return told{run: ids[0], others: ids[1:], changed: parts[1] == "1", since: parts[2]}
}

// lowest are hash slots of the three shards that a new cluster has.
var lowest = [3]int{100, 6000, 12000}

// tellAll returns what each shard is told, once every shard is told of all others.
func (s *Store) tellAll(t *testing.T) (shards [3]told) {
	t.Helper()
	eventually(t, "all shards' runs", func() bool {
		for i, slot := range lowest {
			shards[i] = s.tellOf(t, slot)
		}
		for i, shard := range shards {
			want := []string{shards[(i+1)%3].run, shards[(i+2)%3].run}
			slices.Sort(want)
			if !slices.Equal(shard.others, want) {
				return false
			}
		}
		return true
	})
	return shards
}

func TestEachShardHasARun(t *testing.T) {
	cluster := testbed.Cluster(t)
	one, other := openStore(t, "", byCluster(cluster)), openStore(t, "", byCluster(cluster))
	a, b := one.tellAll(t), other.tellAll(t)
	for i := range a {
		if a[i].run != b[i].run || a[i].changed || b[i].changed || a[i].since != "0" {
			t.Errorf("shard %d: %+v and %+v", i, a[i], b[i])
		}
		if a[i].run == a[(i+1)%3].run || len(a[i].run) != 16 {
			t.Errorf("shards have the runs %+v", a)
		}
	}
}

// A shard that may have lost data has another run, and every shard is told that
// something was lost; other shards' runs stay.
func TestARunEndsWithItsShardOnly(t *testing.T) {
	for name, lose := range map[string]func(c *testbed.RedisCluster, master *testbed.RedisServer){
		"killed": func(c *testbed.RedisCluster, master *testbed.RedisServer) {
			master.Kill()
			c.AwaitFailover(master)
		},
		"paused": func(c *testbed.RedisCluster, master *testbed.RedisServer) {
			master.Freeze()
			c.AwaitFailover(master)
			master.Resume()
			c.AwaitReady()
		},
		"handed over": func(c *testbed.RedisCluster, master *testbed.RedisServer) { c.Failover(master) },
		"emptied":     func(c *testbed.RedisCluster, master *testbed.RedisServer) { master.Flush() },
		"restarted": func(c *testbed.RedisCluster, master *testbed.RedisServer) {
			master.Restart()
			c.AwaitReady()
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := testbed.Cluster(t)
			s := openStore(t, "", byCluster(cluster))
			before := s.tellAll(t)
			lose(cluster, cluster.Masters()[1])
			eventually(t, "the notice", func() bool { return s.tellOf(t, lowest[1]).run != before[1].run })
			after := s.tellAll(t)
			later := openStore(t, "", byCluster(cluster)).tellAll(t)
			for i := range after {
				if (after[i].run == before[i].run) != (i != 1) || !after[i].changed || after[i].since == "0" {
					t.Errorf("shard %d was told %+v, now %+v", i, before[i], after[i])
				}
				if later[i].run != after[i].run || !later[i].changed {
					t.Errorf("shard %d: a gate that starts later is told %+v, another %+v", i, later[i], after[i])
				}
			}
		})
	}
}

// Hash slots that are moved take their data along.
func TestReshardingEndsNoRun(t *testing.T) {
	cluster := testbed.Cluster(t)
	s, idle := openStore(t, "", byCluster(cluster)), openStore(t, "", byCluster(cluster))
	before := s.tellAll(t)
	idle.tellAll(t)
	masters := cluster.Masters()
	cluster.Reshard(masters[1], 0, 1, 2)
	cluster.Reshard(masters[0], 12000, 5461)
	cluster.Reshard(masters[2], 3, 5462)
	for range 3 {
		s.checkRun(t.Context())
		idle.checkRun(t.Context())
	}
	for name, gate := range map[string]*Store{"busy": s, "idle": idle, "later": openStore(t, "", byCluster(cluster))} {
		for slot, shard := range map[int]int{0: 1, 3: 2, 4: 0, 12000: 0, 12001: 2, 5461: 0, 5462: 2, 5463: 1} {
			if got := gate.tellOf(t, slot); got.run != before[shard].run || got.changed {
				t.Errorf("%s: hash slot %d is told %+v, want %s", name, slot, got, before[shard].run)
			}
		}
	}
}

// Who looks at a shard for the first time after hash slots were moved to it, and before
// others have noticed, cannot know what they call its run: what it says is no change.
func TestWhoComesAfterAMoveEndsNoRun(t *testing.T) {
	for name, look := range map[string]func(t *testing.T, s *Store, cluster *testbed.RedisCluster){
		"another gate": func(t *testing.T, _ *Store, cluster *testbed.RedisCluster) {
			openStore(t, "", byCluster(cluster)).tellAll(t)
		},
		// It was opened while the gate had not asked yet, and asks when it has.
		"another connection": func(t *testing.T, s *Store, cluster *testbed.RedisCluster) {
			addr := cluster.Masters()[1].Addr()
			client := redis.NewClient(&redis.Options{Addr: addr})
			t.Cleanup(func() { client.Close() })
			connection := client.Conn()
			defer connection.Close()
			one := s.runs.at(addr)
			state, _, err := s.lookAtRun(t.Context(), one, connection, nil)
			if err != nil || one.note(nil, state, func() {}) {
				t.Fatalf("%+v, %v: noted, or not found", state, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := testbed.Cluster(t)
			s := openStore(t, "", byCluster(cluster))
			atRest(s)
			notices := s.WatchRun()
			defer notices.Close()
			moved := cluster.Masters()[1]
			s.tellAll(t)
			d := onShard(s, cluster, moved)
			if _, err := admitted(s, d); err != nil {
				t.Fatal(err)
			}
			cluster.Reshard(moved, 0, 1)
			look(t, s, cluster)
			s.checkRun(t.Context())
			s.checkRun(t.Context())
			for _, slot := range lowest {
				if shard := s.tellOf(t, slot); shard.changed {
					t.Errorf("hash slot %d is told %+v", slot, shard)
				}
			}
			standing(t, s, d.Slot, true)
			select {
			case <-notices.C():
				t.Error("a change was announced")
			default:
			}
		})
	}
}

// Connections of a gate that are new at the same time, while hash slots are moved, tell their
// scripts one name of the run.
func TestConnectionsNameARunOnce(t *testing.T) {
	cluster := testbed.Cluster(t)
	s := openStore(t, "", byCluster(cluster))
	atRest(s)
	moved := cluster.Masters()[1]
	one := s.runs.at(moved.Addr())
	connect := func() *redis.Conn {
		client := redis.NewClient(&redis.Options{Addr: moved.Addr(), PoolSize: 1})
		connection := client.Conn()
		t.Cleanup(func() { connection.Close(); client.Close() })
		return connection
	}
	slow, quick, ended := connect(), connect(), make(chan error, 1)
	err := s.greetRun(t.Context(), one, &interrupted{asker: slow, by: func() {
		cluster.Reshard(moved, 0, 1)
		go func() { ended <- s.greetRun(t.Context(), one, quick) }()
		eventually(t, "another look", func() bool {
			return len(ended) == 1 || goroutinesIn("redisstore.(*server).firstLook(") == 1
		})
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if state := one.now.Load(); state.was != "" || state.changed {
		t.Errorf("its run is %+v", state)
	}
}

// A change is noted for as long as there are runs: what another gate names long after it is
// no other change.
func TestWhoComesAfterAMoveEndsNoRunOfAStoreThatHadChanged(t *testing.T) {
	cluster := testbed.Cluster(t)
	s := openStore(t, "", byCluster(cluster))
	atRest(s)
	before := s.tellAll(t)
	masters := cluster.Masters()
	masters[2].Flush()
	s.checkRun(t.Context())
	s.checkRun(t.Context())
	if s.tellOf(t, lowest[2]).run == before[2].run {
		t.Fatal("the store has not changed")
	}
	d := onShard(s, cluster, masters[1])
	if _, err := s.Change(t.Context(), query(d), store.SlotChange{Verify: true}); err != nil {
		t.Fatal(err)
	}
	notices := s.WatchRun()
	defer notices.Close()
	cluster.Reshard(masters[0], 5461)
	openStore(t, "", byCluster(cluster)).tellAll(t)
	s.checkRun(t.Context())
	s.checkRun(t.Context())
	standing(t, s, d.Slot, true)
	select {
	case <-notices.C():
		t.Error("a change was announced")
	default:
	}
}

// A server that served no keys, and is given the first hash slots of all, is in its run still.
func TestAShardThatServedNoKeysIsInItsRun(t *testing.T) {
	cluster := testbed.Cluster(t)
	s := openStore(t, "", byCluster(cluster))
	atRest(s)
	before := s.tellAll(t)
	one := s.runs.at(cluster.Masters()[0].Addr())
	served := one.now.Load()
	none := *served
	none.epoch = ""
	if !one.note(served, &none, func() {}) {
		t.Fatal("not noted")
	}
	s.client.Del(t.Context(), served.epoch) // another shard's at that time
	s.checkRun(t.Context())
	if got := s.tellOf(t, lowest[0]); got.run != before[0].run || got.changed {
		t.Errorf("told %+v, before %+v", got, before[0])
	}
}

// One that was emptied since, or of which another gate has noticed so, has changed, though
// its run stands elsewhere by now.
func TestAShardThatIsEmptiedBeforeAMoveIsAnother(t *testing.T) {
	cluster := testbed.Cluster(t)
	s := openStore(t, "", byCluster(cluster))
	atRest(s)
	before := s.tellAll(t)
	emptied := cluster.Masters()[1]
	emptied.Flush()
	cluster.Reshard(emptied, 0, 1)
	s.checkRun(t.Context())
	if got := s.tellOf(t, lowest[1]); got.run == before[1].run || !got.changed || slices.Contains(got.others, before[1].run) {
		t.Errorf("told %+v, before %+v", got, before[1])
	}
}

// Calls go on while hash slots are moved, in as long as they have.
func TestCallsWhileAHashSlotIsMoved(t *testing.T) {
	cluster := testbed.Cluster(t)
	s := openStore(t, "", byCluster(cluster))
	s.tellAll(t)
	two := &call{op: "tell", script: tell, keys: []string{"{" + tags()[0] + "}a", "{" + tags()[0] + "}b"}}
	if _, err := s.run(t.Context(), &call{op: "tell", script: tell, keys: two.keys[:1]}); err != nil {
		t.Fatal(err)
	}
	move := cluster.StartMove(cluster.Masters()[1], 0)
	done := make(chan error, 1)
	go func() {
		_, err := s.run(context.Background(), two)
		done <- err
	}()
	select {
	case err := <-done:
		t.Errorf("answered in the middle of a move: %v", err)
	case <-time.After(50 * time.Millisecond): // a call that is answered at once is too early
	}
	move.Finish()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// lineOf is what a node of a cluster lists of one.
func lineOf(node *redis.Client, of *testbed.RedisServer) []string {
	nodes, _ := node.ClusterNodes(context.Background()).Result() // nothing where it fails
	for line := range strings.Lines(nodes) {
		if fields := strings.Fields(line); strings.HasPrefix(fields[1], of.Addr()+"@") {
			return fields
		}
	}
	return make([]string, 8)
}

func listsMaster(node *redis.Client, of *testbed.RedisServer) bool {
	return strings.TrimPrefix(lineOf(node, of)[2], "myself,") == "master"
}

// A master that is new takes hash slots, the lowest of another's among them: nothing
// has been lost.
func TestANewMasterEndsNoRun(t *testing.T) {
	cluster := testbed.Cluster(t)
	s := openStore(t, "", byCluster(cluster))
	before := s.tellAll(t)
	masters := cluster.Masters()
	fresh := cluster.Partner(masters[0])
	at := func(node *testbed.RedisServer) *redis.Client {
		client := redis.NewClient(&redis.Options{Addr: node.Addr(), PoolSize: 1})
		t.Cleanup(func() { client.Close() })
		return client
	}
	atFresh, atOthers := at(fresh), []*redis.Client{at(masters[0]), at(masters[1]), at(masters[2])}
	_, bus, _ := strings.Cut(lineOf(atOthers[0], masters[0])[1], "@")
	host, port, _ := strings.Cut(masters[0].Addr(), ":")
	do(t, atFresh, "CLUSTER", "RESET", "SOFT")
	do(t, atFresh, "CLUSTER", "MEET", host, port, strings.Split(bus, ",")[0])
	eventually(t, "the new master", func() bool {
		for i, other := range atOthers {
			if !listsMaster(other, fresh) || !listsMaster(atFresh, masters[i]) {
				return false
			}
		}
		info, err := atFresh.ClusterInfo(context.Background()).Result()
		return err == nil && strings.Contains(info, "cluster_state:ok")
	})
	cluster.Reshard(fresh, 0, 1, 2)
	s.checkRun(t.Context())
	for slot, want := range map[int]string{3: before[0].run, lowest[1]: before[1].run, lowest[2]: before[2].run} {
		if got := s.tellOf(t, slot); got.run != want || got.changed {
			t.Errorf("hash slot %d is told %+v, want %s", slot, got, want)
		}
	}
	if got := s.tellOf(t, 0); got.changed || slices.Contains([]string{before[0].run, before[1].run, before[2].run}, got.run) {
		t.Errorf("the new master's scripts are told %+v", got)
	}
}
