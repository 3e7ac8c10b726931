package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/luascripts"
)

const (
	// shipBatch bounds the entries that are shipped at once.
	shipBatch = 200
	// shipLease is how long a gate may take to put entries into the outbox before
	// another ships them again.
	shipLease = 10 * time.Second
	// sweepEvery is how often some gate looks for what others left.
	sweepEvery = time.Minute
	// sweepPage is how many slots of the index are looked at in one step.
	sweepPage = 100
	// shipFailures is after how many failures the rest waits for the next time: a shard
	// is away.
	shipFailures = 3
)

// shipLedgers ships the ledgers of the slots that this gate has touched.
func (s *Store) shipLedgers(ctx context.Context, swept *sweeps) {
	failures := 0
	for _, at := range s.clerk.takeShips() {
		at = swept.know(at)
		if failures >= shipFailures {
			s.clerk.add(at, news{entries: true})
		} else if err := s.ship(ctx, at); err != nil {
			failures++
			s.clerk.add(at, news{entries: true})
		}
	}
}

// ship puts what is new in a slot's ledger into its pool's outbox, and tells the pool how
// the holds stand that are named there: a gate that died may not have.
func (s *Store) ship(ctx context.Context, at place) error {
	slot := s.keys.Slot(at.pool, at.slot)
	keys := func() []string { return []string{slot.State, slot.Ledger} }
	for ctx.Err() == nil {
		raw, told, err := s.askSlot(ctx, &call{op: "ship", script: luascripts.Ship, keys: keys(),
			args: []any{s.instance, millis(shipLease), shipBatch, flag(at.counts), flag(at.keepUnknown), int(at.truth), at.retain}}, at)
		if err != nil {
			return err
		}
		entries, ok := raw.([]any)
		if !ok {
			return strange("ship", "%T, want a list", raw)
		}
		if len(entries) == 0 {
			return nil
		}
		last, err := s.publish(ctx, at, entries)
		if err != nil {
			return err
		}
		if err := s.carryNotes(ctx, "ship", at, told); err != nil {
			return err
		}
		_, err = s.run(ctx, &call{op: "ship", script: luascripts.Shipped, keys: keys(), args: []any{s.instance, last}})
		if err != nil || len(entries) < shipBatch {
			return err
		}
	}
	return ctx.Err()
}

// publish returns the id of the last entry.
func (s *Store) publish(ctx context.Context, at place, entries []any) (last string, err error) {
	c := &call{op: "publish", script: luascripts.Publish, keys: []string{s.keys.Outbox(at.pool)}, args: []any{at.retain, at.slot}}
	for _, entry := range entries {
		pair, _ := entry.([]any)
		if len(pair) != 2 {
			return "", strange("ship", "%v, want an entry", entry)
		}
		id, okID := pair[0].(string)
		fields, _ := pair[1].([]any)
		if !okID || len(fields) != 2 {
			return "", strange("ship", "%v, want an entry", entry)
		}
		last = id
		c.args = append(c.args, id, fields[1])
	}
	_, err = s.run(ctx, c)
	return last, err
}

// sweeps are the pools whose ledgers this gate sees to, and when it last tried to.
type sweeps struct {
	pools map[string]place
	tried map[string]time.Time
}

func newSweeps() sweeps {
	return sweeps{pools: make(map[string]place), tried: make(map[string]time.Time)}
}

// know returns the place with what is known of its pool: who only looks at a slot does not
// say whether that counts.
func (w *sweeps) know(at place) place {
	at.counts = at.counts || w.pools[at.pool].counts
	w.pools[at.pool] = at
	return at
}

// sweepLedgers ships what gates that are gone left in ledgers: of each pool, one gate
// does so in every sweepEvery.
func (s *Store) sweepLedgers(ctx context.Context, swept *sweeps) {
	for pool, at := range swept.pools {
		if time.Since(swept.tried[pool]) < sweepEvery {
			continue
		}
		swept.tried[pool] = time.Now()
		if s.takeSweep(ctx, pool) {
			_ = s.sweep(ctx, at) // the next one finds the rest
		}
	}
}

// takeSweep reports whether it is this gate's turn.
func (s *Store) takeSweep(ctx context.Context, pool string) bool {
	err := s.try(ctx, "sweep", func(ctx context.Context, client redis.UniversalClient, _ bool) error {
		return client.SetArgs(ctx, s.keys.Sweep(pool), s.instance, redis.SetArgs{Mode: "NX", TTL: sweepEvery}).Err()
	})
	return err == nil
}

// sweep ships the ledgers of all slots of a pool.
func (s *Store) sweep(ctx context.Context, at place) error {
	var failed error
	for cursor := "0"; ctx.Err() == nil; {
		var listed []redis.Z
		err := s.try(ctx, "sweep", func(ctx context.Context, client redis.UniversalClient, _ bool) (err error) {
			listed, err = client.ZRangeByScoreWithScores(ctx, s.keys.Index(at.pool),
				&redis.ZRangeBy{Min: "(" + cursor, Max: "+inf", Count: sweepPage}).Result()
			return err
		})
		if err != nil {
			return err
		}
		for _, z := range listed {
			at.slot, _ = z.Member.(string)
			failed = errors.Join(failed, s.ship(ctx, at))
			cursor = formatScore(z.Score)
		}
		if len(listed) < sweepPage {
			return failed
		}
	}
	return ctx.Err()
}
