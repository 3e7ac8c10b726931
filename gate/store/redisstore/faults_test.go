package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/luascripts"
	"github.com/slotgate/slotgate/rules"
)

// ordinary is a booking of one of two units, by a subject with all limits and a key.
func ordinary(id string) *store.Decide {
	d := booking(1)
	d.ID = id
	d.Capacity, d.MaxPerSubject = 2, 2
	d.SubjectLimit = store.Limit{Count: 1, Per: time.Hour, Burst: 3}
	d.SlotLimit = store.Limit{Count: 1, Per: time.Hour, Burst: 3}
	return d
}

type write struct {
	name    string
	script  *luascripts.Script
	prepare func(w *wire) (call func())
}

// writes are the ways in which a script changes what stands in Redis. Each prepares
// with the clear store and returns the call to be made over the wire; the call
// checks what it is told.
var writes = []write{
	{"decide, admitted", luascripts.Decide, func(w *wire) func() {
		d := ordinary("request-one-000001")
		return func() {
			got := w.decide(d, decision.Admitted)
			if got.Hold != d.ID || got.Limits != nil && got.Limits[0].Remaining != 2 {
				w.Errorf("decided %+v", got)
			}
		}
	}},
	{"decide, adopting", luascripts.Decide, func(w *wire) func() {
		first, second := ordinary("request-one-000001"), ordinary("request-two-000002")
		second.RetryUnknown = true
		got := w.decide(first, decision.Admitted)
		w.settle(first, got, rules.Unknown)
		return func() {
			if got := w.decide(second, decision.Admitted); !got.Adopted || got.Hold != first.ID {
				w.Errorf("decided %+v", got)
			}
		}
	}},
	{"decide, lapsing", luascripts.Decide, func(w *wire) func() {
		first, second := ordinary("request-one-000001"), ordinary("request-two-000002")
		first.Key, second.Key = "", ""
		w.decide(first, decision.Admitted)
		advance(time.Minute, w.store, w.clear)
		return func() { w.decide(second, decision.Admitted) }
	}},
	{"decide, refused", luascripts.Decide, func(w *wire) func() {
		first, second := ordinary("request-one-000001"), ordinary("request-two-000002")
		first.Subject, first.Key, first.Units = "another", "", 2
		w.decide(first, decision.Admitted)
		return func() { w.decide(second, decision.SoldOut) }
	}},
	{"decide, twin", luascripts.Decide, func(w *wire) func() {
		first, second := ordinary("request-one-000001"), ordinary("request-two-000002")
		second.Wait = time.Minute
		w.decide(first, decision.Admitted)
		return func() { w.decide(second, decision.Twin) }
	}},
	{"decide, guard", luascripts.Decide, func(w *wire) func() {
		d := ordinary("request-one-000001")
		d.Pool = ""
		return func() { w.decide(d, decision.Admitted) }
	}},
	{"settle, booked", luascripts.Settle, func(w *wire) func() { return w.settling(rules.Booked, decision.Confirmed) }},
	{"settle, duplicate", luascripts.Settle, func(w *wire) func() { return w.settling(rules.Duplicate, decision.Confirmed) }},
	{"settle, refused", luascripts.Settle, func(w *wire) func() { return w.settling(rules.Refused, decision.Released) }},
	{"settle, sold_out", luascripts.Settle, func(w *wire) func() { return w.settling(rules.SoldOut, decision.Released) }},
	{"settle, busy", luascripts.Settle, func(w *wire) func() { return w.settling(rules.Busy, decision.Released) }},
	{"settle, never_sent", luascripts.Settle, func(w *wire) func() { return w.settling(rules.NeverSent, decision.Released) }},
	{"settle, unknown", luascripts.Settle, func(w *wire) func() { return w.settling(rules.Unknown, decision.HoldUnknown) }},
	{"settle, late", luascripts.Settle, func(w *wire) func() {
		d := ordinary("request-one-000001")
		got := w.decide(d, decision.Admitted)
		advance(time.Minute, w.store, w.clear)
		if _, err := w.clear.Slot(context.Background(), query(d)); err != nil {
			w.Fatal(err)
		}
		return func() { w.settle(d, got, rules.Booked) }
	}},
	{"settle, unseen", luascripts.Settle, func(w *wire) func() {
		d := ordinary("request-one-000001")
		return func() { w.settle(d, store.Decided{Hold: d.ID}, rules.Booked) }
	}},
	{"settle, guard", luascripts.Settle, func(w *wire) func() {
		d := ordinary("request-one-000001")
		d.Pool = ""
		w.decide(d, decision.Admitted)
		return func() { w.settle(d, store.Decided{}, rules.Refused) }
	}},
	{"slot read, lapsing", luascripts.SlotRead, func(w *wire) func() {
		d := ordinary("request-one-000001")
		w.decide(d, decision.Admitted)
		advance(time.Minute, w.store, w.clear)
		return func() {
			if slot, err := w.store.Slot(context.Background(), query(d)); err != nil || slot.Held != 0 {
				w.Errorf("slot %+v, %v", slot, err)
			}
		}
	}},
	{"slot change", luascripts.SlotChange, func(w *wire) func() {
		d := ordinary("request-one-000001")
		w.decide(d, decision.Admitted)
		units := int64(7)
		return func() {
			slot, err := w.store.Change(context.Background(), query(d), store.SlotChange{Capacity: &units})
			if err != nil || slot.Capacity != 7 {
				w.Errorf("slot %+v, %v", slot, err)
			}
		}
	}},
	{"slot release", luascripts.SlotRelease, func(w *wire) func() {
		d := ordinary("request-one-000001")
		w.settle(d, w.decide(d, decision.Admitted), rules.Booked)
		return func() {
			if was, err := w.store.Release(context.Background(), query(d), d.ID); err != nil || was != decision.Confirmed {
				w.Errorf("release: was %s, %v", was, err)
			}
		}
	}},
	{"touch", luascripts.Touch, func(w *wire) func() {
		d := ordinary("request-one-000001")
		return func() {
			if err := touch(w.store, d, "gate-a", force(d, "")); err != nil {
				w.Error(err)
			}
		}
	}},
	{"touch, with a retry", luascripts.Touch, func(w *wire) func() {
		first, second := ordinary("request-one-000001"), ordinary("request-two-000002")
		w.settle(first, w.decide(first, decision.Admitted), rules.Unknown)
		retry := force(second, "")
		retry.Hold = first.ID
		return func() {
			if err := touch(w.store, first, "gate-a", retry); err != nil {
				w.Error(err)
			}
		}
	}},
	{"resume", luascripts.Touch, func(w *wire) func() {
		d := ordinary("request-one-000001")
		if err := touch(w.clear, d, "gate-a", force(d, "")); err != nil {
			w.Fatal(err)
		}
		return func() {
			if err := w.store.Resume(context.Background(), query(d), "gate-a"); err != nil {
				w.Error(err)
			}
		}
	}},
}

