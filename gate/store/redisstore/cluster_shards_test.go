package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/rules"
)

// recorder keeps the keys of all commands that a store sends.
type recorder struct {
	mu   sync.Mutex
	keys map[string][][]string // by what is sent
}

func (r *recorder) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *recorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r.note(cmd)
		return next(ctx, cmd)
	}
}

func (r *recorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			r.note(cmd)
		}
		return next(ctx, cmds)
	}
}

func (r *recorder) note(cmd redis.Cmder) {
	args := cmd.Args()
	if name := strings.ToUpper(cmd.Name()); name != "EVALSHA" && name != "EVAL" {
		return
	}
	n := args[2].(int)
	keys := make([]string, n)
	for i := range keys {
		keys[i] = *args[3+i].(*string)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	what := fmt.Sprint(args[1])
	r.keys[what] = append(r.keys[what], keys)
}

// All keys of each call are on one shard, as the cluster itself counts.
func TestClusterKeysOfACallShareAHashSlot(t *testing.T) {
	cluster := testbed.Cluster(t)
	s := openStore(t, "", onCluster(cluster))
	r := &recorder{keys: map[string][][]string{}}
	s.client.AddHook(r)
	everything(t, s)
	w := newShardWorld(t, cluster, "slotgate")
	w.one.client.AddHook(r)
	// What everything leaves out: a key whose hold is gone, or booked.
	first := w.request(1, "a")
	w.decide(w.one, first)
	w.advance(2 * time.Minute)
	second := w.request(2, "a")
	got := w.decide(w.one, second)
	w.mortal.call(1, func(ctx context.Context) { _, _ = w.one.Settle(ctx, settling(second, got, rules.Booked)) })
	w.advance(second.Lease + time.Second)
	w.decide(w.one, w.request(3, "a"))
	at := place{pool: first.Pool, retain: "60000", counts: true}
	if err := w.one.sweep(t.Context(), at); err != nil {
		t.Fatal(err)
	}

	hashSlot := map[string]int64{}
	slotOf := func(key string) int64 {
		tag := key
		if _, after, ok := strings.Cut(key, "{"); ok {
			tag, _, _ = strings.Cut(after, "}")
		}
		if _, ok := hashSlot[tag]; !ok {
			n, err := s.client.ClusterKeySlot(t.Context(), key).Result()
			if err != nil {
				t.Fatal(err)
			}
			hashSlot[tag] = n
		}
		return hashSlot[tag]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := 0
	for what, all := range r.keys {
		for _, keys := range all {
			calls++
			for _, key := range keys {
				if slotOf(key) != slotOf(keys[0]) {
					t.Fatalf("a call of %.60s has keys of several hash slots: %q", what, keys)
				}
			}
		}
	}
	// Of 27 scripts some run at each node by itself (epoch), or only elsewhere.
	if len(r.keys) < 20 || calls < 1000 {
		t.Errorf("only %d scripts in %d calls", len(r.keys), calls)
	}
}

// A subject's units in a pool are counted on one shard, its slots on others.
func TestClusterMaxPerSubjectHoldsOverShards(t *testing.T) {
	cluster := testbed.Cluster(t)
	gates := []*Store{openStore(t, "", onCluster(cluster)), openStore(t, "", onCluster(cluster))}
	const most = 3
	slots := []string{"lesson-0", "lesson-1", "lesson-2", "lesson-3"}
	masters := map[*testbed.RedisServer]bool{}
	for _, slot := range slots {
		masters[cluster.MasterOf(gates[0].keys.Slot("lessons", slot).State)] = true
	}
	if len(masters) < 2 {
		t.Fatalf("the slots are all on one shard")
	}
	var taken, highest, refused atomic.Int64
	var next atomic.Int64
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			// Each keeps what it got until it has asked once more.
			var giveBack func()
			for i := range 40 {
				d := booking(next.Add(1))
				d.Slot, d.Subject, d.OnePerSubject, d.MaxPerSubject = slots[(worker+i)%len(slots)], "student", false, most
				d.SlotLimit = store.Limit{}
				if i%2 == 0 {
					d.Key = ""
				}
				s := gates[(worker+i)%2]
				got, err := s.Decide(context.Background(), d)
				if err != nil {
					t.Error(err)
					return
				}
				if giveBack != nil {
					giveBack()
					giveBack = nil
				}
				switch got.Verdict {
				case decision.Admitted:
					now := taken.Add(1)
					if now > most {
						t.Errorf("the subject has %d units at once, of %d", now, most)
					}
					for before := highest.Load(); now > before && !highest.CompareAndSwap(before, now); before = highest.Load() {
					}
					giveBack = func() {
						taken.Add(-1) // before the units are free
						if _, err := s.Settle(context.Background(), settling(d, got, rules.Refused)); err != nil {
							t.Error(err)
						}
					}
				case decision.SubjectFull:
					refused.Add(1)
				default:
					t.Errorf("%s", got.Verdict)
				}
			}
			if giveBack != nil {
				giveBack()
			}
		})
	}
	wg.Wait()
	if refused.Load() == 0 || highest.Load() < most {
		t.Errorf("%d were refused, %d at once: the limit was not met", refused.Load(), highest.Load())
	}
	// At rest nothing is counted that is not held.
	for n := range most + 1 {
		d := booking(next.Add(1))
		d.Subject, d.MaxPerSubject, d.OnePerSubject, d.Slot = "student", most, false, slots[n]
		got, err := gates[n%2].Decide(t.Context(), d)
		if want := []decision.Verdict{decision.Admitted, decision.SubjectFull}[n/most]; err != nil || got.Verdict != want {
			t.Fatalf("booking %d: %s, %v; want %s", n+1, got.Verdict, err, want)
		}
	}
}

