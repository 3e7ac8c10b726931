package redisstore

import (
	"context"
	"slices"
	"sync"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/luascripts"
)

// touchInSteps is a touch on a cluster: the slot is marked and its forced holds are taken,
// before anybody is admitted; then their keys are claimed and their pools told. One that
// fails on the way is finished by the same touch made again: that of this gate, for the
// requests are its own.
func (s *Store) touchInSteps(ctx context.Context, n *names, c *call, at place, forced []store.Forced) error {
	if err := s.enlist(ctx, at); err != nil {
		return err
	}
	raw, told, err := s.askSlot(ctx, c, at)
	if err != nil {
		return err
	}
	again := c.resent || s.unclaimed.has(forced)
	err = s.claimAllForced(ctx, n, raw, forced, again)
	if err == nil {
		err = s.carryNotes(ctx, "touch", at, told)
	}
	s.unclaimed.note(forced, err != nil)
	return err
}

// claimAllForced claims the keys of the requests that the slot has told are unanswered:
// of those that it has registered just now, or again of all.
func (s *Store) claimAllForced(ctx context.Context, n *names, raw any, forced []store.Forced, again bool) error {
	r := newReply("touch", raw, 1)
	r.count()
	for r.more() {
		id, hold, registered := r.text(), r.text(), r.flag()
		i := slices.IndexFunc(forced, func(f store.Forced) bool { return f.ID == id })
		if i < 0 {
			r.fail("a request of the call", id)
		} else if registered || again {
			if err := s.claimForced(ctx, n, &forced[i], hold); err != nil {
				return err
			}
		}
	}
	return r.end()
}

// unclaimed are the forced requests of touches that failed after the slot's part.
type unclaimed struct {
	mu  sync.Mutex
	ids map[string]bool
}

// has reports whether any of the requests is one.
func (u *unclaimed) has(forced []store.Forced) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.ContainsFunc(forced, func(f store.Forced) bool { return u.ids[f.ID] })
}

func (u *unclaimed) note(forced []store.Forced, failed bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, f := range forced {
		if !failed {
			delete(u.ids, f.ID)
		} else if len(u.ids) < clerkBacklog {
			if u.ids == nil {
				u.ids = make(map[string]bool)
			}
			u.ids[f.ID] = true
		}
	}
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
