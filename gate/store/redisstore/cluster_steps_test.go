package redisstore

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/rules"
)

// A gate dies when it panics with this: it does nothing more of its call.
type death struct{}

// mortal has the calls that are made with its context die after so many scripts of theirs
// have run. What a gate does in the background is not counted.
type mortal struct {
	store *Store
	steps atomic.Int64
	names []string // of the steps that ran
}

type mortalKey struct{}

func newMortal(s *Store) *mortal {
	m := &mortal{store: s}
	s.client.AddHook(m)
	return m
}

// call makes a call that dies after its n-th step, and reports whether it did.
func (m *mortal) call(n int, call func(ctx context.Context)) (died bool) {
	m.steps.Store(int64(n))
	m.names = nil
	defer func() {
		switch v := recover().(type) {
		case nil:
		case death:
			died = true
		default:
			panic(v)
		}
	}()
	call(context.WithValue(context.Background(), mortalKey{}, m))
	return false
}

func (m *mortal) DialHook(next redis.DialHook) redis.DialHook { return next }

func (m *mortal) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (m *mortal) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		name := strings.ToUpper(cmd.Name())
		step := strings.HasPrefix(name, "EVAL") && !isUnknownScript(err) || name == "SET"
		if ctx.Value(mortalKey{}) == m && step {
			m.names = append(m.names, name)
			if m.steps.Add(-1) == 0 {
				panic(death{})
			}
		}
		return err
	}
}

// shardWorld is two gates on a corner of a cluster, and a backend with a constraint: a
// subject books a slot once.
type shardWorld struct {
	*testing.T
	one, other *Store
	mortal     *mortal // of one
	capacity   int64
	booked     map[string]bool // by subject and slot
	forwarded  map[string]int  // by key, those that were booked at the backend
}

func newShardWorld(t *testing.T, cluster *testbed.RedisCluster, prefix string) *shardWorld {
	one := openStore(t, "", onCluster(cluster), withPrefix(prefix))
	other := openStore(t, "", onCluster(cluster), withPrefix(prefix))
	return &shardWorld{T: t, one: one, other: other, mortal: newMortal(one), capacity: 1,
		booked: map[string]bool{}, forwarded: map[string]int{}}
}

func (w *shardWorld) advance(d time.Duration) { advance(d, w.one, w.other) }

// request is a booking of one of few units with a key, and everything that is asked on
// another shard.
func (w *shardWorld) request(id int, key string) *store.Decide {
	d := booking(int64(id))
	d.Slot, d.Key, d.Subject, d.Capacity = "lesson", key, "student of "+key, w.capacity
	d.RetryUnknown, d.OnePerSubject, d.MaxPerSubject = true, false, 2
	d.SubjectLimit = store.Limit{Count: 1000, Per: 10 * time.Hour, Burst: 1000} // a charge is seen for long
	d.SlotLimit = d.SubjectLimit
	d.Fingerprint[0] = key[0]
	return d
}

func (w *shardWorld) decide(s *Store, d *store.Decide) store.Decided {
	w.Helper()
	got, err := s.Decide(context.Background(), d)
	if err != nil {
		w.Fatalf("decide %s: %v", d.ID, err)
	}
	w.safe()
	return got
}

// forward sends a request to the backend.
func (w *shardWorld) forward(d *store.Decide) rules.Outcome {
	name := d.Subject + "@" + d.Slot
	if w.booked[name] {
		return rules.Duplicate
	}
	w.booked[name] = true
	w.forwarded[d.Key]++
	return rules.Booked
}

func (w *shardWorld) settle(s *Store, d *store.Decide, got store.Decided, outcome rules.Outcome) store.Settled {
	w.Helper()
	t := settling(d, got, outcome)
	t.Keep = t.Keep || outcome == rules.Duplicate
	settled, err := s.Settle(context.Background(), t)
	if err != nil {
		w.Fatalf("settle %s: %v", d.ID, err)
	}
	w.safe()
	return settled
}

// safe fails where more is taken than there is.
func (w *shardWorld) safe() {
	w.Helper()
	slot, err := w.other.Slot(context.Background(), query(w.request(0, "x")))
	if err != nil && err != store.ErrNoSlot {
		w.Fatal(err)
	}
	if slot.Confirmed+slot.Held > w.capacity {
		w.Fatalf("oversold: %d confirmed and %d held of %d", slot.Confirmed, slot.Held, w.capacity)
	}
}

// finish has a client retry its key until it is answered, and fails unless the backend
// was asked to book it at most once. It returns what the client got last.
func (w *shardWorld) finish(id *int, key string) decision.Verdict {
	w.Helper()
	for range 8 {
		*id++
		d := w.request(*id, key)
		got := w.decide(w.other, d)
		switch got.Verdict {
		case decision.Admitted:
			w.settle(w.other, d, got, w.forward(d))
		case decision.Twin:
			w.advance(d.Lease + time.Second)
		default:
			return got.Verdict
		}
	}
	w.Fatalf("key %s has no answer after eight calls", key)
	return 0
}

