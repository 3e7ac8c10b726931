package redisstore

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/store"
)

// sharded reports that a slot, its pool, keys, subjects and limits may live on different
// servers, so that a call takes several steps (doc.go, "Cluster").
func (s *Store) sharded() bool { return s.server == nil }

// place is a slot whose scripts tell what must be carried to its pool.
type place struct {
	pool, slot string
	retain     string // how long the pool remembers it, ms
	counts     bool   // the pool counts what its subjects have
	// By these a hold counts for the time that it may lapse in, or as long as it is known.
	keepUnknown bool
	truth       store.TruthKind
}

func placeOf(q store.SlotQuery, lease time.Duration) place {
	return place{pool: q.Pool, slot: q.Slot, retain: life(q.Retain, q.HoldTTL, lease), counts: q.MaxPerSubject > 0,
		keepUnknown: q.KeepUnknown, truth: q.Truth}
}

// news is what a script of a slot told besides its reply (slot_reply in
// luascripts/slot_save.lua).
type news struct {
	at      string // the slot's time, µs
	due     string // when its look is due, ms; "" as it was, "0" not
	entries bool   // its ledger has new entries
	notes   []poolNote
}

// poolNote is what a hold counts for, among what its subject has in the pool.
type poolNote struct{ hold, subject, units, ttl string }

// runSlot runs a script of a slot to the end: on a cluster, what it told is carried to its
// pool, or the call has failed, and does the rest when it is made again.
func (s *Store) runSlot(ctx context.Context, c *call, at place) (reply any, err error) {
	if !s.sharded() {
		return s.run(ctx, c)
	}
	reply, t, err := s.askSlot(ctx, c, at)
	if err != nil {
		return nil, err
	}
	if err := s.carryNotes(ctx, c.op, at, t); err != nil {
		return nil, err
	}
	if reply == nil {
		return nil, redis.Nil
	}
	return reply, nil
}

// askSlot runs a script of a slot on a cluster. What may be late, or be lost for a while,
// is left to the clerk.
func (s *Store) askSlot(ctx context.Context, c *call, at place) (reply any, t news, err error) {
	raw, err := s.run(ctx, c)
	if err != nil {
		return nil, news{}, err
	}
	reply, t, err = decodeTold(c.op, raw)
	if err != nil {
		return nil, news{}, err
	}
	s.takeTold(ctx, at, t)
	return reply, t, nil
}

func decodeTold(op string, raw any) (reply any, t news, err error) {
	if list, _ := raw.([]any); len(list) > 0 {
		reply, raw = list[0], list[1:]
	}
	r := newReply(op, raw, 3)
	t = news{at: r.text(), due: r.text(), entries: r.flag()}
	for r.more() {
		t.notes = append(t.notes, poolNote{hold: r.text(), subject: r.text(), units: r.text(), ttl: r.text()})
	}
	return reply, t, r.end()
}

// readTold is runSlot's end for a reply that came with many others; nil where the slot was
// never seen.
func (s *Store) readTold(raw any, q store.SlotQuery) (reply any, err error) {
	reply, t, err := decodeTold("slots", raw)
	if err == nil {
		s.clerk.add(placeOf(q, 0), t)
	}
	return reply, err
}
