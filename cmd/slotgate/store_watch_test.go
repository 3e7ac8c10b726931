package main

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/testbed"
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
	redis := testbed.Redis(t, "--maxmemory", "64mb", "--maxmemory-policy", "volatile-ttl")
	yaml := lessonsYAML(backend, "") + fmt.Sprintf("store: { kind: redis, addresses: [%q], timeout: 5s }\n", redis.Addr())
	one, same, odd := mustStart(t, yaml), mustStart(t, yaml), mustStart(t, yaml, "pools.lessons.hold_ttl=77s")

	awaitStatus(t, one, `"gates":{"running":3,"differing":1}`, `"mode":"standalone"`, `"address":"`+redis.Addr()+`"`, `"evicts":true`)
	awaitStatus(t, odd, `"gates":{"running":3,"differing":2}`)
	if metrics := read(t, odd.admin+"/metrics"); !strings.Contains(metrics, "\nslotgate_config_differs 2\n") {
		t.Error("no slotgate_config_differs 2 in the metrics")
	}
	one.log.waitFor(t, "configuration: warning: store.addresses: "+redis.Addr()+" drops keys")

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
