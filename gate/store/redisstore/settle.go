package redisstore

import (
	"context"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/luascripts"
)

// Settle is one atomic step after forwarding.
func (s *Store) Settle(ctx context.Context, t *store.Settle) (store.Settled, error) {
	if err := checkCall(t.Pool, t.Units, t.ID, t.Hold); err != nil {
		return store.Settled{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	names, err := s.current(ctx)
	if err != nil {
		return store.Settled{}, err
	}
	raw, err := s.run(ctx, s.encodeSettle(names, t))
	if err != nil {
		return store.Settled{}, err
	}
	return decodeSettled(raw)
}

func (s *Store) encodeSettle(n *names, t *store.Settle) *call {
	none := s.keys.None()
	slot := luascripts.SlotKeys{State: none, Due: none, Running: none, Ledger: none}
	index, attemptTombstone, holdTombstone, poolSubject, record, answer := none, none, none, none, none, none
	gated, keyed := t.Pool != "", t.Key != ""
	subject := n.subject(t.Subject)

	if keyed {
		record = s.keys.KeyRecord(n.key(t.Group, t.Partition, t.Key))
		answer = s.keys.Answer(record, t.ID)
		attemptTombstone = s.keys.KeyTombstone(record, t.ID)
	}
	if gated {
		slot = s.keys.Slot(t.Pool, t.Slot)
		index = s.keys.Index(t.Pool)
		attemptTombstone, holdTombstone = slot.Tombstone(t.ID), slot.Tombstone(t.Hold)
		poolSubject = s.keys.PoolSubject(t.Pool, subject)
	}
	return &call{op: "settle", script: luascripts.Settle, keys: []string{
		slot.State, slot.Due, slot.Running, slot.Ledger, index,
		attemptTombstone, holdTombstone, poolSubject, record, answer,
	}, args: []any{
		t.ID, t.Outcome.String(),
		flag(gated), t.Hold, t.Slot, min(t.Units, maxUnits), min(t.Capacity, maxUnits),
		millis(t.HoldTTL), life(t.Retain, t.HoldTTL, 0), t.MaxPerSubject, flag(t.KeepUnknown),
		t.ReleaseSeq, flag(t.Probe), subject, encodeText(t.Subject),
		flag(keyed), millis(t.KeyTTL), flag(t.Keep), t.Answer, n.scope(t.Scope), encodeFingerprint(t.Fingerprint),
	}}
}

func decodeSettled(raw any) (store.Settled, error) {
	r := newReply("settle", raw, 4)
	settled := store.Settled{Applied: r.flag(), Hold: r.state(), Late: r.flag(), Oversold: r.count()}
	if r.more() {
		r.fail("nothing more", r.text())
	}
	if err := r.end(); err != nil {
		return store.Settled{}, err
	}
	return settled, nil
}
