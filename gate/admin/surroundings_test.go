package admin

import (
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/peers"
	"github.com/slotgate/slotgate/gate/store"
)

type fakeSurroundings struct {
	seen store.Inspection
	at   time.Time
	all  peers.Seen
}

func (f *fakeSurroundings) Inspected() (store.Inspection, time.Time) { return f.seen, f.at }
func (f *fakeSurroundings) RunIDs() []string                         { return []string{"AB12CD34"} }
func (f *fakeSurroundings) Seen() peers.Seen                         { return f.all }

func TestStatusShowsTheStoreAndTheOtherGates(t *testing.T) {
	f := &fakeSurroundings{seen: store.Inspection{Mode: "sentinel", Schema: 1}}
	b := newBench(t, "")
	b.server.servers, b.server.peers = f, f
	b.metrics.WatchPeers(f)
	has := func(where string, parts ...string) {
		t.Helper()
		w := b.call("GET", where, "")
		for _, part := range parts {
			if !strings.Contains(w.Body.String(), part) {
				t.Errorf("no %s in %s", part, w.Body)
			}
		}
	}
	// Before the first look, and while the other gates are not known.
	has("/v1/status", `"gates":{"running":null,"differing":null}`,
		`"store":{"kind":"redis","mode":"sentinel","schema":1,"runs":["AB12CD34"],"looked_at":null,"servers":[]}`)
	has("/metrics", "\nslotgate_config_differs 0\n")

	f.all = peers.Seen{Known: true, Running: 3, Differing: 2}
	f.at = time.Date(2030, 9, 1, 8, 0, 0, 0, time.UTC)
	f.seen.Servers = []store.Server{
		{Address: "127.0.0.1:1", Version: "redis 7.0.15", Role: "master", Replicas: 2, MaxMemory: 1 << 20, Eviction: "allkeys-lru",
			MinReplicas: 1, MinReplicasLag: 10 * time.Second, Persistence: "aof"},
		{Address: "127.0.0.1:2", Version: "valkey 8.0.1", Role: "master", Eviction: "noeviction", MinReplicas: 1, Persistence: "none", Hidden: true},
	}
	has("/v1/status", `"gates":{"running":3,"differing":2}`, `"looked_at":"2030-09-01T08:00:00Z"`,
		`{"address":"127.0.0.1:1","version":"redis 7.0.15","role":"master","replicas":2,"maxmemory":1048576,"maxmemory_policy":"allkeys-lru","evicts":true,"persistence":"aof","min_replicas_to_write":1,"min_replicas_max_lag":10,"config_hidden":false}`,
		`"evicts":false,"persistence":"none","min_replicas_to_write":1,"min_replicas_max_lag":null,"config_hidden":true}`)
	has("/metrics", "\nslotgate_config_differs 2\n")
}
