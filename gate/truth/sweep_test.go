package truth

import (
	"context"
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

func TestASweepFindsWhatWasBookedBehindTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(5, "1"))
		p := b.pool()
		p.Start()
		p.Load(t.Context(), "1")
		b.sell("1", "ann")
		b.backend.book("1", "outside-1", "outside-2")
		time.Sleep(b.truth().Hot + p.idle())
		synctest.Wait()
		b.wantLeft("1", 2)
		if drift, debt := b.meter.gauges(); drift != 2 || debt != 0 {
			t.Errorf("drift %d, debt %d, want 2 and 0", drift, debt)
		}
		// At rest the next look changes nothing, and says so.
		time.Sleep(b.truth().Refresh + p.idle())
		synctest.Wait()
		if drift, _ := b.meter.gauges(); drift != 0 {
			t.Errorf("drift %d at rest, want 0", drift)
		}
	})
}

func TestTrafficAloneIsNoDrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(50, "1"))
		p := b.pool()
		p.Start()
		p.Load(t.Context(), "1")
		for i := range 20 {
			d, got := b.decide("1", fmt.Sprint(i))
			b.backend.book("1", d.Subject) // committed, not answered: a look sees it twice
			time.Sleep(b.truth().Hot / 3)
			b.settle(settlement(&d, &got, rules.Booked))
			synctest.Wait()
		}
		time.Sleep(2 * b.truth().Hot)
		synctest.Wait()
		if drift, _ := b.meter.gauges(); drift != 0 {
			t.Errorf("drift %d, want 0", drift)
		}
		b.wantLeft("1", 30)
	})
}

func TestDebtIsShownAndPaidBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(2, "1"))
		p := b.pool()
		p.Start()
		p.Load(t.Context(), "1")
		b.sell("1", "ann", "bea")
		b.backend.book("1", "outside-1", "outside-2", "outside-3")
		time.Sleep(b.truth().Hot + p.idle())
		synctest.Wait()
		if _, debt := b.meter.gauges(); debt != 3 {
			t.Errorf("debt %d, want 3", debt)
		}
		if s := b.slot("1"); s.Debt != 3 {
			t.Errorf("slot's debt %d, want 3", s.Debt)
		}
		for i := range 3 {
			b.backend.cancel("1", fmt.Sprintf("outside-%d", i+1))
		}
		time.Sleep(b.truth().Refresh + p.idle())
		synctest.Wait()
		if _, debt := b.meter.gauges(); debt != 0 {
			t.Errorf("debt %d after it was paid back, want 0", debt)
		}
	})
}

func TestWhatWasCancelledBehindTheGateCanBeBookedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(5, "1"))
		b.config.OnePerSubject = true
		b.truth().Lag = 2 * time.Second
		o := b.options("gate-a")
		o.Lister = b.backend
		p := b.open(o)
		p.Start()
		p.Load(t.Context(), "1")
		b.sell("1", "ann", "bea")
		time.Sleep(2 * b.truth().Hot)
		if _, got := b.decide("1", "ann"); got.Verdict != decision.SubjectHolds {
			t.Fatalf("twice: %v, want subject holds", got.Verdict)
		}
		b.backend.cancel("1", "ann") // in the backend's own console
		time.Sleep(b.truth().Refresh + p.idle() + b.truth().Lag)
		synctest.Wait()
		b.wantLeft("1", 4)
		b.sell("1", "ann")
		if _, got := b.decide("1", "bea"); got.Verdict != decision.SubjectHolds {
			t.Errorf("who did not cancel: %v, want subject holds", got.Verdict)
		}
	})
}

func TestALeaderIsFollowedWithinOneLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(5, "1"))
		store := &deafStore{Store: b.store}
		o := b.options("gate-a")
		o.Store = store
		first, second := b.open(o), b.open(b.options("gate-b"))
		first.Start()
		synctest.Wait()
		second.Start()
		time.Sleep(3 * defaultLease)
		if !first.Leads() || second.Leads() {
			t.Fatal("want the first to lead and to keep the lead")
		}
		store.deaf.Store(true) // as if it were cut off
		time.Sleep(defaultLease)
		synctest.Wait()
		if first.Leads() || !second.Leads() {
			t.Error("want the second to lead one lease later, and the first to know")
		}
		store.deaf.Store(false)
		second.Close() // resigns
		time.Sleep(defaultLease / 4)
		synctest.Wait()
		if !first.Leads() {
			t.Error("want the first to lead as soon as the second has resigned")
		}
	})
}

func TestALeaderThatLostTheLeadAppliesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(5, "1"))
		paused, second := b.pool(), b.open(b.options("gate-b"))
		paused.Load(t.Context(), "1")
		b.sell("1", "ann")

		stuck, reading := make(chan struct{}), make(chan struct{})
		var first sync.Once
		b.backend.before = func(context.Context, string) error {
			is := false
			first.Do(func() { is = true })
			if is {
				close(reading)
				<-stuck
			}
			return nil
		}
		fence, _, err := b.store.Lead(t.Context(), "lessons", "gate-a", time.Second)
		if err != nil {
			t.Fatal(err)
		}
		paused.lead.fence, paused.lead.until = fence, time.Now().Add(time.Second)
		done := make(chan struct{})
		go func() { defer close(done); paused.sweepOne(t.Context(), fence, "1") }()
		<-reading
		time.Sleep(10 * time.Second) // it stands still past its lease, with what it has read
		b.backend.book("1", "outside")
		if got := second.Load(t.Context(), "1"); got != gate.LoadDone {
			t.Fatalf("the other gate's load: %v", got)
		}
		b.wantLeft("1", 3)
		close(stuck)
		<-done
		b.wantLeft("1", 3)
		if looks := b.meter.counted(); looks[LookApplied] != 2 || looks[LookRefused] != 0 {
			t.Errorf("looks %v: the one without the lead did apply", looks)
		}
	})
}

// The arithmetic holds without the leader's own notice: its apply is refused by the
// fence of the new leader, and where that has not looked yet it does no harm.
func TestALateApplyIsRefusedByTheFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(5, "1"))
		p := b.pool()
		ctx := t.Context()
		p.Load(ctx, "1")
		time.Sleep(time.Second)
		lead := func(who string) int64 {
			fence, ok, err := b.store.Lead(ctx, "lessons", who, time.Second)
			if err != nil || !ok {
				t.Fatalf("lead: %v %v", ok, err)
			}
			return fence
		}
		late := &look{pool: p, slot: "1", fence: lead("gate-a")}
		asked, looked, err := late.begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		reading, err := late.read(ctx, asked, looked)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		b.sell("1", "ann", "bea")
		newer := &look{pool: p, slot: "1", fence: lead("gate-b")}
		p.lead.fence, p.lead.until = newer.fence, time.Now().Add(time.Minute)
		asked, looked, err = newer.begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newer.finish(ctx, asked, looked); err != nil {
			t.Fatal(err)
		}
		applied, err := b.store.Apply(ctx, &reading)
		if err != nil || applied.Applied {
			t.Errorf("applied %+v, %v: want it refused", applied, err)
		}
		b.wantLeft("1", 3)
	})
}

func TestSweepsLeaveRoomForLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(5, "1"))
		b.truth().MaxRate = rules.Rate{Count: 20, Per: time.Second}
		p := b.pool()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for range 200 { // as a sweep of many slots does
			if err := p.pace.take(ctx, inBackground); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		if got := p.Load(t.Context(), "1"); got != gate.LoadDone || time.Since(began) != 0 {
			t.Errorf("a load amid sweeps: %v after %v, want done at once", got, time.Since(began))
		}
	})
}

func TestTheTallyIsBounded(t *testing.T) {
	tl := tally{keep: time.Minute}
	now := time.Now()
	for i := range 2 * maxTallied {
		tl.add(fmt.Sprint(i), store.Applied{Applied: true, Known: true, Before: 1}, now)
	}
	m := &meter{}
	tl.show("lessons", m, now)
	if m.drift != maxTallied || len(tl.slots) != maxTallied {
		t.Errorf("drift %d of %d slots, want %d", m.drift, len(tl.slots), maxTallied)
	}
	tl.show("lessons", m, now.Add(2*time.Minute))
	if m.drift != 0 || len(tl.slots) != 0 {
		t.Errorf("drift %d of %d slots after keep, want none", m.drift, len(tl.slots))
	}
}
