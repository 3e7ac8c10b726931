package redisstore

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/luascripts"
)

var _ store.Truth = (*Store)(nil)

// fenceLife is how long the store remembers the last fence of a pool.
const fenceLife = 400 * 24 * time.Hour

// Look begins a look.
func (s *Store) Look(ctx context.Context, l *store.Look) (store.Looked, error) {
	if err := checkLook(l); err != nil {
		return store.Looked{}, err
	}
	if err := s.confirmRun(ctx, "look", s.keys.Slot(l.Query.Pool, l.Query.Slot).State); err != nil {
		return store.Looked{}, err
	}
	raw, err := s.runSlot(ctx, s.encodeLook(l), placeOf(l.Query, l.Lease))
	if err != nil {
		return store.Looked{}, err
	}
	r := newReply("look", raw, 8)
	looked := store.Looked{Busy: r.millis(), Known: r.flag(), Born: r.count(), At: r.count(),
		Open: r.count(), Admitted: r.count(), Refunded: r.count(), Marked: r.flag()}
	return looked, r.end()
}

// Apply ends a look.
func (s *Store) Apply(ctx context.Context, t *store.Reading) (store.Applied, error) {
	if t.Look == nil {
		return store.Applied{}, errors.New("a reading without the look that it ends")
	}
	if err := checkLook(t.Look); err != nil {
		return store.Applied{}, err
	}
	q := t.Look.Query
	at := placeOf(q, 0)
	defer s.watches.fire(s.keys.Slot(q.Pool, q.Slot).State)
	if err := s.enlist(ctx, at); err != nil {
		return store.Applied{}, err
	}
	if err := s.confirmRun(ctx, "apply", s.keys.Slot(q.Pool, q.Slot).State); err != nil {
		return store.Applied{}, err
	}
	raw, err := s.runSlot(ctx, s.encodeApply(t), at)
	if err != nil {
		return store.Applied{}, err
	}
	r := newReply("apply", raw, 5)
	applied := store.Applied{Applied: r.flag(), Known: r.flag(), Before: r.signed(), After: r.signed(), Again: r.flag()}
	return applied, r.end()
}

func checkLook(l *store.Look) error {
	if l.Query.Truth == store.NoTruth {
		return errors.New("a look at a slot of pool " + l.Query.Pool + ", which has no truth")
	}
	if l.ID == "" {
		return errors.New("a look without an id, so that its copies could not be told from others")
	}
	return checkCall("", 0, l.ID)
}

// epochOf is where the run of the store stands for a script to see; on a cluster none
// can.
func (s *Store) epochOf() string {
	if s.sharded() {
		return s.none
	}
	return s.keys.Epoch()
}

func (s *Store) encodeLook(l *store.Look) *call {
	q := l.Query
	slot := s.keysOf(q.Pool, q.Slot, q.Truth)
	return &call{op: "look", script: luascripts.Look, keys: slot.with(slot.Look, slot.Tombstone(l.ID), s.epochOf()), args: []any{
		q.Slot, life(q.Retain, q.HoldTTL, l.Lease), flag(q.KeepUnknown), int(q.Truth), millis(q.HoldTTL),
		l.ID, millis(l.Lag), millis(l.Lease), flag(l.Force), millis(l.Fresh),
	}}
}

func (s *Store) encodeApply(t *store.Reading) *call {
	q, looked := t.Look.Query, t.Looked
	slot := s.keysOf(q.Pool, q.Slot, q.Truth)
	said := "none"
	if t.Found {
		said = "value"
	} else if t.Missing {
		said = "missing"
	}
	bounded := func(units int64) int64 { return min(max(units, -maxUnits), maxUnits) }
	return &call{op: "apply", script: luascripts.Apply, keys: slot.with(slot.Look, slot.Tombstone(t.Look.ID), s.epochOf()), args: []any{
		q.Slot, life(q.Retain, q.HoldTTL, 0), flag(q.KeepUnknown), int(q.Truth), min(q.Capacity, maxUnits), t.Look.ID,
		flag(looked.Known), looked.Born, looked.At, looked.Open, looked.Admitted, looked.Refunded, flag(looked.Marked),
		said, bounded(t.Value), bounded(t.Total), t.Fence, millis(t.Hot), millis(t.Refresh),
	}}
}

// Due takes slots whose look is due. Those of a reply that is lost come back after the
// lease.
func (s *Store) Due(ctx context.Context, pool string, most int, lease time.Duration) ([]string, time.Duration, error) {
	raw, err := s.run(ctx, &call{op: "due", script: luascripts.Due, keys: []string{s.keys.Looks(pool)},
		args: []any{min(max(most, 1), largestPage), millis(lease)}})
	if err != nil {
		return nil, 0, err
	}
	r := newReply("due", raw, 1)
	next := time.Duration(-1)
	if wait := r.units(); wait >= 0 {
		next = time.Duration(wait) * time.Millisecond
	}
	var slots []string
	for r.more() {
		slots = append(slots, r.text())
	}
	return slots, next, r.end()
}

// Lead takes or renews the leadership of a pool.
func (s *Store) Lead(ctx context.Context, pool, who string, ttl time.Duration) (fence int64, ok bool, err error) {
	if err := checkGate(who); err != nil {
		return 0, false, err
	}
	leader := s.keys.Leader(pool)
	raw, err := s.run(ctx, &call{op: "lead", script: luascripts.Lead,
		keys: []string{leader.Leader, leader.Fence, leader.Tombstone(s.nextCall())},
		args: []any{who, millis(max(ttl, time.Millisecond)), millis(fenceLife)}})
	if err != nil {
		return 0, false, err
	}
	r := newReply("lead", []any{raw}, 1)
	fence = r.count()
	return fence, fence > 0, r.end()
}

// Resign gives the leadership up if who has it.
func (s *Store) Resign(ctx context.Context, pool, who string) error {
	if err := checkGate(who); err != nil {
		return err
	}
	leader := s.keys.Leader(pool)
	raw, err := s.run(ctx, &call{op: "resign", script: luascripts.Resign,
		keys: []string{leader.Leader, leader.Tombstone(s.nextCall())}, args: []any{who}})
	if err != nil {
		return err
	}
	r := newReply("resign", []any{raw}, 1)
	r.flag()
	return r.end()
}

// Find tells what a booking's reference stands for. What stands under the reference may
// outlive its hold, or the hold be called otherwise by now.
func (s *Store) Find(ctx context.Context, pool, reference string) (slot, hold string, err error) {
	ctx, timer := within(ctx, s.timeout)
	defer timer.stop()
	names, err := s.current(ctx)
	if err != nil {
		return "", "", err
	}
	var value string
	err = s.try(ctx, "find", func(ctx context.Context, client redis.UniversalClient, _ bool) (err error) {
		value, err = client.Get(ctx, s.keys.Reference(names.reference(pool, reference))).Result()
		return err
	})
	if errors.Is(err, redis.Nil) {
		return "", "", store.ErrNoHold
	}
	if err != nil {
		return "", "", err
	}
	hold, slot, ok := strings.Cut(value, "|")
	if !ok {
		return "", "", strange("find", "%.40q, want a hold and its slot", value)
	}
	h, err := s.readHold(ctx, "find", pool, slot, hold)
	if err != nil {
		return "", "", err
	}
	if h.Reference != reference || !h.State.Open() && h.State != decision.Confirmed {
		return "", "", store.ErrNoHold
	}
	return slot, hold, nil
}
