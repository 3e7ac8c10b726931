package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/luascripts"
)

const (
	// listedHolds bounds the holds that one read shows.
	listedHolds = 100
	// largestPage keeps a page within the time of one call.
	largestPage = 500
)

// Slot reads one slot after applying its due lapses.
func (s *Store) Slot(ctx context.Context, q store.SlotQuery) (store.Slot, error) {
	raw, err := s.runSlot(ctx, s.encodeRead(q, listedHolds), placeOf(q, 0))
	if err == redis.Nil {
		return store.Slot{}, store.ErrNoSlot
	}
	if err != nil {
		return store.Slot{}, err
	}
	return s.decodeSlot("slot", raw, q)
}

func (s *Store) encodeRead(q store.SlotQuery, holds int) *call {
	return &call{op: "slot", script: luascripts.SlotRead,
		keys: s.keysOf(q.Pool, q.Slot, q.Truth).with(),
		args: []any{q.Slot, life(q.Retain, 0, 0), flag(q.KeepUnknown), holds, int(q.Truth)},
	}
}

// decodeSlot reads what slot_view.lua replies.
func (s *Store) decodeSlot(op string, raw any, q store.SlotQuery) (store.Slot, error) {
	r := newReply(op, raw, 15)
	own := r.text()
	slot := store.Slot{Pool: q.Pool, Slot: q.Slot, Capacity: q.Capacity, OpensAt: q.OpensAt,
		Confirmed: r.count(), Held: r.count(), Closed: r.flag()}
	opens := r.text()
	slot.Full, slot.Version, slot.Inflight = r.count(), r.count(), int(r.count())
	touched := r.flag()
	slot.Verified = r.flag()
	slot.Dirty = touched || !slot.Verified
	told := r.text()
	slot.Debt, slot.Outside = r.count(), r.signed()
	if checked := r.count(); checked > 0 {
		slot.CheckedAt = time.UnixMilli(checked)
	}
	slot.LookFailed = r.flag()
	if told != "" {
		slot.Capacity = r.parse("a capacity", told)
	} else if own != "" && q.Truth == store.NoTruth {
		units, err := strconv.ParseInt(own, 10, 64)
		if err != nil || units < store.Learned {
			r.fail("a capacity", own)
		}
		slot.Capacity, slot.Own = units, true
	}
	if !slot.Verified {
		slot.Capacity = store.Learned
	}
	if opens != "" {
		at, err := strconv.ParseInt(opens, 10, 64)
		if err != nil {
			r.fail("an opening time", opens)
		}
		slot.OpensAt = time.UnixMilli(at)
	}
	state := s.keys.Slot(q.Pool, q.Slot).State
	for r.more() {
		id, packed, reference := r.text(), r.text(), r.text()
		h, ok := s.unpackHold(state, id, packed)
		if !ok {
			r.fail("a hold", packed)
		}
		if reference != "" {
			if h.Reference, ok = s.decodeText(referencePlace(state, id), reference); !ok {
				r.fail("a reference", reference)
			}
		}
		if q.KeepUnknown && h.State == decision.HoldUnknown {
			h.ExpiresAt = time.Time{}
		}
		slot.Holds = append(slot.Holds, h.Hold)
	}
	if err := r.end(); err != nil {
		return store.Slot{}, err
	}
	return slot, nil
}

// Slots lists a pool's slots by when its index was last told of them, oldest first,
// so that what changes during a listing moves ahead of it and is not missed. A page
// is at most largestPage slots.
func (s *Store) Slots(ctx context.Context, q store.SlotQuery, cursor string, limit int) ([]store.Slot, string, error) {
	limit = min(max(limit, 1), largestPage/(1+q.Holds/8))
	if cursor == "" {
		cursor = "0"
	} else if _, err := strconv.ParseUint(cursor, 10, 64); err != nil {
		return nil, "", store.ErrCursor
	}
	ctx, timer := within(ctx, s.timeout)
	defer timer.stop()
	var listed []redis.Z
	err := s.try(ctx, "slots", func(ctx context.Context, client redis.UniversalClient, _ bool) (err error) {
		listed, err = client.ZRangeByScoreWithScores(ctx, s.keys.Index(q.Pool),
			&redis.ZRangeBy{Min: "(" + cursor, Max: "+inf", Count: int64(limit)}).Result()
		return err
	})
	if err != nil || len(listed) == 0 {
		return nil, "", err
	}
	slots, err := s.readAll(ctx, q, listed)
	if err != nil {
		return nil, "", err
	}
	next := ""
	if len(listed) == limit {
		next = formatScore(listed[limit-1].Score)
	}
	return slots, next, nil
}

// formatScore writes a place in the index.
func formatScore(score float64) string { return strconv.FormatFloat(score, 'f', 0, 64) }

