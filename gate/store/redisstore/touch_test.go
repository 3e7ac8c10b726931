package redisstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/luascripts"
	"github.com/slotgate/slotgate/rules"
)

// force is a request like d, with another id if a suffix is given, that went to the
// backend without a decide.
func force(d *store.Decide, suffix string) store.Forced {
	return store.Forced{
		ID: d.ID + suffix, Hold: d.ID + suffix, Subject: d.Subject, Units: d.Units, HoldTTL: d.HoldTTL, Lease: d.Lease,
		MaxPerSubject: d.MaxPerSubject, Scope: d.Scope, Fingerprint: d.Fingerprint,
		Group: d.Group, Partition: d.Partition, Key: d.Key, KeyTTL: d.KeyTTL,
	}
}

// touch marks the slot of d for a gate.
func touch(s *Store, d *store.Decide, gate string, forced ...store.Forced) error {
	return s.Touch(context.Background(), &store.Touch{Gate: gate, Query: query(d), Lease: time.Minute, Forced: forced})
}

// A late copy of a resume does not end the mark of the next outage, nor does one of
// a touch mark the slot again.
func TestALateCopyLeavesTheMarkOfTheNextOutage(t *testing.T) {
	w := newWire(t)
	d := ordinary("request-one-000001")
	copies := w.proxy.HoldCopy("EVALSHA " + luascripts.Touch.SHA1)
	dirty := func(when string, want bool) {
		t.Helper()
		if slot, err := w.clear.Slot(context.Background(), query(d)); err != nil || slot.Dirty != want {
			t.Fatalf("%s: slot %+v, %v", when, slot, err)
		}
	}
	if err := touch(w.store, d, "gate-a", force(d, "")); err != nil {
		t.Fatal(err)
	}
	if err := w.store.Resume(context.Background(), query(d), "gate-a"); err != nil {
		t.Fatal(err)
	}
	dirty("resumed", false)
	if _, err := copies.Replay(t.Context()); err != nil {
		t.Fatal(err)
	}
	dirty("after late copies of both", false)
	if err := touch(w.clear, d, "gate-a"); err != nil {
		t.Fatal(err)
	}
	if _, err := copies.Replay(t.Context()); err != nil {
		t.Fatal(err)
	}
	dirty("in the next outage", true)
	if copies.Len() != 2 {
		t.Fatalf("%d calls, want 2", copies.Len())
	}
}

// The settlement may overtake the touch: what was settled leaves a tombstone though
// the store never saw its hold.
func TestATouchAfterTheSettlementTakesNothing(t *testing.T) {
	w := newWire(t)
	for _, outcome := range []rules.Outcome{rules.Refused, rules.SoldOut, rules.Busy, rules.NeverSent, rules.Booked} {
		d := ordinary("request-one-000001")
		d.Slot, d.Group, d.Subject = outcome.String(), outcome.String(), outcome.String()
		settled := w.settle(d, store.Decided{Hold: d.ID}, outcome)
		if err := touch(w.store, d, "gate-a", force(d, "")); err != nil {
			t.Fatal(err)
		}
		slot, err := w.clear.Slot(context.Background(), query(d))
		if err != nil || slot.Held != 0 || slot.Inflight != 0 {
			t.Errorf("%s: slot %+v, %v", outcome, slot, err)
		}
		if booked := settled.Hold == decision.Confirmed; booked != (slot.Confirmed == 1) {
			t.Errorf("%s: settled %+v, slot %+v", outcome, settled, slot)
		}
	}
}

// What a touch writes lives as long as what stands in it needs, though the pool
// retains for less.
func TestATouchKeepsItsSlotForAsLongAsItsHolds(t *testing.T) {
	s := openStore(t, newWire(t).server.Addr())
	ctx := context.Background()
	d := booking(1)
	d.Retain, d.HoldTTL, d.KeyTTL = time.Second, time.Hour, time.Minute
	if err := touch(s, d, "gate-a", force(d, "")); err != nil {
		t.Fatal(err)
	}
	slot := s.keys.Slot(d.Pool, d.Slot)
	names := s.secret.names.Load()
	for key, want := range map[string]time.Duration{
		slot.State: time.Hour, slot.Due: time.Hour, slot.Ledger: time.Hour,
		s.keys.KeyRecord(names.key(d.Group, d.Partition, d.Key)): time.Minute,
	} {
		if ttl, err := s.client.PTTL(ctx, key).Result(); err != nil || ttl < want-10*time.Second || ttl > (want+store.CopyWindow)*9/8 {
			t.Errorf("%q lives for %v, %v; want %v", key, ttl, err, want)
		}
	}
}

// What could not be packed never reaches Redis.
func TestTouchesThatCannotBePacked(t *testing.T) {
	s := openStore(t, "127.0.0.1:1")
	d := booking(1)
	var failure *store.Error
	for what, change := range map[string]func(*store.Touch){
		"a gate":          func(t *store.Touch) { t.Gate = "gate:1" },
		"an id":           func(t *store.Touch) { t.Forced[0].ID = "request|000000000001" },
		"a hold":          func(t *store.Touch) { t.Forced[0].Hold = "request,000000000001" },
		"units below one": func(t *store.Touch) { t.Forced[0].Units = 0 },
		"negative units":  func(t *store.Touch) { t.Forced[0].Units = -1 },
		"no gate":         func(t *store.Touch) { t.Gate = "" },
		"no hold":         func(t *store.Touch) { t.Forced[0].Hold = "" },
	} {
		touch := &store.Touch{Gate: "gate-a", Query: query(d), Lease: time.Minute, Forced: []store.Forced{force(d, "")}}
		change(touch)
		err := s.Touch(t.Context(), touch)
		if err == nil || errors.As(err, &failure) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, gate := range []string{"", "gate:1"} {
		if err := s.Resume(t.Context(), query(d), gate); err == nil || errors.As(err, &failure) {
			t.Errorf("resume of %q: %v", gate, err)
		}
	}
}
