package truth

import (
	"sync"
	"time"

	"github.com/slotgate/slotgate/gate/store"
)

// maxTallied bounds the slots of a pool whose drift or debt is kept.
const maxTallied = 8192

// tally is what the last look of each slot found wrong, for keep after it: by how
// many units the counters were off, and by how many the slot is oversold. Slots that
// were right are not in it.
//
// A look while units are open is short by some of them, and the next one takes that
// back. So drift is the sum of the changes from one look that nothing was open at to
// the next such look: of traffic nothing is left of it.
type tally struct {
	keep time.Duration

	mu    sync.Mutex
	slots map[string]tallied
}

type tallied struct {
	at    time.Time
	short int64 // what looks with open units changed since the last without
	drift int64 // at the last look without open units
	debt  int64
}

// add takes one applied look. drift is by what the counters were off where that can
// be told now; worse reports that the slot is oversold, and by more than before.
func (t *tally) add(slot string, a store.Applied, now time.Time) (drift int64, worse bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.slots[slot]
	is := tallied{at: now, short: was.short, drift: was.drift, debt: was.debt}
	if a.Known {
		is.short += a.After - a.Before
	}
	if !a.Again {
		is.drift, is.short, is.debt = is.short, 0, max(0, -a.After)
		drift = is.drift
	}
	t.put(slot, is)
	return drift, is.debt > was.debt
}

func (t *tally) put(slot string, is tallied) {
	if is.short == 0 && is.drift == 0 && is.debt == 0 {
		delete(t.slots, slot)
		return
	}
	if t.slots == nil {
		t.slots = map[string]tallied{}
	}
	if _, known := t.slots[slot]; !known && len(t.slots) >= maxTallied {
		return // the figures say at least so much
	}
	t.slots[slot] = is
}

func (t *tally) forget(now time.Time) {
	for slot, s := range t.slots {
		if now.Sub(s.at) > t.keep {
			delete(t.slots, slot)
		}
	}
}

// show gives the meter the sums over the slots looked at within keep.
func (t *tally) show(pool string, m Meter, now time.Time) {
	var drift, debt int64
	t.mu.Lock()
	t.forget(now)
	for _, s := range t.slots {
		drift += max(s.drift, -s.drift)
		debt += s.debt
	}
	t.mu.Unlock()
	m.Drift(pool, drift)
	m.Debt(pool, debt)
}

// reset forgets everything.
func (t *tally) reset(pool string, m Meter) {
	t.mu.Lock()
	t.slots = nil
	t.mu.Unlock()
	m.Drift(pool, 0)
	m.Debt(pool, 0)
}
