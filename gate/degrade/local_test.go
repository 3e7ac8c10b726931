package degrade

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// asks for a unit of slot 1 in an outage, and returns the verdict and the bound.
func asks(t *testing.T, l *Local, outage int64, share float64, id string) (*store.Decide, decision.Verdict, int64) {
	t.Helper()
	d := &store.Decide{ID: id, Pool: "p", Slot: "1", Units: 1, HoldTTL: time.Second, Lease: time.Second, Retain: time.Hour}
	bound := l.Question(d, outage, share)
	decided, err := l.Decide(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return d, decided.Verdict, bound
}

func sharing(t *testing.T) *Local {
	t.Helper()
	l := NewLocal()
	l.Know()
	t.Cleanup(func() { l.Close() })
	return l
}

func TestUnitsOfAShareWithoutAnAnswerAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := sharing(t)
		l.Learn("p", "1", 1)
		d, verdict, _ := asks(t, l, 1, 1, "unknown")
		if verdict != decision.Admitted {
			t.Fatal(verdict)
		}
		if _, err := l.Settle(t.Context(), &store.Settle{ID: d.ID, Hold: d.ID, Pool: d.Pool, Slot: d.Slot, Units: 1,
			HoldTTL: d.HoldTTL, Retain: d.Retain, KeepUnknown: d.KeepUnknown, Outcome: rules.Unknown}); err != nil {
			t.Fatal(err)
		}
		// Nor those of a slot where nothing happens for long, as long as they count.
		for _, later := range []time.Duration{time.Minute, 2 * localMemo} {
			time.Sleep(later)
			if _, verdict, _ = asks(t, l, 1, 1, fmt.Sprint("after ", later)); verdict == decision.Admitted {
				t.Fatalf("given away again after %v", later)
			}
		}
	})
}

func TestWhatWasLastKnownIsUsedInOneOutage(t *testing.T) {
	l := sharing(t)
	want := func(when string, outage, bound, pool int64) {
		t.Helper()
		if sum := l.Bound("p", outage, 0.5); sum != pool {
			t.Errorf("%s: the pool's bound is %d, want %d", when, sum, pool)
		}
		if _, _, got := asks(t, l, outage, 0.5, "request "+when); got != bound {
			t.Errorf("%s: bound %d, want %d", when, got, bound)
		}
	}
	want("nothing known", 1, 0, 0)
	l.Learn("p", "1", 7)
	l.Learn("p", "2", 5)
	l.Learn("other", "1", 100)
	l.Learn("p", "1", -1) // not known does not unlearn
	want("first", 1, 3, 5)
	want("again", 1, 3, 5)
	want("next outage", 2, 0, 2)
	l.Learn("p", "1", 4)
	want("learned anew", 3, 2, 4)
	known, _ := l.known.Load().GetIfPresent(slotName{"p", "1"})
	known.since = known.since.Add(-shareLife)
	want("long ago", 3, 0, 2)
}
