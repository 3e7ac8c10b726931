package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/rules"
)

// byTruth is the n-th booking of a slot whose counters follow truth.
func byTruth(slot string, n int64) *store.Decide {
	d := at(slot, n)
	d.Capacity, d.Truth, d.Hot, d.Refresh = store.Learned, store.TruthRemaining, 5*time.Second, time.Minute
	return d
}

func look(t *testing.T, s *Store, d *store.Decide, id string, force bool) *store.Reading {
	t.Helper()
	l := &store.Look{Query: query(d), ID: id, Lease: time.Second, Force: force}
	looked, err := s.Look(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	return &store.Reading{Look: l, Looked: looked, Found: true, Value: 9, Total: store.Learned, Hot: d.Hot, Refresh: d.Refresh}
}

func verdict(t *testing.T, s *Store, d *store.Decide, want decision.Verdict) store.Decided {
	t.Helper()
	got, err := s.Decide(t.Context(), d)
	if err != nil || got.Verdict != want {
		t.Fatalf("decide %s: %s, %v; want %s", d.ID, got.Verdict, err, want)
	}
	return got
}

// H17: what is open is not known to a store that comes back empty. Until it has lapsed
// no slot is loaded, and all are learned.
func TestAfterARestartTruthWaitsForWhatIsOpen(t *testing.T) {
	server := testbed.Redis(t)
	s := openStore(t, server.Addr())
	verdict(t, s, byTruth("seen before", 1), decision.Load)
	if r := look(t, s, byTruth("seen before", 1), "look-one", false); r.Looked.Busy != 0 {
		t.Fatalf("before any change: %+v", r.Looked)
	}
	server.Restart()
	connected(t, s)
	later := openStore(t, server.Addr())
	connected(t, later)
	if a, b := s.server.now.Load(), later.server.now.Load(); *a != *b || a.since == 0 {
		t.Fatalf("runs %+v and %+v", a, b)
	}
	for i, gate := range []*Store{s, later} {
		for _, slot := range []string{"seen before", "never seen"} {
			want := decision.Admitted
			if i > 0 {
				want = decision.NoRoom // one at a time, all gates together
			}
			if got := verdict(t, gate, byTruth(slot, int64(10+i)), want); got.Left != -1 {
				t.Errorf("decided %+v", got)
			}
			r := look(t, gate, byTruth(slot, 0), "look-two", false)
			if r.Looked.Busy <= 20*time.Second || r.Looked.Busy > 30*time.Second || r.Looked.At != 0 {
				t.Errorf("%s: looked %+v", slot, r.Looked)
			}
		}
	}
	d := byTruth("never seen", 20)
	d.HoldTTL = time.Hour // a pool whose holds last longer waits longer
	advance(31*time.Second, s, later)
	verdict(t, s, d, decision.Admitted)
	d = byTruth("never seen", 21)
	verdict(t, later, d, decision.Load)
	r := look(t, s, d, "look-three", false)
	if r.Looked.Busy != 0 || r.Looked.Open != 1 {
		t.Fatalf("looked %+v", r.Looked)
	}
	if applied, err := later.Apply(t.Context(), r); err != nil || !applied.Applied || applied.After != 8 {
		t.Fatalf("applied %+v, %v", applied, err)
	}
	if got := verdict(t, s, d, decision.Admitted); got.Left != 7 {
		t.Errorf("decided %+v", got)
	}
}

// An operator who asks for a look does not wait.
func TestAfterARestartAForcedLookVerifies(t *testing.T) {
	server := testbed.Redis(t)
	s := openStore(t, server.Addr())
	connected(t, s)
	server.Restart()
	connected(t, s)
	d := byTruth("one", 1)
	r := look(t, s, d, "look-one", true)
	if applied, err := s.Apply(t.Context(), r); err != nil || !applied.Applied {
		t.Fatalf("applied %+v, %v", applied, err)
	}
	if slot, err := s.Slot(t.Context(), query(d)); err != nil || !slot.Verified || slot.Capacity != 9 {
		t.Errorf("slot %+v, %v", slot, err)
	}
}

// The moment a store was emptied, before any gate has noticed, a look would believe
// that nothing is open.
func TestNoLookOfAStoreThatWasJustEmptied(t *testing.T) {
	s := openStore(t, testbed.Redis(t).Addr())
	d := byTruth("one", 1)
	under := look(t, s, d, "look-one", false)
	run, word := *s.server.now.Load(), s.server.word.Load()
	if err := s.client.FlushAll(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
	s.server.now.Store(&run) // should the gate have looked by now
	s.server.word.Store(word)
	if applied, err := s.Apply(t.Context(), under); err != nil || applied.Applied {
		t.Errorf("applied %+v, %v", applied, err)
	}
	s.server.now.Store(&run)
	s.server.word.Store(word)
	if r := look(t, s, d, "look-two", false); r.Looked.Busy == 0 {
		t.Errorf("looked %+v", r.Looked)
	}
}

// A look that was under way when the run changed ends with it.
func TestALookUnderWayEndsWithItsRun(t *testing.T) {
	s := openStore(t, testbed.Redis(t).Addr())
	d := byTruth("one", 1)
	under := look(t, s, d, "look-one", false)
	if err := s.client.FlushAll(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
	s.checkRun(t.Context())
	if applied, err := s.Apply(t.Context(), under); err != nil || applied.Applied {
		t.Errorf("applied %+v, %v", applied, err)
	}
	if applied, err := s.Apply(t.Context(), look(t, s, d, "look-two", true)); err != nil || !applied.Applied {
		t.Errorf("applied %+v, %v", applied, err)
	}
}

// A slot that was written while its pool had no source, and whose bookings are not listed by
// their subject, is read as it was meant.
func TestASlotFromBeforeTruthIsRead(t *testing.T) {
	s := openStore(t, testbed.Redis(t).Addr())
	ctx := t.Context()
	connected(t, s)
	if _, err := s.current(ctx); err != nil {
		t.Fatal(err)
	}
	d := byTruth("one", 1)
	d.Subject, d.OnePerSubject = "student", false
	hash := s.secret.names.Load().subject("student")
	run, keys, now := s.server.now.Load().id, s.keys.Slot(d.Pool, d.Slot), time.Now()
	stamp := func(after time.Duration) string { return unixMillis(now.Add(after)) }
	print := encodeFingerprint(d.Fingerprint)
	for _, command := range [][]any{
		{"HSET", keys.State, "s", packSlot("1", stamp(time.Hour), "2", "1", "3", "5", "1", "0", "0", "0", "0", "0", stamp(0), stamp(time.Hour), "0", "-2", "-2", "0", "0"), "r", run,
			"h:booked-00000000001", "confirmed||0|0||2|" + hash + "|" + stamp(-time.Minute) + "|" + print + "||t:student",
			"h:held-0000000000001", "held||" + stamp(20*time.Second) + "|0|:" + stamp(9*time.Second) + ":0|1||" + stamp(-time.Second) + "|" + print + "||t:",
			"u:" + hash, "1||"},
		{"ZADD", keys.Due, int64(attemptZone), "@", confirmedZone + now.Add(-time.Minute).UnixMilli(), "booked-00000000001", stamp(20 * time.Second), "held-0000000000001"},
	} {
		do(t, s.client, command...)
	}
	verdict(t, s, d, decision.Load)
	r := look(t, s, d, "look-one", false)
	if !r.Looked.Known || r.Looked.Born == 0 || r.Looked.Open != 1 || r.Looked.Admitted != 3 {
		t.Fatalf("looked %+v", r.Looked)
	}
	if applied, err := s.Apply(ctx, r); err != nil || !applied.Applied || applied.Known || applied.After != 8 {
		t.Fatalf("applied %+v, %v", applied, err)
	}
	// What is not listed is not found by its subject, but by its id.
	c := cancelling(d, "cancel-one-0000001", store.Cancel)
	if got := verdict(t, s, c, decision.Admitted); got.Hold != "" {
		t.Fatalf("decided %+v", got)
	}
	c.ID, c.Target = "cancel-two-0000002", "booked-00000000001"
	got := verdict(t, s, c, decision.Admitted)
	if settled, err := s.Settle(ctx, settling(c, got, rules.Done)); err != nil || settled.Hold != decision.Released {
		t.Fatalf("settled %+v, %v", settled, err)
	}
	slot, err := s.Slot(ctx, query(d))
	if err != nil || slot.Confirmed != 0 || slot.Held != 1 || slot.Capacity != 11 {
		t.Fatalf("slot %+v, %v", slot, err)
	}
	advance(time.Minute, s)
	if slot, err := s.Slot(ctx, query(d)); err != nil || slot.Held != 0 || slot.Capacity != 10 {
		t.Fatalf("slot %+v, %v", slot, err)
	}
}
