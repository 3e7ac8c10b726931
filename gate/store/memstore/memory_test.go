package memstore

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

var background = context.Background()

// booking is the n-th of many requests that have nothing in common.
func booking(n int) *store.Decide {
	return &store.Decide{
		ID: fmt.Sprintf("request-%08d", n), Rule: "book",
		Pool: "lessons", Slot: fmt.Sprintf("lesson-%d", n), Subject: fmt.Sprintf("student-%d", n), Units: 1,
		Capacity: 2, HoldTTL: time.Minute, Retain: time.Hour, MaxPerSubject: 2, Lease: 10 * time.Second,
		Group: "book", Key: fmt.Sprintf("key-%d", n), KeyTTL: time.Hour, Scope: "alice",
		SubjectLimit: store.Limit{Count: 1, Per: time.Second, Burst: 5},
		SlotLimit:    store.Limit{Count: 1, Per: time.Second, Burst: 5},
		ClientLimit:  store.Limit{Count: 1, Per: time.Second, Burst: 5},
		Client:       netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}),
	}
}

func settlement(d *store.Decide, hold string, outcome rules.Outcome) *store.Settle {
	return &store.Settle{
		ID: d.ID, Hold: hold, Pool: d.Pool, Slot: d.Slot, Subject: d.Subject, Units: d.Units,
		Capacity: d.Capacity, HoldTTL: d.HoldTTL, Retain: d.Retain, MaxPerSubject: d.MaxPerSubject,
		Outcome: outcome, Group: d.Group, Partition: d.Partition, Key: d.Key, KeyTTL: d.KeyTTL,
		Keep: outcome == rules.Booked, Answer: []byte("answer of " + d.ID), Scope: d.Scope, Fingerprint: d.Fingerprint,
	}
}

