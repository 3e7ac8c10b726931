package redisstore

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/luascripts"
)

// inspect gives a loaded machine time.
func inspect(t *testing.T, o Options, pools ...string) store.Inspection {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	seen, err := Inspect(ctx, o, pools)
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// stocked has one booking of each pool under a prefix.
func stocked(t *testing.T, addr, prefix string, pools ...string) {
	t.Helper()
	s := openStore(t, addr, withPrefix(prefix))
	for _, pool := range pools {
		d := booking(1)
		d.Pool, d.Key, d.SlotLimit = pool, "", store.Limit{} // which would leave no key for long
		if _, err := admitted(s, d); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestInspectTellsWhoseSlotsThereAre(t *testing.T) {
	addr := testbed.Redis(t).Addr()
	stocked(t, addr, "shop", "lessons", "courses")
	stocked(t, addr, "shop:old", "lessons", "seats")
	stocked(t, addr, "other", "films")
	client := rawClient(t, addr)
	do(t, client, "SET", "a:i:{cart", "no index")
	do(t, client, "SET", "a:i:{b}:c", "no index")
	keys := func() []string { return slices.Sorted(slices.Values(client.Keys(t.Context(), "*").Val())) }
	before := keys()

	seen := inspect(t, Options{Addresses: []string{addr}, Prefix: "shop"}, "lessons", "seats", "tables")
	if want := []string{"lessons"}; !slices.Equal(seen.Started, want) {
		t.Errorf("pools with slots: %q, want %q", seen.Started, want)
	}
	if want := []string{"courses"}; !slices.Equal(seen.Others, want) {
		t.Errorf("other pools: %q, want %q", seen.Others, want)
	}
	if want := map[string][]string{"lessons": {"shop:old"}, "seats": {"shop:old"}}; !reflect.DeepEqual(seen.Elsewhere, want) {
		t.Errorf("under other prefixes: %q, want %q", seen.Elsewhere, want)
	}
	if seen.Partly || seen.Mode != "standalone" || seen.Schema != luascripts.Schema || len(seen.Servers) != 1 || seen.Servers[0].Address != addr {
		t.Errorf("%+v", seen)
	}
	if after := keys(); !slices.Equal(before, after) {
		t.Errorf("an inspection left %q, there was %q", after, before)
	}
}

func TestInspectTellsHowAServerIsSetUp(t *testing.T) {
	for _, c := range []struct {
		args []string
		want store.Server
	}{
		{nil, store.Server{Eviction: "noeviction", MinReplicasLag: 10 * time.Second, Persistence: "none"}},
		{[]string{"--maxmemory", "64mb", "--maxmemory-policy", "volatile-lru"},
			store.Server{MaxMemory: 64 << 20, Eviction: "volatile-lru", MinReplicasLag: 10 * time.Second, Persistence: "none"}},
		{[]string{"--appendonly", "yes", "--min-replicas-to-write", "2", "--min-replicas-max-lag", "3"},
			store.Server{Eviction: "noeviction", MinReplicas: 2, MinReplicasLag: 3 * time.Second, Persistence: "aof"}},
		{[]string{"--save", "900 1", "--min-replicas-to-write", "1", "--min-replicas-max-lag", "0"},
			store.Server{Eviction: "noeviction", Persistence: "rdb"}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			addr := testbed.Redis(t, c.args...).Addr()
			got := inspect(t, Options{Addresses: []string{addr}}).Servers[0]
			c.want.Address, c.want.Role, c.want.Version = addr, "master", got.Version
			if got != c.want || !strings.HasPrefix(got.Version, "redis ") {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// Neither SCAN nor CONFIG need be among a user's rights.
func TestInspectWithoutRights(t *testing.T) {
	addr := testbed.Redis(t, "--min-replicas-to-write", "3").Addr()
	do(t, rawClient(t, addr), "ACL", "SETUSER", "gate", "on", ">secret", "~*", "+info", "+zrangebyscore")
	seen := inspect(t, Options{Addresses: []string{addr}, Username: "gate", Password: "secret"}, "lessons")
	one := seen.Servers[0]
	if !one.Hidden || one.MinReplicas != 1 || one.MinReplicasLag != 0 || one.Eviction != "noeviction" || !seen.Partly {
		t.Errorf("%+v", seen)
	}
}

func TestInspectOfWhatIsAway(t *testing.T) {
	addr := testbed.Redis(t).Addr()
	stocked(t, addr, "shop", "lessons")
	server := testbed.Redis(t)
	server.Freeze()
	for name, o := range map[string]Options{
		"nobody listens": {Addresses: []string{"127.0.0.1:1"}},
		"no answer":      {Addresses: []string{server.Addr()}},
		"wrong password": {Addresses: []string{addr}, Username: "nobody", Password: "wrong"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		began := time.Now()
		_, err := Inspect(ctx, o, nil)
		cancel()
		if took := time.Since(began); err == nil || took > 3*time.Second {
			t.Errorf("%s: %v after %v", name, err, took)
		}
	}
	server.Resume()
}

// However many keys there are, a server is busy with an inspection for a bounded time.
func TestInspectLooksAtABoundedNumberOfKeys(t *testing.T) {
	addr := testbed.Redis(t).Addr()
	stocked(t, addr, "shop", "lessons", "courses")
	client := rawClient(t, addr)
	fill := "for i = 1, 20000 do redis.call('SET', 'filling:' .. i, '') end"
	if err := client.Eval(t.Context(), fill, nil).Err(); err != nil && err != redis.Nil {
		t.Fatal(err)
	}
	late := &inspection{keys: luascripts.Keys{Prefix: "shop"}, pools: []string{"lessons"}, until: time.Now()}
	if err := late.look(t.Context(), client); err != nil || !late.found.Partly || late.found.Others != nil {
		t.Errorf("with no time left: %+v, %v", late.found, err)
	}
	// What is asked for by name is known all the same.
	if err := late.started(t.Context(), client); err != nil || !slices.Equal(late.found.Started, []string{"lessons"}) {
		t.Errorf("%+v, %v", late.found, err)
	}
	seen := inspect(t, Options{Addresses: []string{addr}, Prefix: "shop"}, "lessons")
	if seen.Partly || !slices.Equal(seen.Others, []string{"courses"}) {
		t.Errorf("with time: %+v", seen)
	}
}

func TestInspectOfWhatSentinelsName(t *testing.T) {
	deployment := testbed.Sentinel(t)
	o := Options{Mode: Sentinel, Addresses: deployment.Addrs(), MasterName: deployment.MasterName()}
	seen := inspect(t, o, "lessons")
	if len(seen.Servers) != 1 || seen.Mode != "sentinel" {
		t.Fatalf("%+v", seen)
	}
	one := seen.Servers[0]
	if one.Address != deployment.Servers()[0].Addr() || one.Role != "master" || one.Replicas != 2 || one.MinReplicas != 0 || one.Persistence != "aof" {
		t.Errorf("%+v", one)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	o.MasterName = "another"
	if _, err := Inspect(ctx, o, nil); err == nil {
		t.Error("a master that no sentinel knows was looked at")
	}
}

func TestInspectOfACluster(t *testing.T) {
	cluster := testbed.Cluster(t, testbed.MinReplicas())
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	defer client.Close()
	keys := luascripts.Keys{Prefix: "shop"}
	for _, key := range []string{keys.Index("lessons"), keys.Index("courses"), keys.Index("films"), luascripts.Keys{Prefix: "old"}.Index("seats")} {
		if err := client.ZAdd(t.Context(), key, redis.Z{Score: 1, Member: "a"}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	seen := inspect(t, Options{Mode: Cluster, Addresses: cluster.Addrs()[:1], Prefix: "shop"}, "lessons", "seats")
	if len(seen.Servers) != 3 || !slices.Equal(seen.Started, []string{"lessons"}) || !slices.Equal(seen.Others, []string{"courses", "films"}) ||
		!reflect.DeepEqual(seen.Elsewhere, map[string][]string{"seats": {"old"}}) || seen.Mode != "cluster" {
		t.Errorf("%+v", seen)
	}
	for _, one := range seen.Servers {
		if one.Role != "master" || one.Replicas != 1 || one.MinReplicas != 1 || one.MinReplicasLag != time.Second || one.CutOff != 1500*time.Millisecond {
			t.Errorf("%+v", one)
		}
	}
}