// settling admits a request and returns its settlement, which must be told that it
// applied, whatever is lost on the way: the first run's reply may be.
func (w *wire) settling(outcome rules.Outcome, want decision.HoldState) func() {
	d := ordinary("request-one-000001")
	got := w.decide(d, decision.Admitted)
	return func() {
		if settled := w.settle(d, got, outcome); settled.Hold != want {
			w.Errorf("settled %+v, want %s", settled, want)
		}
	}
}

// P3: the reply of a script is lost right after it ran; the call is made again and
// succeeds, with the effect of once.
func TestALostReplyHasTheEffectOfOnce(t *testing.T) {
	for _, tt := range slices.Concat(writes, truthWrites) {
		t.Run(tt.name, func(t *testing.T) {
			whole, cut := newWire(t), newWire(t)
			tt.prepare(whole)()
			call := tt.prepare(cut)
			before := cut.proxy.Requests("EVALSHA")
			lost := cut.proxy.CutAfter("EVALSHA "+tt.script.SHA1, 1)
			call()
			select {
			case <-lost:
			default:
				t.Fatal("no reply was lost")
			}
			if n := cut.proxy.Requests("EVALSHA") - before; n != 2 {
				t.Fatalf("the script was sent %d times, want twice", n)
			}
			if a, b := whole.picture(), cut.picture(); a != b {
				t.Errorf("with the reply lost:\n%s\nwithout:\n%s", b, a)
			}
		})
	}
}

