package memstore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// forced is a request like d that went to the backend without a decide, under a hold.
func forced(d *store.Decide, hold string) store.Forced {
	return store.Forced{
		ID: d.ID, Hold: hold, Subject: d.Subject, Units: d.Units, HoldTTL: d.HoldTTL, Lease: d.Lease,
		MaxPerSubject: d.MaxPerSubject, Scope: d.Scope, Fingerprint: d.Fingerprint,
		Group: d.Group, Partition: d.Partition, Key: d.Key, KeyTTL: d.KeyTTL,
	}
}

func touch(s *Store, d *store.Decide, gate string, requests ...store.Forced) error {
	return s.Touch(background, &store.Touch{
		Gate: gate, Lease: 10 * time.Second, Forced: requests,
		Query: store.SlotQuery{Pool: d.Pool, Slot: d.Slot, Capacity: d.Capacity, Retain: d.Retain},
	})
}

func resume(t *testing.T, s *Store, d *store.Decide, gate string) {
	t.Helper()
	if err := s.Resume(background, store.SlotQuery{Pool: d.Pool, Slot: d.Slot, Retain: d.Retain}, gate); err != nil {
		t.Fatal(err)
	}
}

// What a touch keeps is paid for and given back: marks when they end, requests with
// their holds and keys.
func TestTouchesAreAccountedFor(t *testing.T) {
	s, c := open(t, Options{})
	d := booking(1)
	if err := touch(s, d, "gate-a"); err != nil {
		t.Fatal(err)
	}
	marked := s.MemoryUsed()
	for range 3 { // a mark again costs nothing more
		if err := touch(s, d, "gate-a"); err != nil {
			t.Fatal(err)
		}
	}
	if used := s.MemoryUsed(); used != marked {
		t.Errorf("%d bytes in use after the same mark, %d before", used, marked)
	}
	if err := touch(s, d, "gate-b"); err != nil {
		t.Fatal(err)
	}
	resume(t, s, d, "gate-b")
	if used := s.MemoryUsed(); used != marked {
		t.Errorf("%d bytes in use after a mark has ended, %d before", used, marked)
	}

	retry := booking(2)
	requests := []store.Forced{forced(retry, d.ID), forced(d, d.ID)}
	if err := touch(s, d, "gate-a", requests...); err != nil {
		t.Fatal(err)
	}
	registered := s.MemoryUsed()
	if err := touch(s, d, "gate-a", requests...); err != nil {
		t.Fatal(err)
	}
	if used := s.MemoryUsed(); used != registered {
		t.Errorf("%d bytes in use after the same requests, %d before", used, registered)
	}
	settle(t, s, settlement(retry, d.ID, rules.Refused))
	settle(t, s, settlement(d, d.ID, rules.Unknown))
	c.advance(2 * time.Hour)
	s.sweep()
	if used := s.MemoryUsed(); used != 0 {
		t.Errorf("%d bytes in use after everything has expired", used)
	}
}

// What was forced and refused is given back after the copy window, while the slot
// lives on.
func TestForcedRequestsAreForgotten(t *testing.T) {
	s, c := open(t, Options{})
	d, retry := booking(1), booking(1)
	retry.ID = "another-request-1"
	q := store.SlotQuery{Pool: d.Pool, Slot: d.Slot, Retain: d.Retain}
	if _, err := s.Change(background, q, store.SlotChange{}); err != nil {
		t.Fatal(err)
	}
	empty := s.MemoryUsed()
	if err := touch(s, d, "gate-a", forced(retry, d.ID), forced(d, d.ID)); err != nil {
		t.Fatal(err)
	}
	settle(t, s, settlement(retry, d.ID, rules.Refused))
	settle(t, s, settlement(d, d.ID, rules.Refused))
	resume(t, s, d, "gate-a")
	c.advance(store.CopyWindow + time.Second)
	s.sweep()
	entries, err := s.Ledger(background, d.Pool, d.Slot, 100)
	if err != nil {
		t.Fatal(err)
	}
	if used, want := s.MemoryUsed(), empty+int64(len(entries))*entryCost; used != want {
		t.Errorf("%d bytes in use, want %d", used, want)
	}
}