func decide(t testing.TB, s *Store, d *store.Decide) store.Decided {
	t.Helper()
	got, err := s.Decide(background, d)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func settle(t testing.TB, s *Store, st *store.Settle) store.Settled {
	t.Helper()
	got, err := s.Settle(background, st)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func isFull(err error) bool {
	var failure *store.Error
	return errors.As(err, &failure) && failure.Kind == store.KindFull && !failure.Maybe
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The estimate may not fall short of the heap, or MaxMemory bounds nothing; nor be
// so generous that most of what the operator gave lies idle.
func TestEstimateIsHeldAgainstTheHeap(t *testing.T) {
	const n = 10_000
	for _, outcome := range []rules.Outcome{rules.NoOutcome, rules.Booked, rules.Refused, rules.Unknown} {
		t.Run(outcome.String(), func(t *testing.T) {
			before := heap()
			s, _ := open(t, Options{})
			for i := range n {
				d := booking(i)
				got := decide(t, s, d)
				if got.Verdict != decision.Admitted {
					t.Fatalf("verdict %s", got.Verdict)
				}
				if outcome != rules.NoOutcome {
					settle(t, s, settlement(d, got.Hold, outcome))
				}
			}
			grown, used := heap()-before, s.MemoryUsed()
			t.Logf("%d bookings: %d bytes each on the heap, %d by estimate", n, grown/n, used/n)
			if used < grown {
				t.Errorf("the estimate is %d bytes, the heap grew by %d", used, grown)
			}
			if used > 3*grown {
				t.Errorf("the estimate is %d bytes, the heap grew only by %d", used, grown)
			}
			runtime.KeepAlive(s)
		})
	}
}

// A slot with many holds has other proportions than many slots with one.
func TestEstimateOfOneCrowdedSlot(t *testing.T) {
	const n = 10_000
	before := heap()
	s, _ := open(t, Options{})
	for i := range n {
		d := booking(i)
		d.Slot, d.Capacity, d.SlotLimit = "stadium", n, store.Limit{}
		settle(t, s, settlement(d, decide(t, s, d).Hold, rules.Booked))
	}
	grown, used := heap()-before, s.MemoryUsed()
	t.Logf("%d bookings: %d bytes each on the heap, %d by estimate", n, grown/n, used/n)
	if used < grown || used > 3*grown {
		t.Errorf("the estimate is %d bytes, the heap grew by %d", used, grown)
	}
	runtime.KeepAlive(s)
}

func TestManyDistinctNamesStayWithinMaxMemory(t *testing.T) {
	const n, bound = 100_000, 64 << 20
	before := heap()
	s, c := open(t, Options{MaxMemory: bound})
	admitted, refused := 0, 0
	for i := range n {
		d := booking(i)
		got, err := s.Decide(background, d)
		switch {
		case isFull(err):
			refused++
		case err != nil:
			t.Fatal(err)
		case got.Verdict != decision.Admitted:
			t.Fatalf("verdict %s", got.Verdict)
		default:
			admitted++
			settle(t, s, settlement(d, got.Hold, rules.Booked))
		}
	}
	if used := s.MemoryUsed(); used > bound+bound/100 {
		t.Errorf("%d bytes in use of %d", used, bound)
	}
	if grown := heap() - before; grown > bound {
		t.Errorf("the heap grew by %d bytes of %d", grown, bound)
	}
	t.Logf("%d admitted, %d refused", admitted, refused)
	if admitted < 10_000 || refused == 0 {
		t.Errorf("%d admitted and %d refused: not full, or full too soon", admitted, refused)
	}

	c.advance(2 * time.Hour)
	s.sweep()
	if used := s.MemoryUsed(); used != 0 {
		t.Errorf("%d bytes in use after everything has expired", used)
	}
	if got := decide(t, s, booking(n)); got.Verdict != decision.Admitted {
		t.Errorf("verdict %s after everything has expired", got.Verdict)
	}
	runtime.KeepAlive(s)
}

func TestFullStoreRefusesWhatIsNewAndServesWhatIsThere(t *testing.T) {
	s, c := open(t, Options{MaxMemory: 1 << 20})
	known := booking(0)
	hold := decide(t, s, known).Hold
	rest := s.memory.limit - s.MemoryUsed()
	s.memory.charge(rest)

	seen := *known
	seen.ID, seen.Key, seen.Capacity = "another-hold-0001", "", 99
	_, newHold := s.Decide(background, &seen)
	guard := *booking(999_998)
	guard.Pool, guard.Slot = "", ""
	_, newKey := s.Decide(background, &guard)
	bucket := *known
	bucket.ID, bucket.Key, bucket.Rule = "another-bucket-01", "", "another rule"
	_, newBucket := s.Decide(background, &bucket)
	unseen := booking(999_997)
	_, newUnseen := s.Settle(background, settlement(unseen, unseen.ID, rules.Booked))
	_, newSlot := s.Change(background, store.SlotQuery{Pool: "lessons", Slot: strings.Repeat("x", 4096), Retain: time.Hour}, store.SlotChange{})
	for what, err := range map[string]error{
		"hold": newHold, "key": newKey, "bucket": newBucket, "unseen hold": newUnseen, "slot": newSlot,
	} {
		if !isFull(err) {
			t.Errorf("a new %s: %v, want a full store", what, err)
		}
	}

	twin := *known
	twin.ID, twin.Charged = "another-twin-0001", true
	if got := decide(t, s, &twin); got.Verdict != decision.Twin {
		t.Errorf("verdict %s, want a twin", got.Verdict)
	}
	st := settlement(known, hold, rules.Booked)
	st.Answer = make([]byte, 1<<20)
	if got := settle(t, s, st); got.Hold != decision.Confirmed {
		t.Errorf("settled %+v", got)
	}
	if got := decide(t, s, &twin); got.Verdict != decision.Replay || len(got.Answer) != 0 {
		t.Errorf("verdict %s with %d bytes, want a replay without a body", got.Verdict, len(got.Answer))
	}

	if used := s.MemoryUsed(); used > s.memory.limit+1024 {
		t.Errorf("%d bytes in use of %d", used, s.memory.limit)
	}

	c.advance(2 * time.Hour)
	s.sweep()
	if used := s.MemoryUsed(); used != rest {
		t.Errorf("%d bytes in use, want %d", used, rest)
	}
	if _, err := s.Decide(background, unseen); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

func TestRefusedRequestsKeepNothing(t *testing.T) {
	s, _ := open(t, Options{})
	for i := range 1000 {
		d := booking(i)
		d.SubjectLimit, d.ClientLimit = store.Limit{}, store.Limit{}
		d.MaxPerSubject, d.Units = 0, 3
		if got := decide(t, s, d); got.Verdict != decision.OverCapacity {
			t.Fatalf("verdict %s", got.Verdict)
		}
	}
	if used := s.MemoryUsed(); used != 0 {
		t.Errorf("%d bytes in use", used)
	}
}

func TestLateCopiesAreForgottenWithoutAnyCall(t *testing.T) {
	s, c := open(t, Options{})
	for i := range 1000 {
		d := booking(i)
		d.Slot, d.Capacity, d.SlotLimit = "one", 10, store.Limit{}
		settle(t, s, settlement(d, decide(t, s, d).Hold, rules.Refused))
	}
	before := s.MemoryUsed()
	c.advance(store.CopyWindow + time.Second)
	s.sweep()
	if after := s.MemoryUsed(); after > before/4 {
		t.Errorf("%d bytes in use after the copy window, %d before", after, before)
	}
	if got := decide(t, s, booking(5)); got.Verdict != decision.Admitted {
		t.Errorf("verdict %s", got.Verdict)
	}
}