// picture is what stands in Redis that counts: the slot with its holds, its ledger,
// the key record and the limits.
func (w *wire) picture() string {
	w.Helper()
	ctx := context.Background()
	d := ordinary("request-new-000009")
	slot, err := w.clear.Slot(ctx, query(d))
	if err != nil && !errors.Is(err, store.ErrNoSlot) {
		w.Fatal(err)
	}
	out := fmt.Sprintf("confirmed %d held %d full %d in flight %d version %d dirty %t\n", slot.Confirmed, slot.Held, slot.Full, slot.Inflight, slot.Version, slot.Dirty)
	for _, h := range slot.Holds {
		out += fmt.Sprintf("hold %s %s %d\n", h.ID, h.State, h.Units)
	}
	q := query(d)
	q.Truth = store.TruthRemaining
	slot, err = w.clear.Slot(ctx, q)
	if err != nil && !errors.Is(err, store.ErrNoSlot) {
		w.Fatal(err)
	}
	out += fmt.Sprintf("by truth %d of %d, debt %d, verified %t, looked %t\n",
		slot.Capacity-slot.Confirmed-slot.Held, slot.Capacity, slot.Debt, slot.Verified, !slot.CheckedAt.IsZero())
	cancels, err := w.clear.client.HGet(ctx, w.clear.keys.Slot(d.Pool, d.Slot).State, "c").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		w.Fatal(err)
	}
	out += fmt.Sprintf("cancels %q\n", regexp.MustCompile(`:\d{13}:[^,]*`).ReplaceAllString(cancels, ""))
	entries, err := w.clear.Ledger(ctx, d.Pool, d.Slot, 100)
	if err != nil {
		w.Fatal(err)
	}
	for _, e := range entries {
		out += fmt.Sprintf("ledger %s %s %s %s\n", e.Hold, e.From, e.To, e.Cause)
	}
	names := w.clear.secret.names.Load()
	out += fmt.Sprintf("key %v\n", readKeyRecord(w, w.clear.client, w.clear.keys.KeyRecord(names.key(d.Group, d.Partition, d.Key))))
	// What is left of the limits shows in the verdicts of those who come after.
	d.Pool, d.Key, d.SlotLimit = "", "", store.Limit{}
	for {
		got, err := w.clear.Decide(ctx, d)
		if err != nil {
			w.Fatal(err)
		}
		d.ID += "x"
		if got.Verdict != decision.Admitted {
			return out
		}
		out += fmt.Sprintf("subject limit %d left\n", got.Limits[0].Remaining)
	}
}

