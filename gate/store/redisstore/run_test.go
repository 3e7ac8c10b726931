package redisstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/rules"
)

// at is the n-th booking, of one of 99 units of a slot.
func at(slot string, n int64) *store.Decide {
	d := booking(n)
	d.Slot, d.Key, d.Capacity, d.SlotLimit = slot, "", 99, store.Limit{}
	return d
}

// standing reads a slot and fails unless it is believed, or is not.
func standing(t *testing.T, s *Store, slot string, verified bool) store.Slot {
	t.Helper()
	got, err := s.Slot(context.Background(), query(at(slot, 0)))
	if err != nil {
		t.Fatalf("slot %s: %v", slot, err)
	}
	capacity := store.Learned
	if verified {
		capacity = 99
		if got.Own {
			capacity = got.Capacity
		}
	}
	if got.Verified != verified || got.Dirty == verified || got.Capacity != capacity {
		t.Fatalf("slot %s is verified %t, dirty %t, with capacity %d; want verified %t", slot, got.Verified, got.Dirty, got.Capacity, verified)
	}
	return got
}

// admits asks for a slot until there is no room and returns how many were admitted
// at once, ten at most.
func admits(t *testing.T, s *Store, slot string, first int64) (n int) {
	t.Helper()
	for ; n < 10; n++ {
		got, err := s.Decide(context.Background(), at(slot, first+int64(n)))
		if err != nil {
			t.Fatal(err)
		}
		if got.Verdict == decision.NoRoom {
			return n
		}
		if got.Verdict != decision.Admitted {
			t.Fatalf("verdict %s", got.Verdict)
		}
	}
	return n
}

// eventually waits for what a gate does by itself.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 20 s", what)
		}
		<-again.C
	}
}

// connected returns when the store answers again.
func connected(t *testing.T, s *Store) {
	t.Helper()
	eventually(t, "an answer", func() bool { return s.Ping(context.Background()) == nil })
}

func TestAFirstStartOnAnEmptyStoreIsVerified(t *testing.T) {
	server := testbed.Redis(t)
	one, other := openStore(t, server.Addr()), openStore(t, server.Addr())
	if n := admits(t, one, "one", 0); n != 10 {
		t.Errorf("%d admitted at once, want all", n)
	}
	if n := admits(t, other, "other", 10); n != 10 {
		t.Errorf("%d admitted at once, want all", n)
	}
	standing(t, other, "one", true)
	standing(t, one, "other", true)
	if a, b := one.server.now.Load(), other.server.now.Load(); *a != *b || a.changed {
		t.Errorf("runs %+v and %+v", a, b)
	}
}

// H16: a store that comes back empty has counters that lack what was booked.
func TestAfterARestartEverySlotIsLearned(t *testing.T) {
	server := testbed.Redis(t)
	running := openStore(t, server.Addr())
	if n := admits(t, running, "seen before", 0); n != 10 {
		t.Fatalf("%d admitted at once before", n)
	}
	standing(t, running, "seen before", true)
	server.Restart()
	connected(t, running)
	later := openStore(t, server.Addr())
	for i, slot := range []string{"seen before", "never seen"} {
		if n := admits(t, running, slot, 100+10*int64(i)); n != store.LearnedInflight {
			t.Errorf("%s: %d admitted at once, want %d", slot, n, store.LearnedInflight)
		}
		if got := standing(t, running, slot, false); got.Held != store.LearnedInflight {
			t.Errorf("%s: slot %+v", slot, got)
		}
		standing(t, later, slot, false)
	}
	if n := admits(t, later, "seen by a gate that was started later", 200); n != store.LearnedInflight {
		t.Errorf("%d admitted at once, want %d", n, store.LearnedInflight)
	}
	got, err := later.Decide(context.Background(), at("another", 300))
	if err != nil || got.Verdict != decision.Admitted || got.Left != -1 {
		t.Errorf("decided %+v, %v; want an admit with nothing known to be left", got, err)
	}
	if err := touch(later, at("touched", 0), "gate-a", force(at("touched", 400), "")); err != nil {
		t.Fatal(err)
	}
	standing(t, later, "touched", false)
	unseen := at("booked", 500)
	settled, err := later.Settle(context.Background(), settling(unseen, store.Decided{Hold: unseen.ID}, rules.Booked))
	if err != nil || settled.Hold != decision.Confirmed || settled.Oversold != 0 {
		t.Fatalf("settled %+v, %v", settled, err)
	}
	standing(t, later, "booked", false)
	for _, s := range []*Store{running, later} {
		ttl, err := s.client.TTL(context.Background(), s.keys.Epoch()).Result()
		if err != nil || ttl < epochLife-time.Hour || ttl > epochLife {
			t.Errorf("the epoch mark lives for %v, %v", ttl, err)
		}
	}
}

