package redisstore

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/luascripts"
	"github.com/slotgate/slotgate/rules"
)

// A ledger may be shipped long after what it tells of, when the pool remembers nothing of
// it any more: a booking that is no more must not count again, not even until the next
// step, after which the gate may die.
func TestClusterALateLedgerBringsNoBookingBack(t *testing.T) {
	cluster := testbed.Cluster(t)
	for name, end := range map[string]func(w *shardWorld, d *store.Decide, hold string){
		"released": func(w *shardWorld, d *store.Decide, hold string) {
			if _, err := w.one.Release(context.Background(), query(d), hold); err != nil {
				w.Fatal(err)
			}
		},
		// Its first attempt is unanswered, so that the cancel leaves it unknown (H8).
		"cancelled and lapsed": func(w *shardWorld, d *store.Decide, _ string) {
			c := cancelling(d, "cancel-of-"+d.ID, store.Cancel)
			if settled := w.settle(w.one, c, w.decide(w.one, c), rules.Done); settled.Hold != decision.HoldUnknown {
				w.Fatalf("the cancel leaves it %s, want unknown", settled.Hold)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for step, died := 1, true; died; step++ {
				w := newShardWorld(t, cluster, fmt.Sprint(name[:8], step))
				atRest(w.one, w.other)
				first, second := w.request(1, "a"), w.request(2, "a")
				first.MaxPerSubject, second.MaxPerSubject = 1, 1
				w.settle(w.one, first, w.decide(w.one, first), rules.Unknown)
				got := w.decide(w.one, second)
				w.settle(w.one, second, got, rules.Booked)
				end(w, second, got.Hold)
				w.advance(2 * time.Minute)
				w.safe() // what is due lapses

				at := place{pool: first.Pool, slot: first.Slot, retain: life(first.Retain, first.HoldTTL, first.Lease), counts: true}
				died = w.mortal.call(step, func(ctx context.Context) {
					if err := w.one.ship(ctx, at); err != nil {
						t.Error(err)
					}
				})
				next := w.request(3, "b")
				next.Subject, next.MaxPerSubject, next.Slot = first.Subject, 1, "another"
				if got := w.decide(w.other, next); got.Verdict != decision.Admitted {
					t.Errorf("after %d steps of the shipment (it died: %t): %s, want admitted", step, died, got.Verdict)
				}
				if step > 20 {
					t.Fatal("the shipment does not end")
				}
			}
		})
	}
}

// A booking whose gate died counts in the pool as long as it stands, though its ledger is
// shipped by a gate that has only looked at the slot.
func TestClusterWhoOnlyLookedTellsThePool(t *testing.T) {
	w := newShardWorld(t, testbed.Cluster(t), "looked")
	atRest(w.one, w.other)
	d := w.request(1, "a")
	d.MaxPerSubject = 1
	got := w.decide(w.one, d)
	if !w.mortal.call(1, func(ctx context.Context) { _, _ = w.one.Settle(ctx, settling(d, got, w.forward(d))) }) || !w.confirmed(d) {
		t.Fatal("the gate did not die right after the slot's part")
	}
	w.advance(d.HoldTTL + time.Second)
	swept := newSweeps()
	w.other.clerk.add(placeOf(query(d), 0), news{entries: true})
	w.other.shipLedgers(t.Context(), &swept)
	next := w.request(2, "b")
	next.Subject, next.MaxPerSubject, next.Slot = d.Subject, 1, "another"
	if got := w.decide(w.other, next); got.Verdict != decision.SubjectFull {
		t.Errorf("%s, want subject_full", got.Verdict)
	}
}

// deaf has the first attempts at a script run, and their replies lost.
type deaf struct{ script *luascripts.Script }

func (h deaf) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h deaf) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h deaf) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if args := cmd.Args(); err == nil && len(args) > 1 && (args[1] == h.script.SHA1 || args[1] == h.script.Source) {
			err = io.EOF
			cmd.SetErr(err)
		}
		return err
	}
}

// A reservation whose reply was lost is made again, and given back like any other when the
// slot refuses.
func TestClusterAReservationMadeTwiceIsGivenBack(t *testing.T) {
	w := newShardWorld(t, testbed.Cluster(t), "reserved-twice")
	atRest(w.one, w.other)
	w.decide(w.other, w.request(1, "b")) // the unit
	w.one.client.AddHook(deaf{luascripts.Reserve})
	for n, s := range []*Store{w.one, w.other} {
		d := w.request(2+n, "a")
		d.MaxPerSubject = 1
		if got := w.decide(s, d); got.Verdict != decision.SoldOut {
			t.Errorf("request %d: %s, want sold_out", n+1, got.Verdict)
		}
	}
}