// atRest lets all leases and holds end, and fails unless the slot then holds what the
// backend has booked, and the pool counts the same.
func (w *shardWorld) atRest(id *int, keys ...string) {
	w.Helper()
	w.advance(2 * time.Minute)
	d := w.request(0, "x")
	slot, err := w.other.Slot(context.Background(), query(d))
	if err != nil && err != store.ErrNoSlot {
		w.Fatal(err)
	}
	at := place{pool: d.Pool, retain: life(d.Retain, d.HoldTTL, d.Lease), counts: true}
	if err := w.other.sweep(context.Background(), at); err != nil {
		w.Fatal(err)
	}
	if slot.Confirmed != int64(len(w.booked)) || slot.Held != 0 {
		w.Fatalf("at rest %d are confirmed and %d held, the backend booked %d", slot.Confirmed, slot.Held, len(w.booked))
	}
	for _, key := range keys {
		// Of two units in the pool, the subject may take what it has not booked.
		left := 2
		if w.booked["student of "+key+"@lesson"] {
			left = 1
		}
		for n := range 3 {
			*id++
			more := w.request(*id, key)
			more.Key, more.Slot = "", fmt.Sprintf("another of %s %d", key, n)
			want := decision.Admitted
			if n >= left {
				want = decision.SubjectFull
			}
			if got := w.decide(w.other, more); got.Verdict != want {
				w.Fatalf("booking %d more of %s: %s, want %s", n+1, key, got.Verdict, want)
			}
		}
	}
}

