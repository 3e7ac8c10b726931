package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// Calls that end in every way are made of each other's memory, and yet each slot, key and
// answer has what its own request said.
func TestWhateverEndsACallNoneSaysWhatAnotherDid(t *testing.T) {
	const callers, long = 64, time.Second
	w := newWire(t, func(o *Options) { o.Timeout = 300 * time.Millisecond })
	ctx, stop := context.WithTimeout(t.Context(), long)
	defer stop()
	var chaos, all sync.WaitGroup
	chaos.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-w.proxy.CutAfter("EVALSHA", 397):
			case <-ctx.Done():
			}
		}
	})
	chaos.Go(func() {
		for ctx.Err() == nil {
			time.Sleep(rand.N(100 * time.Millisecond))
			w.proxy.Freeze()
			time.Sleep(rand.N(150 * time.Millisecond))
			w.proxy.Thaw()
			_ = w.clear.client.ScriptFlush(context.Background()).Err()
		}
	})
	own := func(n int64) *store.Decide {
		d := booking(n)
		d.Slot, d.Scope, d.SlotLimit = fmt.Sprint("lesson-of-", n), fmt.Sprint("caller-", n), store.Limit{}
		return d
	}
	var next, replayed, failed atomic.Int64
	for range callers {
		all.Go(func() {
			for ctx.Err() == nil {
				n := next.Add(1)
				d := own(n)
				asking, leave := t.Context(), func() {}
				if n%3 == 0 {
					asking, leave = context.WithTimeout(t.Context(), rand.N(20*time.Millisecond))
				}
				got, err := w.store.Decide(asking, d)
				leave()
				if err != nil {
					failed.Add(1)
					continue
				}
				if got.Verdict != decision.Admitted || got.Hold != d.ID {
					t.Errorf("%s: %s, hold %q", d.ID, got.Verdict, got.Hold)
					return
				}
				s := settling(d, got, rules.Booked)
				if n%5 == 0 {
					s.Answer = append(s.Answer, make([]byte, 8<<10)...)
				}
				if _, err := w.store.Settle(t.Context(), s); err != nil {
					failed.Add(1)
					continue
				}
				again := own(n)
				again.ID = fmt.Sprintf("another-%012d", n)
				if got, err = w.store.Decide(t.Context(), again); err != nil {
					failed.Add(1)
					continue
				}
				if got.Verdict != decision.Replay || string(got.Answer) != string(s.Answer) {
					t.Errorf("%s: %s, answer %.40q", d.ID, got.Verdict, got.Answer)
					return
				}
				replayed.Add(1)
			}
		})
	}
	all.Wait()
	stop()
	chaos.Wait()
	for n := range next.Load() + 1 {
		d := own(n)
		slot, err := w.clear.Slot(t.Context(), query(d))
		for _, h := range slot.Holds {
			if h.ID != d.ID || h.Subject != d.Subject {
				t.Errorf("%s has %+v", d.Slot, h)
			}
		}
		if len(slot.Holds) > 1 || err != nil && !errors.Is(err, store.ErrNoSlot) {
			t.Errorf("%s: %+v, %v", d.Slot, slot, err)
		}
	}
	if replayed.Load() == 0 || failed.Load() == 0 {
		t.Errorf("%d requests went well, %d had a call that failed", replayed.Load(), failed.Load())
	}
}
