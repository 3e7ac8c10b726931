package redisstore

import (
	"cmp"
	"context"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/luascripts"
	"github.com/slotgate/slotgate/rules"
)

// settleInSteps is a settle on a cluster (doc.go, "Cluster"): the booking's reference,
// which alone means nothing, then the slot, then the key (H20), then the pool. One that
// fails on the way is finished by the same settle made again. subject is the hash of the
// hold's subject.
func (s *Store) settleInSteps(ctx context.Context, n *names, t *store.Settle, subject string) (store.Settled, error) {
	if t.Pool == "" {
		return s.settleGuard(ctx, n, t)
	}
	at := place{pool: t.Pool, slot: t.Slot, retain: life(t.Retain, max(t.HoldTTL, t.PendingTTL), 0), counts: t.MaxPerSubject > 0,
		keepUnknown: t.KeepUnknown, truth: t.Truth}
	if err := s.enlist(ctx, at); err != nil {
		return store.Settled{}, err
	}
	// A duplicate may be of a booking that stands under this reference with another hold.
	first := t.Outcome == rules.Booked || t.Outcome == rules.Done
	if first {
		if err := s.refer(ctx, n, t, at); err != nil {
			return store.Settled{}, err
		}
	}
	slotOnly, key := *t, ""
	if t.Key != "" {
		slotOnly.Key, key = "", shorten(n.key(t.Group, t.Partition, t.Key))
	}
	reply, told, err := s.askSlot(ctx, s.encodeSettle(n, &slotOnly, subject, key), at)
	if err != nil {
		return store.Settled{}, err
	}
	found, err := decodeSettledSlot(reply)
	if err != nil {
		return store.Settled{}, err
	}
	found = s.unfinished.merge(t.ID, found)
	if err := s.finishSettle(ctx, n, t, at, found, told); err != nil {
		s.unfinished.keep(t.ID, found)
		return store.Settled{}, err
	}
	s.unfinished.done(t.ID)
	return found.Settled, nil
}

// finishSettle does what follows the slot's part.
func (s *Store) finishSettle(ctx context.Context, n *names, t *store.Settle, at place, found settledSlot, told news) error {
	if t.Key != "" {
		if err := s.settleClaim(ctx, n, t, found); err != nil {
			return err
		}
	}
	if t.Outcome == rules.Duplicate && isBooked(found.Hold) {
		if err := s.refer(ctx, n, t, at); err != nil {
			return err
		}
	}
	return s.carryNotes(ctx, "settle", at, told)
}

func isBooked(state decision.HoldState) bool {
	return state == decision.Confirmed || state == decision.Pending
}

// settledSlot is what the slot found; unseen: the store had never seen the hold.
type settledSlot struct {
	store.Settled
	unseen bool
}

// unfinished remembers what the slot found in settlements that failed afterwards: made
// again, they find them settled. A gate that dies leaves no more than a tombstone that
// says unseen.
type unfinished struct {
	mu    sync.Mutex
	found map[string]settledSlot // by attempt
}

// merge adds what an earlier try found.
func (u *unfinished) merge(id string, now settledSlot) settledSlot {
	u.mu.Lock()
	defer u.mu.Unlock()
	before, ok := u.found[id]
	if !ok {
		return now
	}
	before.Hold = now.Hold
	return before
}

func (u *unfinished) keep(id string, found settledSlot) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.found == nil {
		u.found = make(map[string]settledSlot)
	}
	if len(u.found) < clerkBacklog {
		u.found[id] = found
	}
}

func (u *unfinished) done(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.found, id)
}

// settleGuard settles a request that has no slot: the key is all there is.
func (s *Store) settleGuard(ctx context.Context, n *names, t *store.Settle) (store.Settled, error) {
	if t.Key == "" {
		return store.Settled{Applied: true}, nil
	}
	raw, err := s.run(ctx, s.encodeSettle(n, t, "", ""))
	if err != nil {
		return store.Settled{}, err
	}
	return decodeSettled(raw)
}

// decodeSettledSlot reads what settle.lua replies of a slot on a cluster.
func decodeSettledSlot(raw any) (settledSlot, error) {
	text, _ := raw.(string)
	last := strings.LastIndexByte(text, '|')
	if last < 0 {
		return settledSlot{}, strange("settle", "%v, want 6 values", raw)
	}
	settled, err := decodeSettled(text[:last])
	r := newReply("settle", []any{text[last+1:]}, 1)
	found := settledSlot{Settled: settled, unseen: r.flag()}
	return found, cmp.Or(err, r.end())
}

// settleClaim settles the key as the slot has told.
func (s *Store) settleClaim(ctx context.Context, n *names, t *store.Settle, found settledSlot) error {
	record := s.keys.KeyRecord(n.key(t.Group, t.Partition, t.Key))
	raw, err := s.run(ctx, &call{op: "settle", script: luascripts.ClaimSettle,
		keys: []string{record, s.keys.KeyTombstone(record, t.ID), s.keys.Answer(record, t.ID)},
		args: []any{t.ID, t.Outcome.String(), keyHold(t), flag(t.Action == store.Book), flag(t.Keep),
			s.sealAnswer(record, t.Answer), millis(t.KeyTTL), n.scope(t.Scope), encodeFingerprint(t.Fingerprint),
			flag(found.Applied), found.Hold.String(), flag(found.unseen)}})
	if err != nil {
		return err
	}
	r := newReply("settle", []any{raw}, 1)
	r.flag()
	return r.end()
}

// keyHold is the hold that a key names: that of a booking.
func keyHold(t *store.Settle) string {
	if t.Action == store.Book {
		return t.Hold
	}
	return ""
}

// refer notes what a booking's reference stands for.
func (s *Store) refer(ctx context.Context, n *names, t *store.Settle, at place) error {
	if t.Reference == "" {
		return nil
	}
	key := s.keys.Reference(n.reference(t.Pool, t.Reference))
	return s.try(ctx, "settle", func(ctx context.Context, client redis.UniversalClient, _ bool) error {
		return client.Do(ctx, "SET", key, t.Hold+"|"+t.Slot, "PX", at.retain).Err()
	})
}
