package redisstore

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/luascripts"
	"github.com/slotgate/slotgate/rules"
)

// What the model of a cluster (m5) was found to need, one by one.
func TestClusterRules(t *testing.T) {
	cluster := testbed.Cluster(t)
	corner := 0
	world := func(t *testing.T) (*shardWorld, *int) {
		corner++
		id := 0
		return newShardWorld(t, cluster, fmt.Sprintf("rule-%d", corner)), &id
	}

	t.Run("H19: a key goes under no hold of another slot", func(t *testing.T) {
		w, _ := world(t)
		first := w.request(1, "a")
		w.settle(w.one, first, w.decide(w.one, first), rules.Unknown)
		second := w.request(2, "a")
		second.Slot = "another"
		second.Fingerprint[1] = 1 // it contains the slot
		if got := w.decide(w.other, second); got.Verdict != decision.Mismatch {
			t.Fatalf("%s, want mismatch", got.Verdict)
		}
		if slot, err := w.other.Slot(t.Context(), query(second)); err != store.ErrNoSlot {
			t.Errorf("the other slot is %+v, %v", slot, err)
		}
	})

	t.Run("H20: the slot is settled before the key", func(t *testing.T) {
		w, _ := world(t)
		d := w.request(1, "a")
		got := w.decide(w.one, d)
		for step := 1; w.mortal.call(step, func(ctx context.Context) {
			if _, err := w.one.Settle(ctx, settling(d, got, w.forward(d))); err != nil {
				t.Error(err)
			}
		}); step++ {
			w.notDoneUnlessConfirmed(d)
			if step > 20 {
				t.Fatal("the settlement does not end")
			}
		}
		if !w.confirmed(d) {
			t.Error("not confirmed at the end")
		}
	})

	t.Run("H21: who finds its hold booked forwards nothing", func(t *testing.T) {
		w, _ := world(t)
		d := w.request(1, "a")
		got := w.decide(w.one, d)
		if !w.mortal.call(1, func(ctx context.Context) { _, _ = w.one.Settle(ctx, settling(d, got, w.forward(d))) }) || !w.confirmed(d) {
			t.Fatal("the gate did not die right after the slot's part")
		}
		w.advance(d.Lease + time.Second)
		for n := range 2 {
			if got := w.decide(w.other, w.request(2+n, "a")); got.Verdict != decision.Replay || len(got.Answer) != 0 {
				t.Fatalf("%s %q, want a replay without a body", got.Verdict, got.Answer)
			}
		}
	})

	t.Run("H22: a new hold is in the claim before it is taken", func(t *testing.T) {
		w, _ := world(t)
		w.decide(w.one, w.request(1, "a")) // its gate dies, and the hold lapses
		w.advance(2 * time.Minute)
		second := w.request(2, "a")
		got := w.decide(w.one, second)
		if got.Verdict != decision.Admitted || got.Hold != second.ID || got.Adopted {
			t.Fatalf("%+v, want a hold of its own", got)
		}
		if !w.mortal.call(1, func(ctx context.Context) { _, _ = w.one.Settle(ctx, settling(second, got, w.forward(second))) }) || !w.confirmed(second) {
			t.Fatal("the gate did not die right after the slot's part")
		}
		w.advance(second.Lease + time.Second)
		if got := w.decide(w.other, w.request(3, "a")); got.Verdict != decision.Replay {
			t.Fatalf("%s, want a replay: the claim must name the hold that was booked", got.Verdict)
		}
	})

	t.Run("H22: a hold that is gone is never taken again", func(t *testing.T) {
		w, _ := world(t)
		first := w.request(1, "a")
		w.settle(w.one, first, w.decide(w.one, first), rules.Unknown)
		w.advance(2 * time.Minute)
		taker := w.request(2, "b")
		if got := w.decide(w.one, taker); got.Verdict != decision.Admitted {
			t.Fatalf("%s", got.Verdict)
		}
		if got := w.decide(w.other, w.request(3, "a")); got.Verdict != decision.SoldOut {
			t.Fatalf("%s, want sold_out: the unit is another's", got.Verdict)
		}
	})

	// diesAfterClaim leaves a key claimed.
	diesAfterClaim := func(t *testing.T, w *shardWorld, d *store.Decide) {
		t.Helper()
		if !w.mortal.call(1, func(ctx context.Context) { _, _ = w.one.Decide(ctx, d) }) {
			t.Fatal("the gate did not die after the first step")
		}
		twin := w.request(1000, d.Key)
		twin.Wait = time.Minute
		if got := w.decide(w.other, twin); got.Verdict != decision.Twin || got.Owner != d.ID {
			t.Fatalf("%+v, want a twin of %s: the first step is the claim", got, d.ID)
		}
	}

	t.Run("a claim that a call left goes on under the next call of its request", func(t *testing.T) {
		w, _ := world(t)
		w.decide(w.one, w.request(1, "b")) // the unit
		d := w.request(2, "a")
		diesAfterClaim(t, w, d)
		woken := w.one.WatchKey(d)
		defer woken.Close()
		if got := w.decide(w.other, d); got.Verdict != decision.SoldOut {
			t.Fatalf("%s, want sold_out", got.Verdict)
		}
		select {
		case <-woken.C():
		case <-time.After(10 * time.Second):
			t.Error("a twin is not told that the claim is given back")
		}
		if got := w.decide(w.other, w.request(3, "a")); got.Verdict != decision.SoldOut {
			t.Errorf("%s, want sold_out: the claim is given back", got.Verdict)
		}
	})

	t.Run("a claim that is past its lease is nobody's, not its own request's either", func(t *testing.T) {
		w, _ := world(t)
		w.capacity = 2
		w.decide(w.one, w.request(1, "b"))
		d := w.request(2, "a")
		d.RetryUnknown = false
		diesAfterClaim(t, w, d)
		w.advance(d.Lease + time.Second)
		if got := w.decide(w.other, d); got.Verdict != decision.OutcomeUnknown {
			t.Errorf("%s, want outcome_unknown", got.Verdict)
		}
	})

	t.Run("a failure that is settled again frees the key too", func(t *testing.T) {
		w, _ := world(t)
		d := w.request(1, "a")
		refused := settling(d, w.decide(w.one, d), rules.Refused)
		if !w.mortal.call(1, func(ctx context.Context) { _, _ = w.one.Settle(ctx, refused) }) {
			t.Fatal("the gate did not die right after the slot's part")
		}
		if got := w.decide(w.other, w.request(2, "a")); got.Verdict != decision.Twin {
			t.Fatalf("%s, want twin: the key is not settled", got.Verdict)
		}
		if _, err := w.other.Settle(t.Context(), refused); err != nil { // from the journal
			t.Fatal(err)
		}
		if got := w.decide(w.other, w.request(3, "a")); got.Verdict != decision.Admitted {
			t.Errorf("%s, want admitted", got.Verdict)
		}
	})

	t.Run("a booking that is settled again completes the key, though a retry owns it", func(t *testing.T) {
		w, _ := world(t)
		d := w.request(1, "a")
		booked := settling(d, w.decide(w.one, d), w.forward(d))
		w.advance(d.Lease + time.Second)
		if got := w.decide(w.other, w.request(2, "a")); got.Verdict != decision.Admitted || !got.Adopted {
			t.Fatalf("%+v, want an adoption", got)
		}
		if !w.mortal.call(1, func(ctx context.Context) { _, _ = w.one.Settle(ctx, booked) }) || !w.confirmed(d) {
			t.Fatal("the gate did not die right after the slot's part")
		}
		if _, err := w.other.Settle(t.Context(), booked); err != nil { // from the journal
			t.Fatal(err)
		}
		if got := w.decide(w.other, w.request(3, "a")); got.Verdict != decision.Replay || string(got.Answer) != string(booked.Answer) {
			t.Errorf("%s %q, want the answer replayed", got.Verdict, got.Answer)
		}
	})

	t.Run("a touch claims no key of a request that is settled", func(t *testing.T) {
		w, _ := world(t)
		d := w.request(1, "a")
		got := w.decide(w.one, d)
		w.settle(w.one, d, got, rules.Refused)
		n, err := w.one.current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f := force(d, "")
		if err := w.one.claimForced(t.Context(), n, &f, got.Hold); err != nil {
			t.Fatal(err)
		}
		if got := w.decide(w.other, w.request(2, "a")); got.Verdict != decision.Admitted {
			t.Errorf("%s, want admitted", got.Verdict)
		}
	})

	t.Run("a copy that comes late changes nothing", func(t *testing.T) {
		type life struct {
			name string
			run  func(w *shardWorld, late *latecomers)
		}
		decide := func(w *shardWorld, late *latecomers, d *store.Decide) store.Decided {
			w.Helper()
			got, err := w.one.Decide(late.losing(), d)
			if err != nil {
				w.Fatal(err)
			}
			return got
		}
		settle := func(w *shardWorld, late *latecomers, d *store.Decide, got store.Decided, outcome rules.Outcome) {
			w.Helper()
			if _, err := w.one.Settle(late.losing(), settling(d, got, outcome)); err != nil {
				w.Fatal(err)
			}
		}
		for _, l := range []life{
			{"of a booking", func(w *shardWorld, late *latecomers) {
				d := w.request(1, "a")
				settle(w, late, d, decide(w, late, d), rules.Booked)
			}},
			{"of a failure", func(w *shardWorld, late *latecomers) {
				d := w.request(1, "a")
				settle(w, late, d, decide(w, late, d), rules.Refused)
			}},
			{"of an unknown outcome", func(w *shardWorld, late *latecomers) {
				d := w.request(1, "a")
				settle(w, late, d, decide(w, late, d), rules.Unknown)
			}},
			{"of a refusal", func(w *shardWorld, late *latecomers) {
				w.decide(w.other, w.request(1, "b"))
				if got := decide(w, late, w.request(2, "a")); got.Verdict != decision.SoldOut {
					w.Fatal(got.Verdict)
				}
			}},
			{"of a call that was refused before it was admitted", func(w *shardWorld, late *latecomers) {
				other, d := w.request(1, "b"), w.request(2, "a")
				got := w.decide(w.other, other)
				if got := decide(w, late, d); got.Verdict != decision.SoldOut {
					w.Fatal(got.Verdict)
				}
				w.settle(w.other, other, got, rules.Refused)
				d.Charged = true
				if got := w.decide(w.one, d); got.Verdict != decision.Admitted {
					w.Fatal(got.Verdict)
				}
			}},
			{"of a retry", func(w *shardWorld, late *latecomers) {
				first, second := w.request(1, "a"), w.request(2, "a")
				w.settle(w.other, first, w.decide(w.other, first), rules.Unknown)
				settle(w, late, second, decide(w, late, second), rules.Booked)
			}},
			{"of a retry whose hold is gone", func(w *shardWorld, late *latecomers) {
				w.decide(w.other, w.request(1, "a"))
				w.advance(2 * time.Minute)
				second := w.request(2, "a")
				settle(w, late, second, decide(w, late, second), rules.Refused)
			}},
		} {
			t.Run(l.name, func(t *testing.T) {
				w, _ := world(t)
				late := newLatecomers(w.one)
				l.run(w, late)
				before := w.state()
				if n := late.arrive(t, func(script string) {
					if after := w.state(); after != before {
						t.Fatalf("after a copy of %s the store is\n%s\nand was\n%s", script, after, before)
					}
				}); n < 4 {
					t.Fatalf("only %d copies", n)
				}
			})
		}
	})
}

