package truth

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

// unanswered books without an answer: the hold is unknown.
func (b *bench) unanswered(slot, subject string) *probed {
	b.Helper()
	d, got := b.decide(slot, subject)
	if got.Verdict != decision.Admitted {
		b.Fatalf("%s: %v", subject, got.Verdict)
	}
	s := settlement(&d, &got, rules.Unknown)
	b.settle(s)
	(&Engine{pools: map[string]*Pool{"lessons": b.gate}}).Probe(s)
	return &probed{b, slot, got.Hold}
}

type probed struct {
	*bench
	slotName, hold string
}

func (p *probed) want(state decision.HoldState) {
	p.Helper()
	synctest.Wait()
	got := decision.NoHold
	for _, h := range p.slot(p.slotName).Holds {
		if h.ID == p.hold {
			got = h.State
		}
	}
	if got != state {
		p.Errorf("hold %v, want %v", got, state)
	}
}

func TestAProbeThatFindsTheBookingSettlesItSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(3, "1"))
		b.gate = b.pool()
		b.gate.Load(t.Context(), "1")
		made := b.unanswered("1", "ann")
		b.backend.book("1", "ann")
		time.Sleep(firstProbe)
		made.want(decision.Confirmed)

		late := b.unanswered("1", "bea")
		time.Sleep(10 * time.Second)
		late.want(decision.HoldUnknown)
		b.backend.book("1", "bea")
		time.Sleep(lastWait)
		late.want(decision.Confirmed)
		b.wantLeft("1", 1)
	})
}

func TestAProbeThatFindsNothingRefusesShortlyBeforeTheHoldLapses(t *testing.T) {
	for _, keep := range []bool{false, true} {
		t.Run(fmt.Sprintf("keep_unknown %v", keep), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, newBackend(3, "1"))
				b.config.KeepUnknown = keep
				b.truth().Lag = time.Second
				b.gate = b.pool()
				b.gate.Load(t.Context(), "1")
				lost := b.unanswered("1", "ann")
				window := b.gate.probes.window
				if !keep && window >= b.config.HoldTTL || keep && window <= b.config.HoldTTL {
					t.Errorf("window %v with hold_ttl %v", window, b.config.HoldTTL)
				}
				time.Sleep(window - time.Millisecond)
				lost.want(decision.HoldUnknown)
				time.Sleep(2 * time.Millisecond)
				lost.want(decision.NoHold)
				b.wantLeft("1", 3)
			})
		})
	}
}

func TestAProbeWaitsForASourceThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(3, "1"))
		b.gate = b.pool()
		b.gate.Load(t.Context(), "1")
		made := b.unanswered("1", "ann")
		b.backend.book("1", "ann")
		b.backend.failWith(errBackend)
		time.Sleep(10 * time.Second)
		made.want(decision.HoldUnknown)
		b.backend.failWith(nil)
		time.Sleep(lastWait)
		made.want(decision.Confirmed)
	})
}

func TestProbesAreBoundedAndTheOldestIsDropped(t *testing.T) {
	b := newBench(t, newBackend(3, "1"))
	p := newProber(b.pool(), b.backend, 0)
	for i := range maxProbes + 10 {
		p.add(&probe{at: time.Now().Add(time.Hour - time.Duration(i*7919%4096)*time.Second), settle: nil})
	}
	if len(p.due.items) != maxProbes {
		t.Fatalf("%d probes, want %d", len(p.due.items), maxProbes)
	}
	for _, item := range p.due.items {
		if item.order <= 10 {
			t.Fatalf("probe %d, one of the oldest, is still there", item.order)
		}
	}
}

func TestCloseSettlesNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(3, "1"))
		b.gate = b.pool()
		b.gate.Load(t.Context(), "1")
		made := b.unanswered("1", "ann")
		b.backend.book("1", "ann")
		b.gate.Close()
		time.Sleep(10 * time.Second)
		made.want(decision.HoldUnknown)
	})
}
