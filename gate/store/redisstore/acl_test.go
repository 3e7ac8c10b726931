package redisstore

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/luascripts"
	"github.com/slotgate/slotgate/rules"
)

// aclFile is a file of deploy/redis, as a server's --aclfile takes it.
func aclFile(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "..", "deploy", "redis", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// aclRules are the words of the user's line in such a file.
func aclRules(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(aclFile(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))[2:]
}

func asUser(o *Options) { o.Username, o.Password = "slotgate", "change-me" }

// wholeLife makes every call that a gate and its operators make.
func wholeLife(t *testing.T, s *Store, o Options) {
	t.Helper()
	everything(t, s)
	ctx := t.Context()
	d := ordinary("request-of-a-life-01")
	d.Subject, d.Key = "student-of-a-life", "key-of-a-life"
	d.Slot, d.Truth, d.Hot, d.Refresh = "looked-at", store.TruthRemaining, time.Hour, time.Hour
	look := &store.Look{Query: query(d), ID: "look-of-a-life", Lease: time.Minute}
	looked, err := s.Look(ctx, look)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(ctx, &store.Reading{Look: look, Looked: looked, Found: true, Value: 5, Hot: time.Hour, Refresh: time.Hour}); err != nil {
		t.Fatal(err)
	}
	got, err := admitted(s, d)
	if err != nil {
		t.Fatal(err)
	}
	settlement := settling(d, got, rules.Booked)
	settlement.Reference = "booking-1"
	if _, err := s.Settle(ctx, settlement); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Find(ctx, d.Pool, "booking-1"); err != nil {
		t.Error(err)
	}
	last, late := ordinary("request-of-a-life-02"), ordinary("request-of-a-life-03")
	for _, d := range []*store.Decide{last, late} {
		d.Slot, d.Subject, d.Key, d.Capacity, d.Repeat = "sold-out", "student-"+d.ID, "key-"+d.ID, 1, time.Second
	}
	if _, err := admitted(s, last); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Decide(ctx, late); err != nil || got.Verdict != decision.SoldOut || got.Holders == nil {
		t.Errorf("%+v, %v", got, err)
	}
	if _, _, err := s.Due(ctx, d.Pool, 1, time.Minute); err != nil {
		t.Error(err)
	}
	if _, ok, err := s.Lead(ctx, d.Pool, "gate-a", time.Minute); err != nil || !ok {
		t.Error(ok, err)
	}
	if err := s.Resign(ctx, d.Pool, "gate-a"); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Announce(ctx, "gate-a", "x", time.Minute); err != nil {
		t.Error(err)
	}
	if err := s.Ping(ctx); err != nil {
		t.Error(err)
	}
	s.checkSecret(ctx)
	if seen := inspect(t, o, d.Pool); seen.Partly || !slices.Contains(seen.Started, d.Pool) {
		t.Errorf("inspected: %+v", seen)
	}
}

var commandStat = regexp.MustCompile(`(?m)^cmdstat_([^:]+):calls=(\d+),.*rejected_calls=(\d+)`)

// used adds the commands that a server has run, and those that it has refused.
func used(t *testing.T, client *redis.Client, ran, refused map[string]bool) {
	t.Helper()
	info, err := client.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, stat := range commandStat.FindAllStringSubmatch(info, -1) {
		if stat[2] != "0" {
			ran["+"+stat[1]] = true
		}
		if stat[3] != "0" {
			refused["+"+stat[1]] = true
		}
	}
}

// wantRights compares the commands that a line permits with those that were run.
func wantRights(t *testing.T, name string, ran map[string]bool) {
	t.Helper()
	var permitted []string
	for _, word := range aclRules(t, name) {
		if strings.HasPrefix(word, "+") {
			permitted = append(permitted, word)
		}
	}
	for _, command := range permitted {
		if !ran[command] {
			t.Errorf("%s permits %s, which is not needed", name, command)
		}
	}
	for command := range ran {
		if !slices.Contains(permitted, command) {
			t.Errorf("%s does not permit %s, which is used", name, command)
		}
	}
}

// The line permits what Slotgate does, and nothing else.
func TestTheACLLineIsWhatIsNeeded(t *testing.T) {
	addr := testbed.Redis(t, "--aclfile", aclFile(t, "users.acl")).Addr()
	admin := rawClient(t, addr)
	if err := admin.ConfigResetStat(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, addr, asUser)
	watch := s.WatchSlot("lessons", "lesson-1")
	defer watch.Close()
	fired(t, "the subscription", watch)
	o := Options{Addresses: []string{addr}}
	asUser(&o)
	wholeLife(t, s, o)
	if err := admin.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Slots(t.Context(), query(booking(1)), "", 10); err != nil {
		t.Error(err)
	}

	ran, refused := map[string]bool{}, map[string]bool{}
	used(t, admin, ran, refused)
	for _, own := range []string{"+config|resetstat", "+script|flush", "+auth", "+hello"} { // the test's, and what needs no right
		delete(ran, own)
	}
	wantRights(t, "users.acl", ran)
	delete(refused, "+config|get") // not needed: INFO tells enough
	if len(refused) > 0 {
		t.Errorf("refused: %v", slices.Sorted(maps.Keys(refused)))
	}
	denied(t, redis.NewClient(&redis.Options{Addr: addr, Username: "slotgate", Password: "change-me"}))
}

// denial is how Redis refuses a command, a key or a channel, in a script too.
var denial = regexp.MustCompile(`^NOPERM|ACL failure|The user executing the script can't (?:run this command|access at least one of the keys)`)

// denied checks what a user of a shared Redis must not do.
func denied(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	defer client.Close()
	for _, command := range [][]any{
		{"FLUSHALL"}, {"FLUSHDB"}, {"KEYS", "*"}, {"CONFIG", "SET", "save", ""}, {"CONFIG", "GET", "requirepass"}, {"SHUTDOWN", "NOSAVE"},
		{"ACL", "LIST"}, {"SCRIPT", "FLUSH"}, {"MONITOR"}, {"MIGRATE", "127.0.0.1", "1", "slotgate:a", "0", "1"},
		{"GET", "another:key"}, {"SET", "another:key", "1"}, {"EVAL", "return redis.call('GET', KEYS[1])", "1", "another:key"},
		{"EVAL", "#!lua\nreturn redis.call('KEYS', '*')", "0"}, {"PUBLISH", "another:n", "1"}, {"SUBSCRIBE", "another:n"},
	} {
		err := client.Do(t.Context(), command...).Err()
		if err == nil || !denial.MatchString(err.Error()) {
			t.Errorf("%v: %v", command, err)
		}
	}
}

func TestTheACLLineOfACluster(t *testing.T) {
	cluster := testbed.Cluster(t, testbed.ServerArgs("--aclfile", aclFile(t, "users-cluster.acl")))
	for _, node := range cluster.Nodes() {
		if err := rawClient(t, node.Addr()).ConfigResetStat(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Mode: Cluster, Addresses: cluster.Addrs()}
	asUser(&o)
	s := openStore(t, "", func(with *Options) { with.Mode, with.Addresses = o.Mode, o.Addresses }, asUser)
	wholeLife(t, s, o)
	// An ASK redirection needs resharding: the right is used by hand.
	direct := redis.NewClient(&redis.Options{Addr: cluster.Addrs()[0], Username: "slotgate", Password: "change-me"})
	do(t, direct, "ASKING")
	if err := direct.Close(); err != nil {
		t.Fatal(err)
	}
	ran, refused := map[string]bool{}, map[string]bool{}
	eventually(t, "all that the line permits was used", func() bool {
		for _, node := range cluster.Nodes() {
			used(t, rawClient(t, node.Addr()), ran, refused)
		}
		return !slices.ContainsFunc(aclRules(t, "users-cluster.acl"), func(word string) bool { return word[0] == '+' && !ran[word] })
	})
	delete(refused, "+config|get")
	if len(refused) > 0 {
		t.Errorf("refused: %v", slices.Sorted(maps.Keys(refused)))
	}
	denied(t, redis.NewClient(&redis.Options{Addr: cluster.MasterOf("slotgate:a").Addr(), Username: "slotgate", Password: "change-me"}))
}

// The servers behind sentinels have the standalone line, the sentinels one of theirs.
func TestTheACLLinesOfSentinels(t *testing.T) {
	deployment := testbed.Sentinel(t, testbed.ServerArgs("--aclfile", aclFile(t, "users.acl")))
	o := Options{Mode: Sentinel, Addresses: deployment.Addrs(), MasterName: deployment.MasterName()}
	asUser(&o)
	s := openStore(t, "", func(with *Options) { with.Mode, with.Addresses, with.MasterName = o.Mode, o.Addresses, o.MasterName }, asUser)
	if _, err := admitted(s, booking(1)); err != nil {
		t.Fatal(err)
	}
	inspect(t, o, "lessons")

	addr := deployment.Addrs()[0]
	words := []any{"ACL", "SETUSER", "slotgate"}
	for _, word := range aclRules(t, "users-sentinel.acl") {
		words = append(words, word)
	}
	do(t, rawClient(t, addr), words...)
	sentinel := redis.NewSentinelClient(&redis.Options{Addr: addr, Username: "slotgate", Password: "change-me", DisableIdentity: true, Protocol: 2})
	defer sentinel.Close()
	ask := &sentinels{name: deployment.MasterName()}
	if vote := ask.poll(t.Context(), sentinel); vote.err != nil || vote.master != deployment.Servers()[0].Addr() {
		t.Errorf("%+v", vote)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	subscription := sentinel.Subscribe(ctx, "+switch-master", "+promoted-slave", "+config-update-from")
	defer subscription.Close()
	if _, err := subscription.Receive(ctx); err != nil {
		t.Error(err)
	}
	plain := redis.NewClient(&redis.Options{Addr: addr, Username: "slotgate", Password: "change-me", DisableIdentity: true, Protocol: 2})
	defer plain.Close()
	for _, command := range [][]any{{"SENTINEL", "REMOVE", "gate"}, {"SENTINEL", "FAILOVER", "gate"}, {"SENTINEL", "SET", "gate", "quorum", "1"}, {"SHUTDOWN"}} {
		var refusal redis.Error
		if err := plain.Do(ctx, command...).Err(); !errors.As(err, &refusal) || !strings.Contains(err.Error(), "NOPERM") {
			t.Errorf("%v: %v", command, err)
		}
	}
}

// The README's line for programs that read the outbox permits what luascripts/keys.go
// has them do.
func TestTheACLLineOfAConsumer(t *testing.T) {
	readme, err := os.ReadFile(aclFile(t, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile("`user billing on >… ([^`]+)`").FindSubmatch(readme)
	if line == nil {
		t.Fatal("the README has no such line")
	}
	server := testbed.Redis(t)
	stocked(t, server.Addr(), "slotgate", "lessons")
	words := []any{"ACL", "SETUSER", "billing", "on", ">secret"}
	for _, word := range strings.Fields(string(line[1])) {
		words = append(words, word)
	}
	do(t, rawClient(t, server.Addr()), words...)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "billing", Password: "secret"})
	defer client.Close()
	const outbox = "slotgate:o:{lessons}"
	do(t, client, "XGROUP", "CREATE", outbox, "billing", "0", "MKSTREAM")
	do(t, rawClient(t, server.Addr()), "XADD", outbox, "*", "n", "7")
	do(t, client, "XREADGROUP", "GROUP", "billing", "worker-1", "COUNT", "100", "STREAMS", outbox, ">")
	do(t, client, "XACK", outbox, "billing", "1-1")
	do(t, client, "XAUTOCLAIM", outbox, "billing", "worker-2", "60000", "0-0")
	denied(t, client)
}

// Another prefix is another line.
func TestTheACLLineNamesTheDefaultPrefix(t *testing.T) {
	keys := luascripts.Keys{Prefix: "slotgate"}
	for _, name := range []string{"users.acl", "users-cluster.acl"} {
		if words := aclRules(t, name); !slices.Contains(words, "~"+keys.Prefix+":*") || !slices.Contains(words, "&"+keys.Channel()) {
			t.Errorf("%s: %q", name, words)
		}
	}
}