// latecomers are first copies of scripts that the network holds back: the store sends
// each again, and they arrive after all.
type latecomers struct {
	store *Store
	mu    sync.Mutex
	held  []redis.Cmder
}

type latecomersKey struct{}

func newLatecomers(s *Store) *latecomers {
	l := &latecomers{store: s}
	s.client.AddHook(l)
	return l
}

// losing is a context whose calls lose every first copy.
func (l *latecomers) losing() context.Context {
	return context.WithValue(context.Background(), latecomersKey{}, l)
}

func (l *latecomers) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *latecomers) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l *latecomers) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if ctx.Value(latecomersKey{}) != l || !strings.HasPrefix(strings.ToUpper(cmd.Name()), "EVAL") {
			return next(ctx, cmd)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.held = append(l.held, redis.NewCmd(context.Background(), cmd.Args()...))
		cmd.SetErr(io.EOF)
		return io.EOF
	}
}

// arrive has the copies come, in their order, looks after each, and returns how many there
// were.
func (l *latecomers) arrive(t *testing.T, look func(script string)) int {
	t.Helper()
	for _, cmd := range l.held {
		script := fmt.Sprint(cmd.Args()[1])
		for _, s := range luascripts.All() {
			if s.SHA1 == script {
				script = s.Name
			}
		}
		if err := l.store.client.Process(t.Context(), cmd); err != nil && err != redis.Nil {
			t.Errorf("%s: %v", script, err)
		}
		look(script)
	}
	return len(l.held)
}

