package memstore

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slotgate/slotgate/gate/store"
)

// In any stretch of time no more pass than the burst and what was refilled, and a
// refused event passes exactly when it was told to come back.
func TestLimitPassesTheBurstAndTheRefill(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := store.Limit{
			Count: rapid.IntRange(1, 50).Draw(t, "count"),
			Per:   time.Duration(rapid.IntRange(1, 60).Draw(t, "per")) * time.Second,
			Burst: rapid.IntRange(1, 10).Draw(t, "burst"),
		}
		const start = int64(1_000_000_000_000)
		now, tat := start, int64(0)
		var passed []int64
		for range 100 {
			now += rapid.Int64Range(0, 2*interval(l)).Draw(t, "gap")
			next, wait := pass(l, tat, now)
			if wait == 0 {
				tat = next
				passed = append(passed, now)
				continue
			}
			if _, early := pass(l, tat, now+int64(wait)-1); early == 0 {
				t.Fatal("it passes before the time it was told")
			}
			if _, late := pass(l, tat, now+int64(wait)); late != 0 {
				t.Fatal("it does not pass at the time it was told")
			}
			if state := limitState("slot", l, tat, now); state.Remaining != 0 {
				t.Fatalf("refused with %d remaining", state.Remaining)
			}
		}
		for i, from := range passed {
			for j := i; j < len(passed); j++ {
				if most := int64(l.Burst) + (passed[j]-from)/interval(l); int64(j-i+1) > most {
					t.Fatalf("%d passed in %v, at most %d may", j-i+1, time.Duration(passed[j]-from), most)
				}
			}
		}
	})
}
