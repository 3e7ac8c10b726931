package redisstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/rules"
)

// A request that goes on under the hold of its subject, under a key of its own, may die
// after any step: once the slot let it go on, its key leads to that hold.
func TestClusterGateDiesWhileItAdoptsForASubject(t *testing.T) {
	cluster := testbed.Cluster(t)
	adopted := 0
	for step := 1; ; step++ {
		w := newShardWorld(t, cluster, fmt.Sprintf("adopts-%d", step))
		d := w.request(1, "a")
		d.OnePerSubject = true
		got := w.decide(w.one, d)
		w.advance(d.Lease + time.Second) // its gate is slow
		second := *d
		second.ID, second.Key = "request-the-second", "b"
		died := w.mortal.call(step, func(ctx context.Context) {
			if got, err := w.one.Decide(ctx, &second); err != nil || !got.Adopted {
				t.Errorf("%+v, %v", got, err)
			}
		})
		went, err := w.other.client.HExists(t.Context(), w.other.keys.Slot(d.Pool, d.Slot).State, "t:"+second.ID).Result()
		if err != nil {
			t.Fatal(err)
		}
		w.settle(w.other, d, got, rules.Booked)
		w.advance(d.Lease + time.Second)
		third := second
		third.ID = "request-the-third-"
		want := decision.SubjectHolds // the second was never there
		if went {
			adopted++
			want = decision.Replay
		}
		if again := w.decide(w.other, &third); again.Verdict != want {
			t.Errorf("after step %d of %v: %s, want %s", step, w.mortal.names, again.Verdict, want)
		}
		if slot, err := w.other.Slot(t.Context(), query(d)); err != nil || slot.Confirmed != 1 || slot.Held != 0 {
			t.Errorf("after step %d: %+v, %v", step, slot, err)
		}
		left, err := w.other.client.HLen(t.Context(), w.other.keys.PoolSubject(d.Pool, w.other.secret.names.Load().subject(d.Subject))).Result()
		if err != nil || left == 0 {
			t.Errorf("after step %d the subject has nothing in the pool, %v", step, err)
		}
		if !died {
			break
		}
		if step > 20 {
			t.Fatal("the call does not end")
		}
	}
	if adopted < 2 {
		t.Errorf("the slot let it go on %d times: no step after that was tried", adopted)
	}
}
