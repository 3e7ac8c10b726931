package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// fired waits for a watch longer than any working one takes.
func fired(t *testing.T, what string, w store.Watch) {
	t.Helper()
	select {
	case <-w.C():
	case <-time.After(10 * time.Second):
		t.Fatalf("%s: the watch did not fire", what)
	}
}

// subscribed returns when the store hears notices.
func subscribed(t *testing.T, w *wire, gates int64) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		listeners, err := w.clear.client.PubSubNumSub(context.Background(), w.clear.keys.Channel()).Result()
		if err != nil {
			t.Fatal(err)
		}
		if listeners[w.clear.keys.Channel()] >= gates {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the store does not listen")
		}
	}
}

// A lost connection may have lost notices: all watches fire when it is back, and
// hear what comes then.
func TestNoticesAfterAReconnect(t *testing.T) {
	w := newWire(t)
	ctx := context.Background()
	subscribed(t, w, 2)
	d := booking(1)
	got := w.decide(d, decision.Admitted)
	twin := *d
	twin.ID, twin.Wait = "request-the-twin", time.Minute
	w.decide(&twin, decision.Twin)

	key, slot := w.store.WatchKey(&twin), w.store.WatchSlot(d.Pool, d.Slot)
	defer key.Close()
	defer slot.Close()
	w.proxy.Refuse(true)
	w.proxy.Sever()
	settled, err := w.clear.Settle(ctx, settling(d, got, rules.Booked)) // nobody hears of it
	if err != nil || !settled.Applied {
		t.Fatalf("%+v, %v", settled, err)
	}
	w.proxy.Refuse(false)
	fired(t, "key, after the reconnect", key)
	fired(t, "slot, after the reconnect", slot)

	subscribed(t, w, 2)
	if _, err := w.clear.Change(ctx, query(d), store.SlotChange{}); err != nil {
		t.Fatal(err)
	}
	fired(t, "slot, afterwards", slot)
}

// Where nobody waits, nothing is said.
func TestNoNoticeWithoutAWaiter(t *testing.T) {
	w := newWire(t)
	ctx := context.Background()
	subscription := w.clear.client.Subscribe(ctx, w.clear.keys.Channel())
	defer subscription.Close()
	if _, err := subscription.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	silent, heard := booking(1), booking(2)
	w.settle(silent, w.decide(silent, decision.Admitted), rules.Booked)
	got := w.decide(heard, decision.Admitted)
	twin := *heard
	twin.ID, twin.Wait = "request-the-twin", time.Minute
	w.decide(&twin, decision.Twin)
	w.settle(heard, got, rules.Booked)

	message, err := subscription.ReceiveMessage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	names := w.clear.secret.names.Load()
	if want := w.clear.keys.KeyRecord(names.key(heard.Group, heard.Partition, heard.Key)); message.Payload != want {
		t.Errorf("the first notice is of %q, want %q", message.Payload, want)
	}
}

// Closed watches are forgotten, and a slow reader costs one hint.
func TestWatchesAreForgotten(t *testing.T) {
	w := newWatches()
	one, other := w.add("a"), w.add("a")
	for range 100 {
		w.fire("a")
	}
	<-one.C()
	select {
	case <-one.C():
		t.Error("a hundred notices are more than one hint")
	default:
	}
	one.Close()
	other.Close()
	other.Close()
	if len(w.byName) != 0 {
		t.Errorf("%d names are still watched", len(w.byName))
	}
}

// What an operator did through this process its own watches have heard when the call
// returns: the very next request must not be answered from before.
func TestAnOperatorIsHeardAtOnce(t *testing.T) {
	w := newWire(t)
	d := booking(1)
	w.decide(d, decision.Admitted)
	q := store.SlotQuery{Pool: d.Pool, Slot: d.Slot, Capacity: d.Capacity, HoldTTL: d.HoldTTL, Retain: d.Retain}
	two := int64(2)
	for what, do := range map[string]func() error{
		"change":  func() error { _, err := w.store.Change(t.Context(), q, store.SlotChange{Capacity: &two}); return err },
		"release": func() error { _, err := w.store.Release(t.Context(), q, d.ID); return err },
	} {
		watch := w.store.WatchSlot(d.Pool, d.Slot)
		if err := do(); err != nil {
			t.Fatal(what, err)
		}
		select {
		case <-watch.C():
		default:
			t.Errorf("%s: not heard", what)
		}
		watch.Close()
	}
}