// readAll reads many slots in one round trip. Those whose idle
// state has been dropped are left out.
func (s *Store) readAll(ctx context.Context, q store.SlotQuery, listed []redis.Z) ([]store.Slot, error) {
	queries := make([]store.SlotQuery, len(listed))
	for i, z := range listed {
		name, ok := z.Member.(string)
		if !ok {
			return nil, strange("slots", "%T, want a slot's name", z.Member)
		}
		queries[i] = q
		queries[i].Slot = name
	}
	var replies []*redis.Cmd
	err := s.try(ctx, "slots", func(ctx context.Context, client redis.UniversalClient, resent bool) (err error) {
		replies, err = s.pipeline(ctx, client, queries, resent)
		if isUnknownScript(err) {
			if err = loadScript(ctx, client, luascripts.SlotRead); err == nil {
				replies, err = s.pipeline(ctx, client, queries, resent)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slots := make([]store.Slot, 0, len(queries))
	for i, reply := range replies {
		if reply.Err() == redis.Nil {
			continue
		}
		raw := reply.Val()
		if s.sharded() {
			if raw, err = s.readTold(raw, queries[i]); err != nil {
				return nil, err
			}
			if raw == nil {
				continue
			}
		}
		slot, err := s.decodeSlot("slots", raw, queries[i])
		if err != nil {
			return nil, err
		}
		slots = append(slots, slot)
	}
	return slots, nil
}

func (s *Store) pipeline(ctx context.Context, client redis.UniversalClient, queries []store.SlotQuery, resent bool) ([]*redis.Cmd, error) {
	pipe := client.Pipeline()
	replies := make([]*redis.Cmd, len(queries))
	for i, q := range queries {
		replies[i] = s.command(ctx, s.encodeRead(q, q.Holds), resent, false)
		_ = pipe.Process(ctx, replies[i]) // only queues it
	}
	_, _ = pipe.Exec(ctx) // says no more than the first reply that failed
	for _, reply := range replies {
		if err := reply.Err(); err != nil && err != redis.Nil {
			return replies, err
		}
	}
	return replies, nil
}

// Change sets what an operator may set, creating the slot if need be.
func (s *Store) Change(ctx context.Context, q store.SlotQuery, c store.SlotChange) (store.Slot, error) {
	capacity, closed, opens := "", "", ""
	if c.ClearCapacity {
		capacity = "clear"
	} else if c.Capacity != nil {
		if *c.Capacity < store.Learned || *c.Capacity > maxUnits {
			return store.Slot{}, fmt.Errorf("capacity %d is out of range; use 0 to %d", *c.Capacity, maxUnits)
		}
		capacity = strconv.FormatInt(*c.Capacity, 10)
	}
	if c.Closed != nil {
		closed = flag(*c.Closed)
	}
	if c.OpensAt != nil && c.OpensAt.IsZero() {
		opens = "clear"
	} else if c.OpensAt != nil {
		opens = unixMillis(*c.OpensAt)
	}
	at := placeOf(q, 0)
	if err := s.enlist(ctx, at); err != nil {
		return store.Slot{}, err
	}
	slot := s.keysOf(q.Pool, q.Slot, q.Truth)
	defer s.watches.fire(slot.State) // this process hears of it before its caller goes on
	raw, err := s.runSlot(ctx, &call{op: "change", script: luascripts.SlotChange,
		keys: slot.with(slot.Tombstone(s.nextCall())),
		args: []any{q.Slot, life(q.Retain, 0, 0), flag(q.KeepUnknown), listedHolds, int(q.Truth), capacity, closed, opens, flag(c.Verify)},
	}, at)
	if err != nil {
		return store.Slot{}, err
	}
	return s.decodeSlot("change", raw, q)
}

// Release frees a hold on an operator's word.
func (s *Store) Release(ctx context.Context, q store.SlotQuery, hold string) (decision.HoldState, error) {
	ctx, timer := within(ctx, s.timeout)
	defer timer.stop()
	slot := s.keysOf(q.Pool, q.Slot, q.Truth)
	defer s.watches.fire(slot.State)
	// The script must be told the key of the subject's units in the pool, so the
	// hold's subject is read first.
	h, err := s.readHold(ctx, "release", q.Pool, q.Slot, hold)
	if err != nil {
		return decision.NoHold, err
	}
	poolSubject := s.keys.PoolSubject(q.Pool, h.subjectHash)
	if s.sharded() {
		poolSubject = s.none
	}
	raw, err := s.runSlot(ctx, &call{op: "release", script: luascripts.SlotRelease,
		keys: slot.with(slot.Tombstone(s.nextCall()), slot.Tombstone(hold), poolSubject),
		args: []any{q.Slot, life(q.Retain, 0, 0), flag(q.KeepUnknown), hold, int(q.Truth)},
	}, placeOf(q, 0))
	if err == redis.Nil {
		return decision.NoHold, store.ErrNoHold
	}
	if err != nil {
		return decision.NoHold, err
	}
	r := newReply("release", []any{raw}, 1)
	was := r.state()
	return was, r.end()
}
