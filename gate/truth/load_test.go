package truth

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

func TestALoadGivesTheStoreWhatTruthHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(3, "1"))
		b.backend.book("1", "outside")
		if _, got := b.decide("1", "ann"); got.Verdict != decision.Load {
			t.Fatalf("an unseen slot: %v, want load", got.Verdict)
		}
		p := b.pool()
		if got := p.Load(t.Context(), "1"); got != gate.LoadDone {
			t.Fatalf("loaded: %v, want done", got)
		}
		b.wantLeft("1", 2)
		b.sell("1", "ann", "bea")
		if _, got := b.decide("1", "cem"); got.Verdict != decision.SoldOut {
			t.Errorf("third of two: %v, want sold out", got.Verdict)
		}
	})
}

func TestACrowdReadsTheSourceOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(3, "1"))
		reading := make(chan struct{})
		b.backend.before = func(context.Context, string) error { <-reading; return nil }
		gates := []*Pool{b.open(b.options("gate-a")), b.open(b.options("gate-b"))}
		var crowd sync.WaitGroup
		for i := range 100 {
			crowd.Go(func() {
				if got := gates[i%2].Load(context.Background(), "1"); got != gate.LoadDone {
					t.Errorf("loaded: %v, want done", got)
				}
			})
		}
		synctest.Wait() // all wait: one for the source, the rest for it
		began := time.Now()
		close(reading)
		crowd.Wait()
		if n := b.backend.readCount(); n != 1 {
			t.Errorf("%d reads of the source, want 1", n)
		}
		// The other gate heard of the apply, and did not wait for the lease to end.
		if took := time.Since(began); took != 0 {
			t.Errorf("the crowd waited %v after the read", took)
		}
	})
}

func TestASlotThatTruthDoesNotHaveIsRememberedForHot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(3))
		p := b.pool()
		for range 5 {
			if got := p.Load(t.Context(), "nope"); got != gate.LoadMissing {
				t.Fatalf("loaded: %v, want missing", got)
			}
		}
		if n := b.backend.readCount(); n != 1 {
			t.Errorf("%d reads, want 1", n)
		}
		if _, err := b.store.Slot(t.Context(), b.query("nope")); err != store.ErrNoSlot {
			t.Errorf("slot: %v, want that none was made", err)
		}
		b.backend.setTotal("nope", 1)
		time.Sleep(b.truth().Hot)
		if got := p.Load(t.Context(), "nope"); got != gate.LoadDone {
			t.Errorf("after hot: %v, want done", got)
		}
	})
}

func TestMissingSlotsAreBounded(t *testing.T) {
	m := missing{keep: time.Minute}
	now := time.Now()
	for i := range 2*maxMissing + 1 {
		m.add(fmt.Sprint(i), now)
		m.add(fmt.Sprint(i), now)
	}
	if len(m.until) != maxMissing || len(m.order) != maxMissing {
		t.Fatalf("%d and %d remembered, want %d", len(m.until), len(m.order), maxMissing)
	}
	if m.has("0", now) || !m.has(fmt.Sprint(2*maxMissing), now) {
		t.Error("want the newest remembered, the oldest forgotten")
	}
	if m.has(fmt.Sprint(2*maxMissing), now.Add(time.Minute)) {
		t.Error("remembered for longer than keep")
	}
}

func TestASourceThatFailsLeavesTheSlotLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(3, "1"))
		b.backend.failWith(errBackend)
		p := b.pool()
		if got := p.Load(t.Context(), "1"); got != gate.LoadFailed {
			t.Fatalf("loaded: %v, want failed", got)
		}
		if s := b.slot("1"); s.Capacity != store.Learned || !s.LookFailed {
			t.Errorf("slot %+v, want learned", s)
		}
		if n := b.meter.counted()[LookFailed]; n != 1 {
			t.Errorf("%d failures counted, want 1", n)
		}
		time.Sleep(time.Minute) // a failed look is believed for `hot`
		b.backend.failWith(nil)
		if got := p.Load(t.Context(), "1"); got != gate.LoadDone {
			t.Fatalf("loaded: %v, want done", got)
		}
		b.wantLeft("1", 3)
	})
}

