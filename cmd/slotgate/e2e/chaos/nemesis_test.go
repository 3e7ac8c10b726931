package chaos

import (
	"cmp"
	"slices"
	"time"
)

// nemesis brings a plan's faults about, in the test's own goroutine.
type nemesis struct {
	arena   *arena
	history *history
	// troubles are when faults were at work, and what they may have left behind.
	troubles []window
	// forgot: the store may have lost what it had acknowledged; restarted: and a gate
	// what it had settled.
	forgot, restarted bool
}

// aftermath is how long what a fault left may take to be put right: settlements that
// wait, slots that are looked at anew, holds of a gate that died.
const aftermath = holdTTL + 2*time.Second

// run does each fault at its time, and ends each that it began.
func (n *nemesis) run(faults []fault) {
	type event struct {
		at time.Duration
		do func()
	}
	var events []event
	for _, f := range faults {
		events = append(events, event{f.at, func() {
			began := n.history.now()
			end := deeds[f.kind](n, f)
			finish := func() {
				if end != nil {
					end()
				}
				n.troubles = append(n.troubles, window{began, n.history.now() + aftermath})
			}
			if end == nil {
				finish()
				return
			}
			events = append(events, event{f.at + f.lasts, finish})
		}})
	}
	for len(events) > 0 {
		slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
		next := events[0]
		events = events[1:]
		time.Sleep(next.at - n.history.now())
		next.do()
	}
}