// A learned slot goes by what the backend says.
func TestAfterARestartTheBackendTells(t *testing.T) {
	server := testbed.Redis(t)
	s := openStore(t, server.Addr())
	connected(t, s)
	server.Restart()
	connected(t, s)
	d := at("one", 1)
	d.Units = 100 // more than there are
	got, err := s.Decide(context.Background(), d)
	if err != nil || got.Verdict != decision.Admitted {
		t.Fatalf("decided %+v, %v", got, err)
	}
	if _, err := s.Settle(context.Background(), settling(d, got, rules.SoldOut)); err != nil {
		t.Fatal(err)
	}
	more := at("one", 2)
	more.Units = 100
	if got, err := s.Decide(context.Background(), more); err != nil || got.Verdict != decision.SoldOut {
		t.Fatalf("decided %+v, %v", got, err)
	}
	advance(5*time.Second, s)
	for n := range int64(2) { // reopened one probe at a time
		probe := at("one", 3+n)
		probe.Units = 100
		got, err := s.Decide(context.Background(), probe)
		if err != nil || !got.Probe {
			t.Fatalf("decided %+v, %v", got, err)
		}
		if _, err := s.Settle(context.Background(), settling(probe, got, rules.Booked)); err != nil {
			t.Fatal(err)
		}
	}
	if slot := standing(t, s, "one", false); slot.Full != 100 || slot.Confirmed != 200 {
		t.Errorf("slot %+v", slot)
	}
}

// An operator ends it for one slot, and only by vouching for its counters.
func TestAnOperatorVerifiesOneSlot(t *testing.T) {
	server := testbed.Redis(t)
	s := openStore(t, server.Addr())
	connected(t, s)
	server.Restart()
	connected(t, s)
	ctx, units, closed, opens := context.Background(), int64(7), false, time.Now().Add(-time.Hour)
	for slot, change := range map[string]store.SlotChange{
		"set": {Capacity: &units}, "verified": {Verify: true}, "verified, not seen": {Verify: true}, "set, not seen": {Capacity: &units},
		"opened": {Closed: &closed}, "scheduled": {OpensAt: &opens}, "cleared": {ClearCapacity: true}, "left": {},
	} {
		if !strings.HasSuffix(slot, "not seen") {
			if n := admits(t, s, slot, 0); n != store.LearnedInflight {
				t.Fatalf("%s: %d admitted at once before", slot, n)
			}
		}
		vouched := change.Capacity != nil || change.Verify
		got, err := s.Change(ctx, query(at(slot, 0)), change)
		if err != nil || got.Verified != vouched || got.Own != (change.Capacity != nil) {
			t.Errorf("%s: %+v, %v", slot, got, err)
		}
		standing(t, s, slot, vouched)
		standing(t, openStore(t, server.Addr()), slot, vouched)
	}
	want := map[string]int64{"set": 7, "verified": 99}
	for slot, capacity := range want {
		got, err := s.Decide(ctx, at(slot, 90))
		if err != nil || got.Verdict != decision.Admitted || got.Left != capacity-5 {
			t.Errorf("%s: decided %+v, %v", slot, got, err)
		}
	}
	// The next run ends it for them, too.
	server.Restart()
	connected(t, s)
	if _, err := admitted(s, at("set", 91)); err != nil {
		t.Fatal(err)
	}
	standing(t, s, "set", false)
}

// Data that survived is believed under the run it was verified under, no other.
func TestASlotOfAnotherRunIsLearned(t *testing.T) {
	s := openStore(t, testbed.Redis(t).Addr())
	ctx := context.Background()
	if n := admits(t, s, "one", 0); n != 10 {
		t.Fatalf("%d admitted at once", n)
	}
	state := s.keys.Slot("lessons", "one").State
	run, err := s.client.HGet(ctx, state, "r").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"ANOTHERRUN", "", "none"} {
		if err := s.client.HSet(ctx, state, "r", other).Err(); err != nil {
			t.Fatal(err)
		}
		standing(t, s, "one", false)
		if n := admits(t, s, "one", 10); n != 0 {
			t.Errorf("%d more admitted at once", n)
		}
	}
	if err := s.client.HDel(ctx, state, "r").Err(); err != nil {
		t.Fatal(err)
	}
	standing(t, s, "one", false)
	if err := s.client.HSet(ctx, state, "r", run).Err(); err != nil {
		t.Fatal(err)
	}
	standing(t, s, "one", true)
}