func TestASlowSourceCostsItsTimeoutAndThenNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(3, "1"))
		b.backend.before = func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
		p := b.pool()
		for i := range breakerFailures {
			began := time.Now()
			if got := p.Load(t.Context(), fmt.Sprint(i)); got != gate.LoadFailed {
				t.Fatalf("loaded: %v, want failed", got)
			}
			if took := time.Since(began); took != b.truth().Timeout {
				t.Errorf("load %d took %v, want the timeout", i, took)
			}
		}
		began := time.Now()
		if got := p.Load(t.Context(), "x"); got != gate.LoadFailed || time.Since(began) != 0 {
			t.Errorf("with an open breaker: %v after %v, want failed at once", got, time.Since(began))
		}
		// A client's nonsense that the database refuses does not open it again.
		b.backend.before = nil
		b.backend.failWith(errBackend)
		time.Sleep(2 * breakerOpenFor)
		for i := range 2 * breakerFailures {
			p.Load(t.Context(), fmt.Sprint("nonsense ", i))
		}
		b.backend.failWith(nil)
		if got := p.Load(t.Context(), "1"); got != gate.LoadDone {
			t.Errorf("loaded: %v, want done", got)
		}
	})
}

func TestLoadsOfAllGatesStayWithinMaxRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := make([]string, 300)
		for i := range slots {
			slots[i] = fmt.Sprint(i)
		}
		b := newBench(t, newBackend(3, slots...))
		b.truth().MaxRate = rules.Rate{Count: 20, Per: time.Second}
		gates := []*Pool{b.open(b.options("gate-a")), b.open(b.options("gate-b")), b.open(b.options("gate-c"))}
		began := time.Now()
		var wait sync.WaitGroup
		for i, slot := range slots {
			wait.Go(func() { gates[i%3].Load(t.Context(), slot) })
		}
		wait.Wait()
		// A burst of one period, then the rate, for as long as a load waits.
		if n, most := b.backend.readCount(), 20+20*int(b.truth().Timeout/time.Second); n > most || n < most-5 {
			t.Errorf("%d reads in %v, want at most %d and nearly as many", n, time.Since(began), most)
		}
		if n := b.meter.counted()[LookPaced]; n == 0 {
			t.Error("no load was counted as paced")
		}
	})
}

func TestALoadEndsWithItsCallerAndWithThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(3, "1"))
		reading := make(chan struct{})
		b.backend.before = func(ctx context.Context, _ string) error {
			select {
			case <-reading:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		p := b.pool()
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan gate.Loaded)
		go func() { left <- p.Load(ctx, "1") }()
		synctest.Wait()
		leave()
		if got := <-left; got != gate.LoadFailed {
			t.Errorf("whoever left: %v, want failed", got)
		}
		stayed := make(chan gate.Loaded)
		go func() { stayed <- p.Load(context.Background(), "1") }()
		synctest.Wait()
		p.Close()
		if got := <-stayed; got != gate.LoadFailed {
			t.Errorf("at close: %v, want failed", got)
		}
		p.Close()
		if got := p.Load(context.Background(), "1"); got != gate.LoadFailed {
			t.Errorf("after close: %v, want failed", got)
		}
		// Our own closing is no failure of the source.
		if _, err := b.store.Slot(context.Background(), b.query("1")); err != store.ErrNoSlot {
			t.Errorf("slot: %v, want none", err)
		}
	})
}

func TestAResyncLooksNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(3, "1"))
		p := b.pool()
		p.Load(t.Context(), "1")
		p.Load(t.Context(), "2")
		b.backend.setTotal("1", 9)
		b.backend.setTotal("2", 4)
		time.Sleep(time.Second)
		// Somebody else's lease is not waited for.
		other := &look{pool: p, slot: "1"}
		if _, looked, err := other.begin(t.Context()); err != nil || looked.Busy > 0 {
			t.Fatal(looked, err)
		}
		for _, slot := range []string{"1", "2"} {
			if err := p.Resync(t.Context(), slot); err != nil {
				t.Errorf("resync of %s: %v", slot, err)
			}
		}
		b.wantLeft("1", 9)
		b.wantLeft("2", 4)
		if got := p.Load(t.Context(), "2"); got != gate.LoadDone {
			t.Errorf("a slot that is there by now: %v, want done", got)
		}
		if err := p.Resync(t.Context(), "3"); err != store.ErrNoSlot {
			t.Errorf("missing: %v, want %v", err, store.ErrNoSlot)
		}
		b.backend.failWith(errBackend)
		if err := p.Resync(t.Context(), "1"); !errors.Is(err, errBackend) {
			t.Errorf("failing: %v, want %v", err, errBackend)
		}
	})
}

// Whoever asked and left says nothing of the source.
func TestACancelledLookIsNoFailureOfTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(3, "1"))
		p := b.pool()
		p.Load(t.Context(), "1")
		time.Sleep(time.Second)
		b.backend.before = func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
		ctx, leave := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Resync(ctx, "1") }()
		synctest.Wait()
		leave()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if s := b.slot("1"); s.LookFailed {
			t.Error("the slot is doubted")
		}
	})
}
