package degrade

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/slotgate/slotgate/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func limits(slotBurst, ruleBurst, inflight int) rules.PassthroughConfig {
	return rules.PassthroughConfig{
		Slot:        rules.LimitConfig{Rate: rules.Rate{Count: 1, Per: time.Second}, Burst: slotBurst},
		Rule:        rules.LimitConfig{Rate: rules.Rate{Count: 1, Per: time.Second}, Burst: ruleBurst},
		MaxInflight: inflight,
	}
}

func enter(p *Passthrough, slot string) bool {
	leave, _, ok := p.Enter(slot)
	if ok {
		leave()
	}
	return ok
}

func TestPassthroughLimitsEachSlotAndTheRule(t *testing.T) {
	p := NewPassthrough(limits(2, 5, 10))
	defer p.Close()
	passed := 0
	for range 10 {
		if enter(p, "one") {
			passed++
		}
	}
	if passed != 2 {
		t.Fatalf("%d of one slot passed, want its burst of 2", passed)
	}
	for i := range 20 {
		if enter(p, fmt.Sprint("slot", i)) {
			passed++
		}
	}
	if passed != 5 {
		t.Fatalf("%d passed, want the rule's burst of 5", passed)
	}
	if _, wait, ok := p.Enter(""); ok || wait <= 0 || wait > time.Second {
		t.Fatalf("ok %v, retry after %v", ok, wait)
	}
}

func TestPassthroughBoundsWhatIsUnderWay(t *testing.T) {
	p := NewPassthrough(limits(100, 100, 2))
	defer p.Close()
	leave, _, _ := p.Enter("a")
	_, _, second := p.Enter("b")
	if _, _, third := p.Enter("c"); !second || third {
		t.Fatalf("second %v, third %v, want the third refused", second, third)
	}
	leave()
	if !enter(p, "c") {
		t.Fatal("refused although one left")
	}
}

func TestTakeRefillsWithTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(rules.LimitConfig{Rate: rules.Rate{Count: 5, Per: 10 * time.Second}, Burst: 1})
		if _, ok := Take(l); !ok {
			t.Fatal("a fresh bucket is full")
		}
		wait, ok := Take(l)
		if ok || wait != 2*time.Second {
			t.Fatalf("ok %v, wait %v, want 2s", ok, wait)
		}
		time.Sleep(wait)
		if _, ok := Take(l); !ok {
			t.Fatal("refused after the wait it named")
		}
	})
}
