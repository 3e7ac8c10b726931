package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/luascripts"
)

// checkedYAML is a configuration whose store is filled in; what check says of other
// things than the store is left out by storeRemarks.
const checkedYAML = `upstream: { url: "http://127.0.0.1:9000" }
store:
  kind: redis
  addresses: [ADDRESSES]
  prefix: shop
  timeout: 5s
pools:
  lessons: { capacity: 6, hold_ttl: 30s }
  seats:
    capacity: 6
rules:
  - { name: lesson, match: { path: "/lessons/{lesson}" }, action: book, pool: lessons, slot: path:lesson }
  - { name: seat, match: { path: "/seats/{seat}" }, action: book, pool: seats, slot: path:seat }
`

var storeRemark = regexp.MustCompile(`(?m)^gate\.yaml:\d+:\d+: warning: (?:store\.(?:addresses|prefix)|pools(?:\.\w+)?): .*(?:the store|min-replicas|maxmemory|appendonly|takes no writes|CONFIG GET).*$`)

// storeRemarks are the warnings of check that are about the store, and the exit status.
func storeRemarks(t *testing.T, addresses []string, sets ...string) ([]string, int) {
	t.Helper()
	t.Chdir(t.TempDir())
	yaml := strings.Replace(checkedYAML, "ADDRESSES", `"`+strings.Join(addresses, `", "`)+`"`, 1)
	if err := os.WriteFile("gate.yaml", []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-c", "gate.yaml"}
	for _, set := range sets {
		args = append(args, "--set", set)
	}
	var stdout, stderr bytes.Buffer
	status := checkCommand(args, nil, &stdout, &stderr)
	if stderr.Len() > 0 || !strings.Contains(stdout.String(), "RULE") {
		t.Errorf("check said %s\n%s", stdout.String(), stderr.String())
	}
	return storeRemark.FindAllString(stdout.String(), -1), status
}

func wantRemarks(t *testing.T, got []string, status int, want ...string) {
	t.Helper()
	if status != checkUsable {
		t.Errorf("exit status %d", status)
	}
	ok := len(got) == len(want)
	for i := range min(len(got), len(want)) {
		matched, err := regexp.MatchString(want[i], got[i])
		ok = ok && err == nil && matched
	}
	if !ok {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Counters that start anew sell the whole stock again (case D-65).
func TestCheckNoticesARenamedPoolOrPrefix(t *testing.T) {
	for name, c := range map[string]struct {
		indexes []string // prefix and pool
		want    []string
	}{
		"a new store":                    {nil, nil},
		"as it was":                      {[]string{"shop lessons", "shop seats", "other films"}, nil},
		"a pool more":                    {[]string{"shop lessons"}, nil},
		"another shop beside":            {[]string{"shop lessons", "shop seats", "other lessons"}, nil},
		"a pool renamed":                 {[]string{"shop lessons", "shop tables"}, []string{`^gate.yaml:9:3: .*pools.seats: no slot .* has slots of tables that .*sold again`}},
		"a pool renamed, then booked":    {[]string{"shop lessons", "shop seats", "shop tables"}, []string{`^gate.yaml:7:1: .*pools: the store has slots of tables, and no pool is called so`}},
		"the prefix changed":             {[]string{"old lessons", "old seats"}, []string{`^gate.yaml:5:11: .*store.prefix: no slot of lessons, seats .* but under old. .*sold again`}},
		"the prefix changed, one booked": {[]string{"shop seats", "old lessons", "old seats"}, []string{`^gate.yaml:5:11: .*store.prefix: no slot of lessons is .*under old`}},
	} {
		t.Run(name, func(t *testing.T) {
			addr := testbed.Redis(t, "--appendonly", "yes").Addr()
			client := redis.NewClient(&redis.Options{Addr: addr})
			defer client.Close()
			for _, index := range c.indexes {
				prefix, pool, _ := strings.Cut(index, " ")
				if err := client.ZAdd(t.Context(), luascripts.Keys{Prefix: prefix}.Index(pool), redis.Z{Score: 1, Member: "1"}).Err(); err != nil {
					t.Fatal(err)
				}
			}
			got, status := storeRemarks(t, []string{addr})
			wantRemarks(t, got, status, c.want...)
		})
	}
}

func TestCheckNoticesAStoreThatMayLoseBookings(t *testing.T) {
	evicts := testbed.Redis(t, "--appendonly", "yes", "--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru").Addr()
	got, status := storeRemarks(t, []string{evicts})
	wantRemarks(t, got, status, `^gate.yaml:4:3: .*store.addresses: `+evicts+` drops keys .*maxmemory-policy noeviction`)

	forgets := testbed.Redis(t).Addr()
	got, status = storeRemarks(t, []string{forgets})
	wantRemarks(t, got, status, forgets+` keeps nothing on disk`)

	named := testbed.Sentinel(t)
	got, status = storeRemarks(t, named.Addrs(), "store.mode=sentinel", "store.master_name="+named.MasterName())
	wantRemarks(t, got, status, named.Servers()[0].Addr()+` has no min-replicas-to-write: .* any number of seconds of settlements that are lost .*60 of 60`)

	cluster := testbed.Cluster(t)
	got, status = storeRemarks(t, cluster.Addrs(), "store.mode=cluster")
	wantRemarks(t, got, status, `has no min-replicas-to-write: .* acknowledges 1.5 seconds of settlements that are lost`)

	replica := named.Servers()[1].Addr()
	got, status = storeRemarks(t, []string{replica})
	wantRemarks(t, got, status, replica+` is a replica, which takes no writes`)
}

func TestCheckOfAStoreThatIsAway(t *testing.T) {
	frozen := testbed.Redis(t)
	frozen.Freeze()
	defer frozen.Resume()
	for _, addr := range []string{"127.0.0.1:1", frozen.Addr()} {
		began := time.Now()
		got, status := storeRemarks(t, []string{addr})
		wantRemarks(t, got, status, `^gate.yaml:4:3: warning: store.addresses: the store was not looked at: .+`)
		if took := time.Since(began); took > 4*lookTime {
			t.Errorf("check took %v", took)
		}
	}
}

func TestCheckIsQuietAboutAStoreThatIsWell(t *testing.T) {
	got, status := storeRemarks(t, []string{testbed.Redis(t, "--appendonly", "yes", "--maxmemory", "64mb", "--maxmemory-policy", "noeviction").Addr()})
	wantRemarks(t, got, status)
	cluster := testbed.Cluster(t, testbed.MinReplicas())
	got, status = storeRemarks(t, cluster.Addrs(), "store.mode=cluster")
	wantRemarks(t, got, status)
	named := testbed.Sentinel(t, testbed.MinReplicas())
	got, status = storeRemarks(t, named.Addrs(), "store.mode=sentinel", "store.master_name="+named.MasterName())
	wantRemarks(t, got, status)
}
