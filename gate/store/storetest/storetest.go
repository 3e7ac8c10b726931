package storetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// Harness is a store under test.
type Harness struct {
	// Store and Other are two gates on the same data; they may be one value.
	Store, Other store.Store
	// Advance moves the store's clock forward.
	Advance func(d time.Duration)
	// Stepwise: a call takes several steps, and others may see it between two of them.
	Stepwise bool
	// Histories is how many random ones are drawn, where it is not 0.
	Histories int
}

// Run holds a store to the contract. open returns a harness on an empty store
// and closes it through t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) *Harness) {
	runGroups(t, open, []group{
		{"key", keyTests},
		{"twin", twinTests},
		{"hold", holdTests},
		{"settle", settleTests},
		{"subject", subjectTests},
		{"slot", slotTests},
		{"mark", markTests},
		{"limit", limitTests},
		{"left", leftTests},
		{"holders", holderTests},
		{"guard", guardTests},
		{"operator", operatorTests},
		{"touch", touchTests},
		{"forced", forcedTests},
		{"write back", writeBackTests},
		{"watch", watchTests},
		{"name", nameTests},
		{"concurrent", concurrentTests},
	})
}

// RunTruth holds a store to what the contract says of truth, cancels, confirms and
// pending holds.
func RunTruth(t *testing.T, open func(t *testing.T) *Harness) {
	runGroups(t, open, []group{
		{"cancel", cancelTests},
		{"cancel copy", cancelCopyTests},
		{"pending", pendingTests},
		{"reference", referenceTests},
		{"load", loadTests},
		{"count", countTests},
		{"look", arithmeticTests},
		{"order", orderTests},
		{"failure", failureTests},
		{"total", totalTests},
		{"due", dueTests},
		{"lead", leadTests},
		{"view", viewTests},
		{"concurrent", truthConcurrentTests},
	})
}

type group struct {
	name  string
	tests []test
}

func runGroups(t *testing.T, open func(t *testing.T) *Harness, groups []group) {
	for _, group := range groups {
		t.Run(group.name, func(t *testing.T) {
			for _, tt := range group.tests {
				t.Run(tt.name, func(t *testing.T) {
					tt.run(&fixture{T: t, Harness: open(t)})
				})
			}
		})
	}
}

type test struct {
	name string
	run  func(f *fixture)
}

const (
	pool = "lessons"
	slot = "lesson-1"

	holdTTL = 60 * time.Second
	lease   = 20 * time.Second
	retain  = 24 * time.Hour
	keyTTL  = time.Hour
	// moment is what a test lets pass beyond a deadline.
	moment = 5 * time.Second
	// patience bounds how long a test waits for a wake-up that must come.
	patience = 10 * time.Second
)

// fixture drives one harness. Its calls go through the two gates in turn.
type fixture struct {
	*testing.T
	*Harness
	calls int
}

// requestIDs makes ids unique in the whole process: stores may be shared by tests.
var requestIDs atomic.Int64

func newID() string { return fmt.Sprintf("request-%08d", requestIDs.Add(1)) }

// request is a booking of one of two units by nobody in particular, without a key.
func request(change ...func(*store.Decide)) *store.Decide {
	d := &store.Decide{
		ID: newID(), Rule: "book",
		Pool: pool, Slot: slot, Units: 1,
		Capacity: 2, HoldTTL: holdTTL, Retain: retain, Lease: lease,
		Group: "book", KeyTTL: keyTTL, Scope: "alice",
	}
	for _, c := range change {
		c(d)
	}
	d.Fingerprint = fingerprint(d, "")
	return d
}

// fingerprint contains pool, slot, subject and units, as every gate's does (H19).
func fingerprint(d *store.Decide, body string) [32]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d %q", d.Pool, d.Slot, d.Subject, d.Units, body))
}

func withKey(key string) func(*store.Decide)      { return func(d *store.Decide) { d.Key = key } }
func withSubject(name string) func(*store.Decide) { return func(d *store.Decide) { d.Subject = name } }
func withCapacity(units int64) func(*store.Decide) {
	return func(d *store.Decide) { d.Capacity = units }
}
func withUnits(units int64) func(*store.Decide)  { return func(d *store.Decide) { d.Units = units } }
func withScope(scope string) func(*store.Decide) { return func(d *store.Decide) { d.Scope = scope } }
func retrying(d *store.Decide)                   { d.RetryUnknown = true }
func learned(d *store.Decide)                    { d.Capacity = store.Learned }
func onePerSubject(d *store.Decide)              { d.OnePerSubject = true }
func keepUnknown(d *store.Decide)                { d.KeepUnknown = true }
func waiting(d *store.Decide)                    { d.Wait = 30 * time.Second }

// again is the same request made anew: all but the id is equal.
func again(d *store.Decide, change ...func(*store.Decide)) *store.Decide {
	next := *d
	next.ID = newID()
	for _, c := range change {
		c(&next)
	}
	return &next
}

// gate is the next gate's store.
func (f *fixture) gate() store.Store {
	f.calls++
	if f.calls%2 == 0 {
		return f.Other
	}
	return f.Store
}

func (f *fixture) decide(d *store.Decide) store.Decided {
	f.Helper()
	got, err := f.gate().Decide(context.Background(), d)
	if err != nil {
		f.Fatalf("decide %s: %v", d.ID, err)
	}
	return got
}