// Where every gate was away when the server changed, what stands there is not
// believed, and what does not only if no gate had seen a change before.
func TestAStartOnTheDataOfAnotherProcess(t *testing.T) {
	for changed, admitted := range map[string]int{"0": 10, "1": store.LearnedInflight} {
		server := testbed.Redis(t)
		before := openStore(t, server.Addr())
		if n := admits(t, before, "one", 0); n != 10 {
			t.Fatalf("%d admitted at once before", n)
		}
		epoch := "0123456789abcdef|0000|" + before.server.now.Load().id + "|" + changed
		if err := before.Close(); err != nil {
			t.Fatal(err)
		}
		admin := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: 1})
		t.Cleanup(func() { admin.Close() })
		do(t, admin, "SET", before.keys.Epoch(), epoch)
		s := openStore(t, server.Addr())
		standing(t, s, "one", false)
		if n := admits(t, s, "two", 20); n != admitted {
			t.Errorf("changed %s: %d admitted at once, want %d", changed, n, admitted)
		}
		if ttl, err := admin.TTL(context.Background(), s.keys.Epoch()).Result(); err != nil || ttl < epochLife-time.Hour {
			t.Errorf("the epoch mark lives for %v, %v", ttl, err)
		}
	}
}

// A mark that grows old is renewed.
func TestTheEpochIsRenewed(t *testing.T) {
	s := openStore(t, testbed.Redis(t).Addr())
	connected(t, s)
	if err := s.client.PExpire(context.Background(), s.keys.Epoch(), epochLife/2-time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	s.checkRun(t.Context())
	if ttl, err := s.client.TTL(context.Background(), s.keys.Epoch()).Result(); err != nil || ttl < epochLife-time.Hour {
		t.Errorf("the epoch mark lives for %v, %v", ttl, err)
	}
}

// A store that was emptied has lost what it knew, though its server goes on.
func TestAStoreThatWasEmptiedIsLearned(t *testing.T) {
	s := openStore(t, testbed.Redis(t).Addr())
	if n := admits(t, s, "one", 0); n != 10 {
		t.Fatalf("%d admitted at once", n)
	}
	if err := s.client.FlushAll(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := admitted(s, at("one", 20)); err != nil {
		t.Fatal(err)
	}
	s.checkRun(t.Context())
	standing(t, s, "one", false)
}

// A gate that starts while those that were running have not yet seen the change
// believes its new slots only until they have.
func TestSlotsBornBeforeTheChangeWasSeenAreLearned(t *testing.T) {
	server := testbed.Redis(t)
	proxy := testbed.Proxy(t, server.Addr())
	running := openStore(t, proxy.Addr(), quick)
	connected(t, running)
	proxy.Refuse(true)
	proxy.Sever()
	server.Restart()

	fresh := openStore(t, server.Addr())
	if _, err := admitted(fresh, at("one", 1)); err != nil {
		t.Fatal(err)
	}
	standing(t, fresh, "one", true) // nobody could have told it
	proxy.Refuse(false)
	connected(t, running)
	standing(t, running, "one", false)
	eventually(t, "the fresh gate's notice", func() bool {
		slot, err := fresh.Slot(context.Background(), query(at("one", 0)))
		return err == nil && !slot.Verified
	})
	if n := admits(t, fresh, "two", 10); n != store.LearnedInflight {
		t.Errorf("%d admitted at once, want %d", n, store.LearnedInflight)
	}
}

// A user that may not ask for the run is told so, and no script is sent.
func TestARunThatMayNotBeAskedFor(t *testing.T) {
	server := testbed.Redis(t)
	admin := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: 1})
	t.Cleanup(func() { admin.Close() })
	do(t, admin, "ACL", "SETUSER", "gate", "on", ">pw", "~*", "&*", "+@all", "-info")
	s := openStore(t, server.Addr(), func(o *Options) { o.Username, o.Password, o.Secret = "gate", "pw", "configured" })
	failure := fails(t, s)
	expectFailure(t, failure, store.KindServer, false)
	if code(failure) != "NOPERM" || !strings.Contains(failure.Error(), "'info' command") {
		t.Errorf("failure %v", failure)
	}
	if keys, err := admin.Keys(context.Background(), "*").Result(); err != nil || len(keys) != 0 {
		t.Errorf("keys %q, %v", keys, err)
	}
	if err := s.Ping(context.Background()); !errors.As(err, &failure) || failure.Kind != store.KindServer {
		t.Errorf("ping: %v", err)
	}
	do(t, admin, "ACL", "SETUSER", "gate", "+info")
	connected(t, s)
	if _, err := admitted(s, booking(1)); err != nil {
		t.Error(err)
	}
}