// P3: a copy of a call arrives after it, and after later calls.
func TestALateCopyChangesNothing(t *testing.T) {
	for _, tt := range slices.Concat(writes, truthWrites) {
		t.Run(tt.name, func(t *testing.T) {
			w := newWire(t)
			call := tt.prepare(w)
			copies := w.proxy.HoldCopy("EVALSHA " + tt.script.SHA1)
			call()
			if copies.Len() != 1 {
				t.Fatalf("%d copies held, want 1", copies.Len())
			}
			before := w.data()
			replies, err := copies.Replay(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			after := w.data()
			if afresh := regexp.MustCompile("sold_out|twin"); afresh.Match(replies[0]) {
				// A refusal of a call that was sent once is computed afresh: it may be
				// charged and registered again, but takes nothing.
				for _, data := range []map[string]string{before, after} {
					maps.DeleteFunc(data, func(key, _ string) bool { return !strings.HasPrefix(key, "slotgate:s:") })
				}
			}
			w.sameData("the copy", before, after)
		})
	}
}

// H4: both copies of a call that was sent twice may arrive late, the first of them
// after the second was refused.
func TestTheFirstCopyOfARefusedCallTakesNothing(t *testing.T) {
	w := newWire(t)
	ctx := context.Background()
	first, second := ordinary("request-one-000001"), ordinary("request-two-000002")
	first.Subject, second.Subject = "one", "two"
	first.Key, second.Key = "", ""
	first.Units = 2
	got := w.decide(first, decision.Admitted)

	// The first copy of second's call never reaches Redis for now.
	c := w.store.encodeDecide(w.store.secret.names.Load(), second, slotPart{})
	resent, err := w.clear.client.Do(ctx, w.store.command(ctx, c, true, false).Args()...).Text()
	if err != nil || !strings.HasPrefix(resent, "sold_out|") {
		t.Fatalf("%v, %v", resent, err)
	}
	w.settle(first, got, rules.Refused)
	late, err := w.clear.client.Do(ctx, w.store.command(ctx, c, false, false).Args()...).Text()
	if err != nil || !strings.HasPrefix(late, "gone|") {
		t.Fatalf("the first copy got %v, %v", late, err)
	}
	if slot, err := w.clear.Slot(ctx, query(first)); err != nil || slot.Held != 0 {
		t.Fatalf("slot %+v, %v", slot, err)
	}
	// The request itself, which still waits, may ask again.
	w.decide(second, decision.Admitted)
}

// So they may where no request had made the slot known before.
func TestTheFirstCopyOfACallRefusedBeforeItsSlotWasKnownTakesNothing(t *testing.T) {
	w := newWire(t)
	ctx := context.Background()
	early := booking(1)
	early.OpensAt = time.Now().Add(store.CopyWindow / 3)
	c := w.store.encodeDecide(w.store.secret.names.Load(), early, slotPart{})
	resent, err := w.clear.client.Do(ctx, w.store.command(ctx, c, true, false).Args()...).Text()
	if err != nil || !strings.HasPrefix(resent, "not_open|") {
		t.Fatalf("%v, %v", resent, err)
	}
	advance(store.CopyWindow/2, w.store, w.clear)
	other := booking(101) // of the same slot
	w.decide(other, decision.Admitted)
	late, err := w.clear.client.Do(ctx, w.store.command(ctx, c, false, false).Args()...).Text()
	if err != nil || !strings.HasPrefix(late, "gone|") {
		t.Fatalf("the first copy got %v, %v", late, err)
	}
}

// An id that was settled before its slot was known stays gone once another request has
// made the slot known.
func TestAnIDSettledBeforeItsSlotWasKnownStaysGone(t *testing.T) {
	s := openStore(t, testbed.Redis(t).Addr())
	d, other := booking(1), booking(101) // of the same slot
	if _, err := s.Settle(t.Context(), settling(d, store.Decided{Hold: d.ID}, rules.Refused)); err != nil {
		t.Fatal(err)
	}
	verdict(t, s, other, decision.Admitted)
	verdict(t, s, d, decision.Gone)
	advance(store.CopyWindow-time.Second, s)
	verdict(t, s, d, decision.Gone)
}

// A call sent once more after its first copy was charged is not charged again.
func TestALostReplyChargesALimitOnce(t *testing.T) {
	w := newWire(t)
	d := ordinary("request-one-000001")
	d.Capacity = 0
	d.Units = 1
	cut := w.proxy.CutAfter("EVALSHA", 1)
	got := w.decide(d, decision.SoldOut)
	<-cut
	if got.Limits[0].Name != "subject" || got.Limits[0].Remaining != 2 {
		t.Fatalf("limits %+v, want one of three charged", got.Limits)
	}
}

// The client library repeats nothing on its own.
func TestOneAttemptAndOneRetryAtMost(t *testing.T) {
	w := newWire(t, func(o *Options) { o.Timeout = 200 * time.Millisecond })
	w.proxy.DropReplies(true)
	before := w.proxy.Requests("EVALSHA")
	start := time.Now()
	_, err := w.store.Decide(context.Background(), ordinary("request-one-000001"))
	took := time.Since(start)
	var failure *store.Error
	if !errors.As(err, &failure) || failure.Kind != store.KindTimeout || !failure.Maybe {
		t.Fatalf("decide: %v", err)
	}
	if took > time.Second {
		t.Fatalf("it took %v", took)
	}
	w.proxy.DropReplies(false)
	if n := w.proxy.Requests("EVALSHA") - before; n < 1 || n > 2 {
		t.Fatalf("sent %d times", n)
	}
}
