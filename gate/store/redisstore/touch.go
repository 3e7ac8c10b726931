package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/luascripts"
)

// touchBatch bounds the requests that one script registers.
const touchBatch = 64

// Touch marks a slot and registers the requests of it that are still at the
// backend.
func (s *Store) Touch(ctx context.Context, t *store.Touch) error {
	if err := checkGate(t.Gate); err != nil {
		return err
	}
	for _, f := range t.Forced {
		if f.ID == "" || f.Hold == "" {
			return fmt.Errorf("a forced request of pool %q has id %q and hold %q: it needs both", t.Query.Pool, f.ID, f.Hold)
		}
		if err := checkCall(t.Query.Pool, f.Units, f.ID, f.Hold); err != nil {
			return err
		}
	}
	// A hold is taken by its own request before retries go on under it.
	forced := slices.Clone(t.Forced)
	slices.SortStableFunc(forced, func(a, b store.Forced) int {
		return cmp.Compare(flag(a.ID != a.Hold), flag(b.ID != b.Hold))
	})
	// The mark comes with the first batch, before anybody is admitted.
	for first := 0; ; first += touchBatch {
		last := min(first+touchBatch, len(forced))
		if err := s.touch(ctx, t.Query, t.Gate, t.Lease, forced[first:last]); err != nil || last == len(forced) {
			return err
		}
	}
}

// Resume ends a gate's mark.
func (s *Store) Resume(ctx context.Context, q store.SlotQuery, gate string) error {
	if err := checkGate(gate); err != nil {
		return err
	}
	return s.touch(ctx, q, gate, 0, nil)
}

func checkGate(gate string) error {
	if gate == "" {
		return errors.New("a touch names no gate, so that its mark could not be told from others")
	}
	return checkCall("", 0, gate)
}

func (s *Store) touch(ctx context.Context, q store.SlotQuery, gate string, lease time.Duration, forced []store.Forced) error {
	ctx, timer := within(ctx, s.timeout)
	defer timer.stop()
	names, err := s.current(ctx)
	if err != nil {
		return err
	}
	c := s.encodeTouch(names, q, gate, lease, forced)
	if s.sharded() {
		return s.touchInSteps(ctx, names, c, placeOf(q, lease), forced)
	}
	raw, err := s.run(ctx, c)
	if err != nil {
		return err
	}
	r := newReply("touch", []any{raw}, 1)
	r.count()
	return r.end()
}

func (s *Store) encodeTouch(n *names, q store.SlotQuery, gate string, lease time.Duration, forced []store.Forced) *call {
	slot := s.keysOf(q.Pool, q.Slot, q.Truth)
	longest := time.Duration(0)
	for _, f := range forced {
		longest = max(longest, f.HoldTTL, f.Lease)
	}
	c := &call{op: "touch", script: luascripts.Touch,
		keys: slot.with(slot.Tombstone(s.nextCall())),
		args: []any{q.Slot, life(q.Retain, longest, lease), flag(q.KeepUnknown), gate, millis(lease), int(q.Truth)},
	}
	for _, f := range forced {
		subject := n.subject(f.Subject)
		poolSubject, record := s.none, s.none
		if !s.sharded() {
			poolSubject = s.keys.PoolSubject(q.Pool, subject)
		}
		key := ""
		if f.Key != "" {
			hash := n.key(f.Group, f.Partition, f.Key)
			key = shorten(hash)
			if !s.sharded() {
				record = s.keys.KeyRecord(hash)
			}
		}
		kind, text := s.encodeText(subjectPlace(slot.State, f.Hold), f.Subject)
		c.keys = append(c.keys, slot.Tombstone(f.ID), poolSubject, record)
		c.args = append(c.args, f.ID, f.Hold, min(f.Units, maxUnits), subject, kind+text,
			millis(f.HoldTTL), millis(f.Lease), f.MaxPerSubject, n.scope(f.Scope), encodeFingerprint(f.Fingerprint),
			key, millis(f.KeyTTL))
	}
	return c
}
