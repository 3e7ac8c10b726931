package redisstore

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/storetest"
	"github.com/slotgate/slotgate/gate/testbed"
)

// bySentinel are the options of a store on a deployment.
func bySentinel(d *testbed.SentinelDeployment) func(*Options) {
	return func(o *Options) { o.Mode, o.Addresses, o.MasterName = Sentinel, d.Addrs(), d.MasterName() }
}

func TestSentinelConformance(t *testing.T) {
	deployment := testbed.Sentinel(t)
	storetest.Run(t, harness("", bySentinel(deployment)))
}

// However the master goes, bookings go on a moment after there is another, and nothing
// is believed that it may lack.
func TestASentinelFailover(t *testing.T) {
	for name, end := range map[string]func(*testbed.RedisServer){
		"by kill": (*testbed.RedisServer).Kill, "by pause": (*testbed.RedisServer).Freeze,
	} {
		t.Run(name, func(t *testing.T) {
			deployment := testbed.Sentinel(t)
			s, calm := openStore(t, "", hasty, bySentinel(deployment)), openStore(t, "", bySentinel(deployment))
			if n := admits(t, calm, "one", 0); n != 10 {
				t.Fatalf("%d admitted at once", n)
			}
			old := deployment.Master()
			replicated(t, old, 2)
			outage(t, s, at("two", 0), func() { end(old) }, func() { deployment.AwaitFailover(old) })
			standing(t, calm, "one", false)
			if n := admits(t, calm, "three", 30); n != store.LearnedInflight {
				t.Errorf("%d admitted at once, want %d", n, store.LearnedInflight)
			}
			run := calm.server.now.Load().id
			if name == "by kill" {
				old.Restart()
			} else {
				old.Resume()
			}
			deployment.AwaitReady() // the old one is a replica now
			for n := range int64(200) {
				d := at(fmt.Sprint("after ", n), 2000+n)
				if _, err := admitted(calm, d); err != nil {
					t.Fatal(err)
				}
			}
			if now := calm.server.now.Load().id; now != run {
				t.Errorf("the run is %s, was %s", now, run)
			}
		})
	}
}

// Whatever most of the sentinels do, the others are heard; one that hangs holds nobody
// up, and is not asked in vain by each new connection.
func TestSentinelsThatAreAway(t *testing.T) {
	deployment := testbed.Sentinel(t)
	s := openStore(t, "", bySentinel(deployment), func(o *Options) { o.Timeout = 4 * time.Second })
	connected(t, s)
	book := func(n int64) {
		t.Helper()
		if _, err := admitted(s, at(fmt.Sprint("slot ", n), n)); err != nil {
			t.Error(err)
		}
	}
	reconnect := func() {
		s.sentinels.mu.Lock()
		links := slices.Collect(maps.Keys(s.sentinels.links))
		s.sentinels.mu.Unlock()
		for _, l := range links {
			l.Close()
		}
	}
	for n, sentinel := range deployment.Sentinels() {
		if n < 2 {
			sentinel.Freeze()
			defer sentinel.Resume()
			reconnect()
			book(int64(n))
			continue
		}
		// Where the last was booked by a second attempt, over a connection of its own.
		eventually(t, "a connection that stands", func() bool {
			_ = s.Ping(t.Context())
			return s.client.PoolStats().IdleConns > 0
		})
		sentinel.Kill()
	}
	book(2) // over the connection that stands
	eventually(t, "that nobody names the master", func() bool {
		reconnect()
		_, err := s.Decide(t.Context(), at("last", 3))
		return err != nil && strings.Contains(err.Error(), `no sentinel names the master "gate"`)
	})
}

// Where sentinels differ, as one that was cut off with an old master does, the one that
// knows of the latest failover is right.
func TestTheLatestFailoverIsBelieved(t *testing.T) {
	one, other := testbed.Sentinel(t), testbed.Sentinel(t)
	addresses := []string{one.Addrs()[0], other.Addrs()[0], other.Addrs()[1]}
	s := openStore(t, "", bySentinel(one), func(o *Options) { o.Addresses = addresses[:2] })
	latest := one.Failover()
	for range 10 {
		if got, err := s.sentinels.find(t.Context()); err != nil || got != latest.Addr() {
			t.Fatalf("the master is %s, %v; want %s", got, err, latest.Addr())
		}
	}
	connected(t, s)
	standing := s.server.now.Load().process
	other.Failover()
	other.AwaitReady()
	latest = other.Failover()
	eventually(t, "the switch", func() bool { return s.server.now.Load().process != standing })
	if got, err := s.sentinels.find(t.Context()); err != nil || got != latest.Addr() {
		t.Errorf("the master is %s, %v; want %s", got, err, latest.Addr())
	}
}

// Sentinels may want no password, or that of the servers.
func TestSentinelsWithAPassword(t *testing.T) {
	deployment := testbed.Sentinel(t)
	for _, server := range deployment.Servers() {
		server.SetUser("gate on >pw ~* &* +@all")
	}
	opens := func(username, password string) error {
		s := openStore(t, "", bySentinel(deployment), func(o *Options) { o.Username, o.Password = username, password })
		return s.Ping(t.Context())
	}
	if err := opens("gate", "pw"); err != nil {
		t.Errorf("no password wanted: %v", err)
	}
	for _, sentinel := range deployment.Sentinels() {
		sentinel.SetUser("gate on >pw ~* &* +@all")
		sentinel.SetUser("default resetpass >pw")
	}
	if err := opens("", "pw"); err != nil {
		t.Errorf("the default user's: %v", err)
	}
	for _, sentinel := range deployment.Sentinels() {
		admin := redis.NewClient(&redis.Options{Addr: sentinel.Addr(), Username: "gate", Password: "pw", PoolSize: 1})
		t.Cleanup(func() { admin.Close() })
		do(t, admin, "ACL", "SETUSER", "default", "off")
	}
	if err := opens("gate", "pw"); err != nil {
		t.Errorf("a user's: %v", err)
	}
	if err := opens("gate", ""); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("without it: %v", err)
	}
}
