package redisstore

import (
	"bufio"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/store/storetest"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/rules"
)

// documentedRights is the line that doc.go tells to give a user.
func documentedRights(t *testing.T) []any {
	t.Helper()
	file, err := os.Open("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var words []any
	for lines := bufio.NewScanner(file); lines.Scan(); {
		text, code := strings.CutPrefix(lines.Text(), "//\t")
		if !code || len(words) == 0 && !strings.HasPrefix(text, "ACL SETUSER") {
			if len(words) > 0 {
				break
			}
			continue
		}
		for _, word := range strings.Fields(text) {
			words = append(words, word)
		}
	}
	if len(words) < 10 {
		t.Fatalf("doc.go gives the rights %q", words)
	}
	return words
}

func asDocumented(o *Options) { o.Username, o.Password = "gate", "PASSWORD" }

func TestTheDocumentedRightsAreEnough(t *testing.T) {
	server := testbed.Redis(t)
	admin := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: 1})
	t.Cleanup(func() { admin.Close() })
	do(t, admin, documentedRights(t)...)
	for suite, run := range map[string]func(*testing.T, func(t *testing.T) *storetest.Harness){
		"calls": storetest.Run, "truth": storetest.RunTruth,
	} {
		t.Run(suite, func(t *testing.T) {
			run(t, func(t *testing.T) *storetest.Harness {
				do(t, admin, "FLUSHALL")
				one, other := openStore(t, server.Addr(), asDocumented), openStore(t, server.Addr(), asDocumented)
				return &storetest.Harness{Store: one, Other: other, Advance: func(d time.Duration) { advance(d, one, other) }}
			})
		})
	}
	s := openStore(t, server.Addr(), asDocumented)
	do(t, admin, "SCRIPT", "FLUSH")
	if _, err := admitted(s, booking(1)); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Slots(t.Context(), query(booking(1)), "", 10); err != nil {
		t.Error(err)
	}
}

func TestTheDocumentedRightsAreEnoughOnACluster(t *testing.T) {
	cluster := testbed.Cluster(t)
	for _, node := range cluster.Nodes() {
		admin := redis.NewClient(&redis.Options{Addr: node.Addr(), PoolSize: 1})
		t.Cleanup(func() { admin.Close() })
		do(t, admin, documentedRights(t)...)
	}
	s := openStore(t, "", byCluster(cluster), asDocumented, func(o *Options) { o.Secret = "" })
	cluster.Reshard(cluster.Masters()[1], 0)
	d := booking(1)
	got, err := admitted(s, d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Settle(t.Context(), settling(d, got, rules.Booked)); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Slots(t.Context(), query(d), "", 10); err != nil {
		t.Error(err)
	}
	if _, err := s.Ledger(t.Context(), d.Pool, d.Slot, 10); err != nil {
		t.Error(err)
	}
}
