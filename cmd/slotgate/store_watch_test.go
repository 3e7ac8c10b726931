package main

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/luascripts"
	"github.com/slotgate/slotgate/rules"
)

// awaitStatus waits until /v1/status of a service holds all parts.
func awaitStatus(t *testing.T, s *runningService, parts ...string) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		body := read(t, s.admin+"/v1/status")
		missing := ""
		for _, part := range parts {
			if !strings.Contains(body, part) {
				missing = part
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %s in %s", missing, body)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func read(t *testing.T, url string) string {
	t.Helper()
	res, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// Gates of one Redis see each other, and what it is set up like.
func TestGatesOfOneStoreSeeEachOther(t *testing.T) {
	backend := createdBackend(t)
	server := testbed.Redis(t, "--maxmemory", "64mb", "--maxmemory-policy", "volatile-ttl")
	yaml := lessonsYAML(backend, "") + fmt.Sprintf("store: { kind: redis, addresses: [%q], timeout: 5s }\n", server.Addr())
	one, same, odd := mustStart(t, yaml), mustStart(t, yaml), mustStart(t, yaml, "pools.lessons.hold_ttl=77s")

	awaitStatus(t, one, `"gates":{"running":3,"differing":1}`, `"mode":"standalone"`, `"address":"`+server.Addr()+`"`, `"evicts":true`)
	awaitStatus(t, odd, `"gates":{"running":3,"differing":2}`)
	if metrics := read(t, odd.admin+"/metrics"); !strings.Contains(metrics, "\nslotgate_config_differs 2\n") {
		t.Error("no slotgate_config_differs 2 in the metrics")
	}
	one.log.waitFor(t, "configuration: warning: store.addresses: "+server.Addr()+" drops keys")

	if err := odd.stop(); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, one, `"gates":{"running":2,"differing":0}`)
	if err := same.stop(); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, one, `"gates":{"running":1,"differing":0}`)
	if err := one.stop(); err != nil {
		t.Fatal(err)
	}
}

// What a gate found at its start it says once, and does not look for again.
func TestARunningGateLooksAtTheKeysOnce(t *testing.T) {
	server := testbed.Redis(t)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	keys := luascripts.Keys{Prefix: "slotgate"}
	if err := rdb.ZAdd(t.Context(), keys.Index("renamed"), redis.Z{Score: 1, Member: "1"}).Err(); err != nil {
		t.Fatal(err)
	}
	yaml := strings.Replace(strings.Replace(checkedYAML, "ADDRESSES", server.Addr(), 1), "prefix: shop", "prefix: slotgate", 1)
	config, faults := rules.Load("gate.yaml", []byte(yaml), rules.LoadOptions{})
	if config == nil {
		t.Fatal(faults)
	}
	log := newLogCapture()
	w := newStoreWatch(nil, config, rules.ReadPlaces("gate.yaml", []byte(yaml), nil), slog.New(log))
	for range 3 {
		if err := w.look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{
		"gate.yaml:4:3: warning: store.addresses: " + server.Addr() + " keeps nothing on disk",
		"gate.yaml:8:3: warning: pools.lessons: no slot of this pool",
		"gate.yaml:9:3: warning: pools.seats: no slot of this pool",
	} {
		if n := strings.Count(log.text.String(), want); n != 1 {
			t.Errorf("said %d times: %s\n%s", n, want, log.text)
		}
	}
	stats, err := rdb.Info(t.Context(), "commandstats").Result()
	if err != nil || !strings.Contains(stats, "cmdstat_scan:calls=1,") {
		t.Errorf("looked at the keys otherwise than once: %v\n%s", err, stats)
	}
}