// Each transition is in the outbox at least once, and its ledger's id tells copies; also
// what a gate left that died.
func TestClusterOutboxHasEveryTransition(t *testing.T) {
	cluster := testbed.Cluster(t)
	live, dead := openStore(t, "", onCluster(cluster)), openStore(t, "", onCluster(cluster))
	ctx := context.Background()
	outbox := live.keys.Outbox("lessons")
	if err := live.client.XGroupCreateMkStream(ctx, outbox, "billing", "0").Err(); err != nil {
		t.Fatal(err)
	}
	const bookings = 60
	for n := range int64(bookings) {
		s := []*Store{live, dead}[n%2]
		d := booking(n)
		d.Slot, d.Key = fmt.Sprintf("%s-%d", []string{"live", "dead"}[n%2], n%6), ""
		got, err := admitted(s, d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Settle(ctx, settling(d, got, rules.Booked)); err != nil {
			t.Fatal(err)
		}
	}
	// The dead one may have shipped some; another finds the rest.
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	advance(time.Minute, live)
	at := place{pool: "lessons", retain: millis(time.Hour)}
	eventually(t, "the sweep", func() bool { return live.sweep(ctx, at) == nil })

	seen := map[string]string{} // by slot and ledger id
	copies := 0
	eventually(t, "all transitions", func() bool {
		streams, err := live.client.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "billing", Consumer: "worker",
			Streams: []string{outbox, ">"}, Count: 50, Block: 50 * time.Millisecond}).Result()
		if err != nil && err != redis.Nil {
			t.Fatal(err)
		}
		for _, stream := range streams {
			for _, entry := range stream.Messages {
				id := fmt.Sprint(entry.Values["n"], " ", entry.Values["l"])
				what := fmt.Sprint(entry.Values["h"], " ", entry.Values["f"], ">", entry.Values["o"], " ", entry.Values["u"])
				if before, ok := seen[id]; ok {
					copies++
					if before != what {
						t.Fatalf("%s is %q and %q", id, before, what)
					}
				}
				seen[id] = what
			}
		}
		return len(seen) == 2*bookings
	})
	for n := range 6 {
		slot := fmt.Sprintf("%s-%d", []string{"live", "dead"}[n%2], n)
		entries, err := live.Ledger(ctx, "lessons", slot, 1000)
		if err != nil || len(entries) != 2*bookings/6 {
			t.Fatalf("%s has %d entries, %v", slot, len(entries), err)
		}
		for _, entry := range entries {
			if _, ok := seen[slot+" "+entry.ID]; !ok {
				t.Errorf("entry %s of %s is not in the outbox", entry.ID, slot)
			}
		}
	}
	t.Logf("%d transitions, %d copies", len(seen), copies)
}

// A slot that exists is listed, whoever made it, and planned looks are handed out by any
// gate.
func TestClusterIndexAndLooksAreThePools(t *testing.T) {
	cluster := testbed.Cluster(t)
	one, other := openStore(t, "", onCluster(cluster)), openStore(t, "", onCluster(cluster))
	ctx := context.Background()
	const slots = 40
	for n := range slots {
		d := truthful(strconv.Itoa(n))
		d.ID, d.Slot, d.Blind, d.Key = fmt.Sprintf("request-%08d", n), fmt.Sprintf("lesson %d", n), true, ""
		d.MaxPerSubject, d.SubjectLimit, d.ClientLimit = 0, store.Limit{}, store.Limit{}
		if got, err := one.Decide(ctx, d); err != nil || got.Verdict != decision.Admitted {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	d := truthful("x")
	listed := map[string]bool{}
	for cursor := ""; ; {
		page, next, err := other.Slots(ctx, query(d), cursor, 7)
		if err != nil {
			t.Fatal(err)
		}
		for _, slot := range page {
			listed[slot.Slot] = true
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	if len(listed) != slots {
		t.Errorf("%d slots are listed, want %d", len(listed), slots)
	}
	advance(time.Minute, one, other)
	due := map[string]bool{}
	for range slots {
		names, _, err := other.Due(ctx, d.Pool, 10, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			due[name] = true
		}
	}
	if len(due) != slots {
		t.Errorf("%d looks are due, want %d", len(due), slots)
	}
}