// A gate may die between any two steps of a call.
func TestClusterGateDiesBetweenTwoSteps(t *testing.T) {
	cluster := testbed.Cluster(t)
	// dieIn makes a world for each step after which a call of its can end, until the
	// call is made to its end.
	dieIn := func(name string, run func(w *shardWorld, step int, id *int) (died bool)) {
		t.Run(name, func(t *testing.T) {
			for step := 1; ; step++ {
				id := 1000 * step
				w := newShardWorld(t, cluster, fmt.Sprintf("%s-%d", strings.ReplaceAll(name, " ", "-"), step))
				died := run(w, step, &id)
				t.Logf("step %d: died %t", step, died)
				if !died {
					if step < 4 {
						t.Errorf("the call has only %d steps: %v", step-1, w.mortal.names)
					}
					return
				}
				if step > 20 {
					t.Fatal("the call does not end")
				}
			}
		})
	}
	ask := func(w *shardWorld, step int, d *store.Decide, got *store.Decided) bool {
		return w.mortal.call(step, func(ctx context.Context) {
			var err error
			if *got, err = w.one.Decide(ctx, d); err != nil {
				w.Fatal(err)
			}
		})
	}
	tell := func(w *shardWorld, step int, s *store.Settle) bool {
		return w.mortal.call(step, func(ctx context.Context) {
			if _, err := w.one.Settle(ctx, s); err != nil {
				w.Fatal(err)
			}
		})
	}

	dieIn("decide", func(w *shardWorld, step int, id *int) bool {
		var got store.Decided
		died := ask(w, step, w.request(*id, "a"), &got)
		w.safe()
		if !died {
			return false
		}
		// Another key is not held up by more than the hold; the same key is answered.
		*id++
		if got := w.decide(w.other, w.request(*id, "b")); got.Verdict != decision.Admitted && got.Verdict != decision.SoldOut {
			w.Errorf("another key: %s", got.Verdict)
		}
		w.advance(2 * time.Minute)
		w.finish(id, "a")
		w.finish(id, "b")
		w.atRest(id, "a", "b")
		return true
	})

	dieIn("a refused decide", func(w *shardWorld, step int, id *int) bool {
		*id++
		first := w.request(*id, "b")
		w.settle(w.other, first, w.decide(w.other, first), w.forward(first))
		*id++
		var got store.Decided
		died := ask(w, step, w.request(*id, "a"), &got)
		w.safe()
		w.advance(2 * time.Minute)
		if v := w.finish(id, "a"); v != decision.SoldOut {
			w.Errorf("the same key: %s, want sold_out", v)
		}
		w.atRest(id, "a", "b")
		return died
	})

	dieIn("an adoption", func(w *shardWorld, step int, id *int) bool {
		first := w.request(*id, "a")
		w.settle(w.other, first, w.decide(w.other, first), rules.Unknown)
		*id++
		var got store.Decided
		died := ask(w, step, w.request(*id, "a"), &got)
		w.finish(id, "a")
		w.atRest(id, "a")
		return died
	})

	dieIn("a retry whose hold is gone", func(w *shardWorld, step int, id *int) bool {
		first := w.request(*id, "a")
		w.decide(w.other, first)
		w.advance(2 * time.Minute)
		*id++
		var got store.Decided
		died := ask(w, step, w.request(*id, "a"), &got)
		w.finish(id, "a")
		w.atRest(id, "a")
		return died
	})

	for _, outcome := range []rules.Outcome{rules.Booked, rules.Refused, rules.Unknown} {
		dieIn("settle "+outcome.String(), func(w *shardWorld, step int, id *int) bool {
			d := w.request(*id, "a")
			var got store.Decided
			if ask(w, 100, d, &got) || got.Verdict != decision.Admitted {
				w.Fatalf("not admitted: %+v", got)
			}
			if outcome != rules.Refused {
				w.forward(d)
			}
			died := tell(w, step, settling(d, got, outcome))
			w.safe()
			w.notDoneUnlessConfirmed(d)
			confirmed := w.confirmed(d)
			*id++
			// The claim is waited out, then the key is answered; never by a second
			// booking, and not by any forward once the slot knows of the first.
			w.advance(d.Lease + time.Second)
			retry := w.request(*id, "a")
			switch got := w.decide(w.other, retry); {
			case got.Verdict == decision.Admitted && confirmed:
				w.Errorf("forwarded after the slot had confirmed the booking")
			case got.Verdict == decision.Admitted:
				w.settle(w.other, retry, got, w.forward(retry))
			}
			if v := w.finish(id, "a"); v != decision.Replay {
				w.Errorf("the key's answer is %s, want replay", v)
			}
			if w.forwarded["a"] != 1 {
				w.Errorf("booked %d times", w.forwarded["a"])
			}
			w.atRest(id, "a")
			return died
		})
	}

	for name, seen := range map[string]bool{"a settle made again": true, "a settle of a booking never seen made again": false} {
		dieIn(name, func(w *shardWorld, step int, id *int) bool {
			d := w.request(*id, "a")
			got := store.Decided{Hold: d.ID}
			if seen {
				got = w.decide(w.one, d)
			}
			s := settling(d, got, w.forward(d))
			s.Reference = "booking 7"
			died := tell(w, step, s)
			// The gate's journal outlives it.
			if _, err := w.other.Settle(context.Background(), s); err != nil {
				w.Fatal(err)
			}
			*id++
			if replay := w.decide(w.other, w.request(*id, "a")); replay.Verdict != decision.Replay || string(replay.Answer) != string(s.Answer) {
				w.Errorf("%s %q, want the answer replayed", replay.Verdict, replay.Answer)
			}
			if slot, hold, err := w.other.Find(context.Background(), d.Pool, "booking 7"); err != nil || slot != d.Slot || hold != got.Hold {
				w.Errorf("the reference stands for %q %q, %v", slot, hold, err)
			}
			w.atRest(id, "a")
			return died
		})
	}

	dieIn("touch", func(w *shardWorld, step int, id *int) bool {
		d := w.request(*id, "a")
		f := force(d, "")
		f.Group, f.Key, f.KeyTTL, f.MaxPerSubject = d.Group, d.Key, d.KeyTTL, d.MaxPerSubject
		outcome := w.forward(d)
		died := w.mortal.call(step, func(ctx context.Context) {
			if err := w.one.Touch(ctx, &store.Touch{Gate: "gate", Query: query(d), Lease: time.Minute, Forced: []store.Forced{f}}); err != nil {
				w.Fatal(err)
			}
		})
		w.safe()
		if err := touch(w.other, d, "gate", f); err != nil {
			w.Fatal(err)
		}
		w.settle(w.other, d, store.Decided{Hold: d.ID}, outcome)
		if err := w.other.Resume(context.Background(), query(d), "gate"); err != nil {
			w.Fatal(err)
		}
		w.finish(id, "a")
		if w.forwarded["a"] != 1 {
			w.Errorf("booked %d times", w.forwarded["a"])
		}
		w.atRest(id, "a")
		return died
	})
}

// confirmed reports whether the slot knows of a booking.
func (w *shardWorld) confirmed(d *store.Decide) bool {
	w.Helper()
	slot, err := w.other.Slot(context.Background(), query(d))
	if err != nil {
		w.Fatal(err)
	}
	return slot.Confirmed > 0
}

// notDoneUnlessConfirmed fails where the key says booked and the slot does not (H20).
func (w *shardWorld) notDoneUnlessConfirmed(d *store.Decide) {
	w.Helper()
	record := w.one.keys.KeyRecord(w.one.secret.names.Load().key(d.Group, d.Partition, d.Key))
	if readKeyRecord(w, w.other.client, record).state == "done" && !w.confirmed(d) {
		w.Error("the key is done and its hold is not confirmed (H20)")
	}
}
