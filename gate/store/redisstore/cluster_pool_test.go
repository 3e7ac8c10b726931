package redisstore

import (
	"context"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/luascripts"
	"github.com/slotgate/slotgate/rules"
)

// atRest stops what a store does in the background: nothing happens that a test does not
// do.
func atRest(stores ...*Store) {
	for _, s := range stores {
		s.stop()
		<-s.stopped
	}
}

// A ledger is shipped by one gate at a time; one that was slow and was taken over says
// nothing about how far it has been shipped, nor does a late word of the other.
func TestClusterALedgerIsShippedByOneGateAtATime(t *testing.T) {
	cluster := testbed.Cluster(t)
	one, other := openStore(t, "", onCluster(cluster)), openStore(t, "", onCluster(cluster))
	atRest(one, other)
	book := func(n int64) {
		t.Helper()
		if _, err := admitted(one, at("lesson", n)); err != nil {
			t.Fatal(err)
		}
	}
	slot := one.keys.Slot(at("lesson", 0).Pool, "lesson")
	keys := func() []string { return []string{slot.State, slot.Ledger} }
	take := func(s *Store) (ids []string) {
		t.Helper()
		raw, err := s.run(t.Context(), &call{op: "ship", script: luascripts.Ship, keys: keys(), args: []any{s.instance, millis(shipLease), shipBatch, "0", "0", "0", "1000"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range raw.([]any)[0].([]any) {
			ids = append(ids, entry.([]any)[0].(string))
		}
		return ids
	}
	expect := func(what string, got []string, n int) {
		t.Helper()
		if len(got) != n {
			t.Fatalf("%s: %d entries are given, want %d", what, len(got), n)
		}
	}
	shipped := func(s *Store, id, want string) {
		t.Helper()
		got, err := s.run(t.Context(), &call{op: "ship", script: luascripts.Shipped, keys: keys(), args: []any{s.instance, id}})
		if err != nil || got != want {
			t.Fatalf("shipped %s: %v, %v; want %s", id, got, err, want)
		}
	}

	book(1)
	first := take(one)
	expect("the first", first, 1)
	expect("another meanwhile", take(other), 0)
	expect("a copy", take(one), 1)
	advance(shipLease+time.Second, one, other)
	expect("another after the lease", take(other), 1)
	shipped(one, first[0], "0")
	expect("the one who was too slow", take(one), 0)
	book(2)
	all := take(other)
	expect("the other", all, 2)
	shipped(other, all[1], "1")
	shipped(other, all[0], "0")
	expect("all are shipped", take(other), 0)
	book(3)
	late := take(other)
	advance(store.CopyWindow, one, other)
	shipped(other, late[0], "0") // the pool may have dropped what it was told
	expect("the other, again", take(other), len(late))
}

// Who touched a slot ships its ledger, without being asked and before any sweep.
func TestClusterAnOutboxIsFilledByWhoTouched(t *testing.T) {
	s := openStore(t, "", onCluster(testbed.Cluster(t)))
	d := at("lesson", 1)
	if err := s.client.XGroupCreateMkStream(t.Context(), s.keys.Outbox(d.Pool), "billing", "0").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := admitted(s, d); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the transition", func() bool {
		n, err := s.client.XLen(t.Context(), s.keys.Outbox(d.Pool)).Result()
		return err == nil && n == 1
	})
}

// What a hold counts for in its pool is told by several calls, in any order.
func TestClusterCountsInAPool(t *testing.T) {
	cluster := testbed.Cluster(t)
	s := openStore(t, "", onCluster(cluster))
	atRest(s)
	d := booking(1)
	d.Key, d.Subject, d.MaxPerSubject, d.HoldTTL = "", "student", 9, time.Minute
	const hold = "request-of-the-hold"
	type pool struct {
		*decideSteps
		value func() string // of the hold, without its times
	}
	begin := func(t *testing.T) pool {
		n, err := s.current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p := &decideSteps{Store: s, names: n, d: d, at: place{pool: t.Name(), retain: millis(time.Hour), counts: true}}
		of := *d
		of.Pool = t.Name()
		p.d, p.subject = &of, p.names.subject(d.Subject)
		return pool{p, func() string {
			got, _ := s.client.HGet(t.Context(), s.keys.PoolSubject(of.Pool, p.subject), hold).Result()
			return got
		}}
	}
	reserve := func(t *testing.T, p pool) {
		t.Helper()
		if full, err := p.reserve(t.Context(), hold, 9); full || err != nil {
			t.Fatal(full, err)
		}
	}
	note := func(t *testing.T, p pool, units string, ttl time.Duration) {
		t.Helper()
		told := news{at: strconv.FormatInt(time.Now().UnixMicro(), 10), notes: []poolNote{{hold, p.subject, units, millis(ttl)}}}
		if err := s.carryNotes(t.Context(), "test", p.at, told); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("what was reserved is taken back", func(t *testing.T) {
		p := begin(t)
		reserve(t, p)
		if len(p.reserved) != 1 || p.value() == "" {
			t.Fatalf("reserved %v, the pool has %q", p.reserved, p.value())
		}
		p.unreserve(t.Context(), p.reserved[0])
		if p.value() != "" {
			t.Errorf("%q is left", p.value())
		}
	})
	t.Run("but not what the slot has told since", func(t *testing.T) {
		p := begin(t)
		reserve(t, p)
		note(t, p, "2", time.Hour)
		told := p.value()
		p.unreserve(t.Context(), p.reserved[0])
		if p.value() != told {
			t.Errorf("%q is left of %q", p.value(), told)
		}
	})
	t.Run("a hold that counts for longer goes on to", func(t *testing.T) {
		p := begin(t)
		note(t, p, "2", time.Hour)
		told := p.value()
		reserve(t, p)
		if p.value() != told || len(p.reserved) != 0 {
			t.Errorf("%q was %q; %v would be taken back", p.value(), told, p.reserved)
		}
	})
	t.Run("one that counts for less is prolonged, and not taken back", func(t *testing.T) {
		p := begin(t)
		note(t, p, "1", time.Second)
		told := p.value()
		reserve(t, p)
		if p.value() == told || len(p.reserved) != 0 {
			t.Errorf("%q was %q; %v would be taken back", p.value(), told, p.reserved)
		}
	})
	t.Run("what the slot told longer ago than copies live is no news", func(t *testing.T) {
		p := begin(t)
		told := news{at: strconv.FormatInt(time.Now().Add(-store.CopyWindow-time.Second).UnixMicro(), 10),
			notes: []poolNote{{hold, p.subject, "2", millis(time.Hour)}}}
		if err := s.carryNotes(t.Context(), "test", p.at, told); err != nil {
			t.Fatal(err)
		}
		if p.value() != "" {
			t.Errorf("%q counts", p.value())
		}
	})
	t.Run("one that is finished does not count again", func(t *testing.T) {
		p := begin(t)
		note(t, p, "0", store.CopyWindow)
		reserve(t, p)
		if !strings.HasPrefix(p.value(), "0:") {
			t.Errorf("%q counts", p.value())
		}
	})
}

// A booking whose gate died counts in the pool as long as it stands, though a retry of its
// key, which was answered, reserved for a hold's time.
func TestClusterARetryCutsNoCountShort(t *testing.T) {
	w := newShardWorld(t, testbed.Cluster(t), "cut")
	d := w.request(1, "a")
	got := w.decide(w.one, d)
	if !w.mortal.call(1, func(ctx context.Context) { _, _ = w.one.Settle(ctx, settling(d, got, w.forward(d))) }) || !w.confirmed(d) {
		t.Fatal("the gate did not die right after the slot's part")
	}
	at := place{pool: d.Pool, retain: life(d.Retain, d.HoldTTL, d.Lease), counts: true}
	if err := w.other.sweep(t.Context(), at); err != nil { // the ledger tells the pool
		t.Fatal(err)
	}
	w.advance(d.Lease + time.Second)
	id := 1
	if v := w.finish(&id, "a"); v.String() != "replay" {
		t.Fatalf("the retry is told %s", v)
	}
	w.atRest(&id, "a")
}

// failing fails a script of a store for as long as it is told to.
type failing struct {
	script *luascripts.Script
	now    atomic.Bool
}

func (f *failing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *failing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (f *failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); f.now.Load() && len(args) > 1 && (args[1] == f.script.SHA1 || args[1] == f.script.Source) {
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		return next(ctx, cmd)
	}
}

// failingAt opens a store that fails at a script as long as it is told to.
func failingAt(t *testing.T, script *luascripts.Script) (*Store, *failing) {
	s := openStore(t, "", onCluster(testbed.Cluster(t)))
	atRest(s)
	away := &failing{script: script}
	s.client.AddHook(away)
	s.fresh.AddHook(away)
	return s, away
}

// A touch that could not claim its keys has failed, and does so when it is made again.
func TestClusterATouchClaimsItsKeysInTheEnd(t *testing.T) {
	s, away := failingAt(t, luascripts.ClaimForced)
	d := booking(1)
	d.Key, d.MaxPerSubject = "key", 0
	f := force(d, "")
	away.now.Store(true)
	if err := touch(s, d, "gate", f); err == nil {
		t.Error("touched though the key is not claimed")
	}
	away.now.Store(false)
	if err := touch(s, d, "gate", f); err != nil {
		t.Fatal(err)
	}
	twin := *d
	twin.ID = booking(2).ID
	if got, err := s.Decide(t.Context(), &twin); err != nil || got.Verdict != decision.Twin || got.Owner != d.ID {
		t.Errorf("%+v, %v; want a twin of %s", got, err, d.ID)
	}
}

// A settlement that could not tell its pool has failed, and does so when it is made again.
func TestClusterASettlementTellsItsPoolInTheEnd(t *testing.T) {
	s, away := failingAt(t, luascripts.Note)
	d := booking(1)
	d.Subject, d.MaxPerSubject = "student", 1
	got, err := admitted(s, d)
	if err != nil {
		t.Fatal(err)
	}
	away.now.Store(true)
	if settled, err := s.Settle(t.Context(), settling(d, got, rules.Refused)); err == nil {
		t.Errorf("settled %+v though the pool does not know", settled)
	}
	away.now.Store(false)
	settled, err := s.Settle(t.Context(), settling(d, got, rules.Refused))
	if err != nil || !settled.Applied || settled.Hold != decision.Released {
		t.Errorf("settled %+v, %v; want what the first found", settled, err)
	}
	next := booking(2)
	next.Subject, next.MaxPerSubject, next.Slot = "student", 1, "another"
	if _, err := admitted(s, next); err != nil {
		t.Error(err)
	}
}