// A mark outlives a slot that is retained for less, or its counters would be
// believed again too soon.
func TestAMarkOutlivesRetain(t *testing.T) {
	s, c := open(t, Options{})
	d := booking(1)
	d.Retain = time.Second
	if err := touch(s, d, "gate-a"); err != nil {
		t.Fatal(err)
	}
	c.advance(5 * time.Second)
	s.sweep()
	slot, err := s.Slot(background, store.SlotQuery{Pool: d.Pool, Slot: d.Slot, Capacity: 2, Retain: d.Retain})
	if err != nil || !slot.Dirty {
		t.Fatalf("slot %+v, %v", slot, err)
	}
	c.advance(6 * time.Second)
	if slot, err := s.Slot(background, store.SlotQuery{Pool: d.Pool, Slot: d.Slot, Capacity: 2}); !errors.Is(err, store.ErrNoSlot) {
		t.Fatalf("after the mark's end: slot %+v, %v", slot, err)
	}
}

// A touch that finds no memory says so and takes nothing; the same touch goes on
// from there when there is room again.
func TestATouchOfAFullStore(t *testing.T) {
	s, c := open(t, Options{MaxMemory: 1 << 20})
	d := booking(0)
	rest := s.memory.limit
	s.memory.charge(rest)
	if err := touch(s, d, "gate-a"); !isFull(err) {
		t.Fatalf("a new slot: %v, want a full store", err)
	}
	if used := s.MemoryUsed(); used != rest {
		t.Fatalf("%d bytes in use, want %d", used, rest)
	}

	var requests []store.Forced
	for i := range 50 {
		r := booking(i)
		r.Key = fmt.Sprint(i)
		requests = append(requests, forced(r, r.ID))
	}
	s.memory.free(20_000) // for some of them
	if err := touch(s, d, "gate-a", requests...); !isFull(err) {
		t.Fatalf("50 requests: %v, want a full store", err)
	}
	if used := s.MemoryUsed(); used > s.memory.limit+1024 {
		t.Errorf("%d bytes in use of %d", used, s.memory.limit)
	}
	s.memory.free(rest - 20_000)
	if err := touch(s, d, "gate-a", requests...); err != nil {
		t.Fatal(err)
	}
	slot, err := s.Slot(background, store.SlotQuery{Pool: d.Pool, Slot: d.Slot, Capacity: 2, Retain: d.Retain})
	if err != nil || slot.Held != 50 || slot.Inflight != 50 {
		t.Fatalf("%d held, %d in flight, %v", slot.Held, slot.Inflight, err)
	}
	c.advance(2 * time.Hour)
	s.sweep()
	if used := s.MemoryUsed(); used != 0 {
		t.Errorf("%d bytes in use after everything has expired", used)
	}
}

// The estimate holds for requests that were forced, too.
func TestEstimateOfForcedRequests(t *testing.T) {
	const n = 10_000
	before := heap()
	s, _ := open(t, Options{})
	for i := range n {
		d := booking(i)
		if err := touch(s, d, "gate-a", forced(d, d.ID)); err != nil {
			t.Fatal(err)
		}
	}
	grown, used := heap()-before, s.MemoryUsed()
	t.Logf("%d requests: %d bytes each on the heap, %d by estimate", n, grown/n, used/n)
	if used < grown || used > 3*grown {
		t.Errorf("the estimate is %d bytes, the heap grew by %d", used, grown)
	}
	if got := decide(t, s, booking(0)); got.Verdict != decision.Admitted {
		t.Errorf("verdict %s", got.Verdict)
	}
}

func TestAClosedStoreIsNotTouched(t *testing.T) {
	s := New(Options{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var failure *store.Error
	if err := touch(s, booking(1), "gate-a"); !errors.As(err, &failure) || failure.Kind != store.KindClosed {
		t.Errorf("touch: %v", err)
	}
	if err := s.Resume(background, store.SlotQuery{Pool: "lessons"}, "gate-a"); !errors.As(err, &failure) || failure.Kind != store.KindClosed {
		t.Errorf("resume: %v", err)
	}
}
