package redisstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// persist makes a call again, with the same id, as long as both its replies are
// lost.
func persist(t *testing.T, call func() error) {
	var err error
	for range 10 {
		if err = call(); err == nil {
			return
		}
		var failure *store.Error
		if !errors.As(err, &failure) || failure.Kind != store.KindConnection || !failure.Maybe {
			break
		}
	}
	t.Error(err)
}

// Units are counted once though every reply may be lost, and nothing is oversold.
func TestAStormWithLostReplies(t *testing.T) {
	const seats, clients, each = 20, 64, 8
	w := newWire(t)
	other := openStore(t, w.proxy.Addr())
	var booked, next atomic.Int64
	done := make(chan struct{})
	var cutter sync.WaitGroup
	cutter.Go(func() {
		for {
			cut := w.proxy.CutAfter("EVALSHA", 7)
			select {
			case <-cut:
			case <-done:
				return
			}
		}
	})
	var wg sync.WaitGroup
	for i := range clients {
		gate := w.store
		if i%2 == 1 {
			gate = other
		}
		wg.Go(func() {
			for range each {
				n := next.Add(1)
				d := booking(n)
				d.Slot, d.Capacity = "one", seats
				var got store.Decided
				persist(t, func() (err error) { got, err = gate.Decide(context.Background(), d); return err })
				if got.Verdict != decision.Admitted {
					continue
				}
				outcome := rules.Booked
				if n%3 == 0 {
					outcome = rules.Refused
				}
				persist(t, func() error {
					_, err := gate.Settle(context.Background(), settling(d, got, outcome))
					return err
				})
				if outcome == rules.Booked {
					booked.Add(1)
				}
			}
		})
	}
	wg.Wait()
	close(done)
	cutter.Wait()
	slot, err := w.clear.Slot(context.Background(), store.SlotQuery{Pool: "lessons", Slot: "one", Capacity: seats, Retain: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if slot.Confirmed != booked.Load() || slot.Held != 0 || slot.Confirmed != seats {
		t.Errorf("%d booked, %d confirmed and %d held of %d", booked.Load(), slot.Confirmed, slot.Held, seats)
	}
}

// A script cache that is lost, again and again, costs no request.
func TestScriptFlushUnderLoad(t *testing.T) {
	w := newWire(t)
	ctx, stop := context.WithCancel(context.Background())
	var flusher, wg sync.WaitGroup
	flushes := 0
	flusher.Go(func() {
		for ctx.Err() == nil {
			if err := w.clear.client.ScriptFlush(context.Background()).Err(); err != nil {
				t.Error(err)
			}
			flushes++
		}
	})
	var next atomic.Int64
	for range 16 {
		wg.Go(func() {
			for range 50 {
				d := booking(next.Add(1))
				got, err := w.store.Decide(context.Background(), d)
				if err != nil || got.Verdict != decision.Admitted {
					t.Errorf("decide: %s, %v", got.Verdict, err)
					return
				}
				if _, err := w.store.Settle(context.Background(), settling(d, got, rules.Booked)); err != nil {
					t.Errorf("settle: %v", err)
				}
				if _, err := w.store.Slot(context.Background(), query(d)); err != nil {
					t.Errorf("slot: %v", err)
				}
			}
		})
	}
	wg.Wait()
	stop()
	flusher.Wait()
	if _, _, err := w.store.Slots(context.Background(), store.SlotQuery{Pool: "lessons", Retain: time.Hour}, "", 100); err != nil {
		t.Errorf("slots: %v", err)
	}
	if w.proxy.Requests("EVAL") == 0 || flushes == 0 {
		t.Error("no script was ever unknown")
	}
}
