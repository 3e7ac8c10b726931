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
	for name, retain := range s.clerk.takeShips() {
		swept.retain[name.pool] = retain
		at := place{pool: name.pool, slot: name.slot, retain: retain}
		if failures >= shipFailures {
			s.clerk.add(at, news{entries: true})
		} else if err := s.ship(ctx, at); err != nil {
			failures++
			s.clerk.add(at, news{entries: true})
		}
	}
}

// ship puts what is new in a slot's ledger into its pool's outbox.
func (s *Store) ship(ctx context.Context, at place) error {
	slot := s.keys.Slot(at.pool, at.slot)
	keys := func() []string { return []string{slot.State, slot.Ledger} }
	for ctx.Err() == nil {
		raw, err := s.run(ctx, &call{op: "ship", script: luascripts.Ship, keys: keys(),
			args: []any{s.instance, millis(shipLease), shipBatch}})
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
		fields, okFields := pair[1].([]any)
		if !okID || !okFields {
			return "", strange("ship", "%v, want an entry", entry)
		}
		last = id
		c.args = append(append(c.args, id, len(fields)), fields...)
	}
	_, err = s.run(ctx, c)
	return last, err
}

// sweeps are the pools whose ledgers this gate sees to, and when it last tried to.
type sweeps struct {
	retain map[string]string // by pool
	tried  map[string]time.Time
}

func newSweeps() sweeps {
	return sweeps{retain: make(map[string]string), tried: make(map[string]time.Time)}
}

// sweepLedgers ships what gates that are gone left in ledgers: of each pool, one gate
// does so in every sweepEvery.
func (s *Store) sweepLedgers(ctx context.Context, swept *sweeps) {
	for pool, retain := range swept.retain {
		if time.Since(swept.tried[pool]) < sweepEvery {
			continue
		}
		swept.tried[pool] = time.Now()
		if s.takeSweep(ctx, pool) {
			_ = s.sweep(ctx, pool, retain) // the next one finds the rest
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
func (s *Store) sweep(ctx context.Context, pool, retain string) error {
	var failed error
	for cursor := "0"; ctx.Err() == nil; {
		var listed []redis.Z
		err := s.try(ctx, "sweep", func(ctx context.Context, client redis.UniversalClient, _ bool) (err error) {
			listed, err = client.ZRangeByScoreWithScores(ctx, s.keys.Index(pool),
				&redis.ZRangeBy{Min: "(" + cursor, Max: "+inf", Count: sweepPage}).Result()
			return err
		})
		if err != nil {
			return err
		}
		for _, z := range listed {
			name, _ := z.Member.(string)
			failed = errors.Join(failed, s.ship(ctx, place{pool: pool, slot: name, retain: retain}))
			cursor = formatScore(z.Score)
		}
		if len(listed) < sweepPage {
			return failed
		}
	}
	return ctx.Err()
}