// expect decides and fails unless the verdict is want.
func (f *fixture) expect(want decision.Verdict, d *store.Decide) store.Decided {
	f.Helper()
	got := f.decide(d)
	if got.Verdict != want {
		f.Fatalf("decide %s: verdict %s, want %s (%+v)", d.ID, got.Verdict, want, got)
	}
	return got
}

func (f *fixture) admit(d *store.Decide) store.Decided {
	f.Helper()
	got := f.expect(decision.Admitted, d)
	if d.Pool != "" && got.Hold == "" {
		f.Fatalf("decide %s: admitted without a hold", d.ID)
	}
	return got
}

// settlement is what the gate reports of d, which was admitted with got. Booked,
// duplicate and done are kept, as by default.
func settlement(d *store.Decide, got store.Decided, outcome rules.Outcome) *store.Settle {
	return &store.Settle{
		ID: d.ID, Hold: got.Hold, Action: d.Action, Truth: d.Truth,
		Pool: d.Pool, Slot: d.Slot, Subject: d.Subject, Units: d.Units,
		Capacity: d.Capacity, HoldTTL: d.HoldTTL, Retain: d.Retain,
		MaxPerSubject: d.MaxPerSubject, KeepUnknown: d.KeepUnknown,
		ReleaseSeq: got.ReleaseSeq, Probe: got.Probe,
		Outcome: outcome,
		Group:   d.Group, Partition: d.Partition, Key: d.Key, KeyTTL: d.KeyTTL,
		Keep:   outcome == rules.Booked || outcome == rules.Duplicate || outcome == rules.Done,
		Answer: answerOf(d.ID), Scope: d.Scope, Fingerprint: d.Fingerprint,
	}
}

func answerOf(id string) []byte { return []byte("answer of " + id) }

func (f *fixture) report(s *store.Settle) store.Settled {
	f.Helper()
	got, err := f.gate().Settle(context.Background(), s)
	if err != nil {
		f.Fatalf("settle %s %s: %v", s.ID, s.Outcome, err)
	}
	return got
}

// settle reports the outcome of an admitted request and expects it to apply.
func (f *fixture) settle(d *store.Decide, got store.Decided, outcome rules.Outcome) store.Settled {
	f.Helper()
	settled := f.report(settlement(d, got, outcome))
	if !settled.Applied {
		f.Fatalf("settle %s %s: not applied (%+v)", d.ID, outcome, settled)
	}
	return settled
}

// finish admits a request and settles it.
func (f *fixture) finish(outcome rules.Outcome, d *store.Decide) store.Decided {
	f.Helper()
	got := f.admit(d)
	f.settle(d, got, outcome)
	return got
}

// query asks for the slot of d as its pool is configured.
func query(d *store.Decide) store.SlotQuery {
	return store.SlotQuery{
		Pool: d.Pool, Slot: d.Slot, Capacity: d.Capacity, Truth: d.Truth,
		HoldTTL: d.HoldTTL, Retain: d.Retain, KeepUnknown: d.KeepUnknown, MaxPerSubject: d.MaxPerSubject, OpensAt: d.OpensAt,
	}
}

func (f *fixture) slot(d *store.Decide) store.Slot {
	f.Helper()
	got, err := f.gate().Slot(context.Background(), query(d))
	if err != nil {
		f.Fatalf("slot %q %q: %v", d.Pool, d.Slot, err)
	}
	return got
}

// units fails unless the slot of d has so many units confirmed and held.
func (f *fixture) units(d *store.Decide, confirmed, held int64) {
	f.Helper()
	got := f.slot(d)
	if got.Confirmed != confirmed || got.Held != held {
		f.Fatalf("slot has %d confirmed and %d held, want %d and %d", got.Confirmed, got.Held, confirmed, held)
	}
}

// state fails unless hold stands in the slot of d with this state; NoHold means
// that the slot does not show it.
func (f *fixture) state(d *store.Decide, hold string, want decision.HoldState) store.Hold {
	f.Helper()
	found := store.Hold{}
	for _, h := range f.slot(d).Holds {
		if h.ID == hold {
			found = h
		}
	}
	if found.State != want {
		f.Fatalf("hold %s is %q, want %q", hold, found.State, want)
	}
	return found
}

// unseen fails unless the slot of d was never seen.
func (f *fixture) unseen(d *store.Decide) {
	f.Helper()
	if got, err := f.gate().Slot(context.Background(), query(d)); !errors.Is(err, store.ErrNoSlot) {
		f.Fatalf("slot %q %q: %+v, %v; want ErrNoSlot", d.Pool, d.Slot, got, err)
	}
}

func (f *fixture) change(d *store.Decide, c store.SlotChange) store.Slot {
	f.Helper()
	got, err := f.gate().Change(context.Background(), query(d), c)
	if err != nil {
		f.Fatalf("change slot: %v", err)
	}
	return got
}

func (f *fixture) release(d *store.Decide, hold string, was decision.HoldState) {
	f.Helper()
	got, err := f.gate().Release(context.Background(), query(d), hold)
	if err != nil || got != was {
		f.Fatalf("release %s: was %q, %v; want %q", hold, got, err, was)
	}
}

// between fails unless got is in [low, high].
func (f *fixture) between(what string, got, low, high time.Duration) {
	f.Helper()
	if got < low || got > high {
		f.Fatalf("%s is %v, want %v to %v", what, got, low, high)
	}
}

func ptr[T any](v T) *T { return &v }