// state is what the store says of slot, keys, limits and subjects.
func (w *shardWorld) state() string {
	w.Helper()
	ctx := context.Background()
	var state strings.Builder
	cluster := w.other.client.(*redis.ClusterClient)
	found := map[string]string{}
	var mu sync.Mutex
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		keys, err := node.Keys(ctx, w.other.keys.Prefix+":*").Result()
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, key := range keys {
			rest := strings.TrimPrefix(key, w.other.keys.Prefix+":")
			switch {
			case strings.Contains(rest, ":x:"), strings.HasPrefix(rest, "o:"), strings.HasPrefix(rest, "epoch"), strings.HasPrefix(rest, "secret"):
				continue // tombstones, and what is written in the background
			}
			switch kind, err := node.Type(ctx, key).Result(); {
			case err != nil:
				return err
			case kind == "string":
				found[rest] = node.Get(ctx, key).Val()
			case kind == "hash":
				all := node.HGetAll(ctx, key).Val()
				delete(all, "g")
				for _, field := range slices.Sorted(maps.Keys(all)) {
					found[rest] += " " + field + "=" + all[field]
				}
			case kind == "zset" && strings.HasSuffix(rest, ":due"):
				found[rest] = fmt.Sprint(node.ZRange(ctx, key, 0, -1).Val())
			}
		}
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(&state, "%s: %s\n", key, found[key])
	}
	return state.String()
}
