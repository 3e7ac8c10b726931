package redisstore

import (
	"context"
	"slices"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/luascripts"
)

// touchInSteps is a touch on a cluster: the slot is marked and its forced holds are taken,
// before anybody is admitted; then their keys are claimed and their pools told. One that
// fails on the way is finished by the same touch made again.
func (s *Store) touchInSteps(ctx context.Context, n *names, c *call, at place, forced []store.Forced) error {
	if err := s.enlist(ctx, at); err != nil {
		return err
	}
	raw, told, err := s.askSlot(ctx, c, at)
	if err != nil {
		return err
	}
	r := newReply("touch", raw, 1)
	r.count()
	for r.more() {
		id, hold := r.text(), r.text()
		i := slices.IndexFunc(forced, func(f store.Forced) bool { return f.ID == id })
		if i < 0 {
			r.fail("a request of the call", id)
		} else if err := s.claimForced(ctx, n, &forced[i], hold); err != nil {
			return err
		}
	}
	if err := r.end(); err != nil {
		return err
	}
	return s.carryNotes(ctx, "touch", at, told)
}

// claimForced claims the key of a request that is unanswered.
func (s *Store) claimForced(ctx context.Context, n *names, f *store.Forced, hold string) error {
	if f.Key == "" {
		return nil
	}
	record := s.keys.KeyRecord(n.key(f.Group, f.Partition, f.Key))
	_, err := s.run(ctx, &call{op: "touch", script: luascripts.ClaimForced, keys: []string{record, s.keys.KeyTombstone(record, f.ID)},
		args: []any{f.ID, hold, millis(f.Lease), millis(f.KeyTTL), n.scope(f.Scope), encodeFingerprint(f.Fingerprint)}})
	return err
}
