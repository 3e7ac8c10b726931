package redisstore

import (
	"context"
	"errors"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/luascripts"
)

// Settle is one atomic step after forwarding.
func (s *Store) Settle(ctx context.Context, t *store.Settle) (store.Settled, error) {
	if err := checkCall(t.Pool, unitsOf(t.Action, t.Units), t.ID, t.Hold); err != nil {
		return store.Settled{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	names, err := s.current(ctx)
	if err != nil {
		return store.Settled{}, err
	}
	whose := names.subject(t.Subject)
	if t.Action != store.Book && t.Hold != "" && t.MaxPerSubject > 0 {
		// The script must be told the key of the subject's units in the pool, and the
		// subject is the hold's.
		if h, err := s.readHold(ctx, "settle", t.Pool, t.Slot, t.Hold); err == nil {
			whose = h.subjectHash
		} else if !errors.Is(err, store.ErrNoHold) {
			return store.Settled{}, err
		}
	}
	if s.sharded() {
		return s.settleInSteps(ctx, names, t, whose)
	}
	raw, err := s.run(ctx, s.encodeSettle(names, t, whose, ""))
	if err != nil {
		return store.Settled{}, err
	}
	return decodeSettled(raw)
}

// encodeSettle makes the call; subject is the hash of the hold's subject, key a short one
// where the key itself is on another shard.
func (s *Store) encodeSettle(n *names, t *store.Settle, subject, key string) *call {
	none := s.keys.None()
	slot := s.noSlot()
	attemptTombstone, holdTombstone, poolSubject, record, answer, reference := none, none, none, none, none, none
	gated, keyed := t.Pool != "", t.Key != ""

	if keyed {
		hash := n.key(t.Group, t.Partition, t.Key)
		key, record = shorten(hash), s.keys.KeyRecord(hash)
		answer = s.keys.Answer(record, t.ID)
		attemptTombstone = s.keys.KeyTombstone(record, t.ID)
	}
	if gated {
		slot = s.keysOf(t.Pool, t.Slot, t.Truth)
		attemptTombstone, holdTombstone = slot.Tombstone(t.ID), slot.Tombstone(t.Hold)
		if !s.sharded() {
			poolSubject = s.keys.PoolSubject(t.Pool, subject)
		}
	}
	calledBy := ""
	if gated && t.Reference != "" {
		calledBy = s.encodeText(referencePlace(slot.State, t.Hold), t.Reference)
		if !s.sharded() {
			reference = s.keys.Reference(n.reference(t.Pool, t.Reference))
		}
	}
	return &call{op: "settle", script: luascripts.Settle, keys: slot.with(
		attemptTombstone, holdTombstone, poolSubject, record, answer, reference,
	), args: []any{
		t.ID, t.Outcome.String(),
		flag(gated), t.Hold, t.Slot, min(t.Units, maxUnits), min(t.Capacity, maxUnits),
		millis(t.HoldTTL), life(t.Retain, max(t.HoldTTL, t.PendingTTL), 0), t.MaxPerSubject, flag(t.KeepUnknown),
		t.ReleaseSeq, flag(t.Probe), subject, s.encodeText(subjectPlace(slot.State, t.Hold), t.Subject),
		flag(keyed), millis(t.KeyTTL), flag(t.Keep), s.sealAnswer(record, t.Answer), n.scope(t.Scope), encodeFingerprint(t.Fingerprint),
		int(t.Action), int(t.Truth), millis(t.PendingTTL), calledBy, key,
	}}
}

func decodeSettled(raw any) (store.Settled, error) {
	r := newReply("settle", raw, 5)
	settled := store.Settled{Applied: r.flag(), Hold: r.state(), Late: r.flag(), Oversold: r.count(), Look: r.flag()}
	if r.more() {
		r.fail("nothing more", r.text())
	}
	if err := r.end(); err != nil {
		return store.Settled{}, err
	}
	return settled, nil
}
