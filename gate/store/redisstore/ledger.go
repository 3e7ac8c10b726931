package redisstore

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/store"
)

// Ledger returns the newest entries of a slot, newest first.
func (s *Store) Ledger(ctx context.Context, pool, slot string, limit int) ([]store.Entry, error) {
	var messages []redis.XMessage
	err := s.try(ctx, "ledger", func(ctx context.Context, client redis.UniversalClient, _ bool) (err error) {
		messages, err = client.XRevRangeN(ctx, s.keys.Slot(pool, slot).Ledger, "+", "-", int64(max(limit, 1))).Result()
		return err
	})
	if err != nil {
		return nil, err
	}
	entries := make([]store.Entry, len(messages))
	for i, m := range messages {
		if entries[i], err = decodeEntry(m); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// decodeEntry reads what slot_log in luascripts/hold_moves.lua writes.
func decodeEntry(m redis.XMessage) (store.Entry, error) {
	packed, _ := m.Values["e"].(string)
	fields := strings.SplitN(packed, "|", 7)
	if len(fields) != 7 {
		return store.Entry{}, strange("ledger", "entry %s is %v", m.ID, m.Values)
	}
	at, errTime := strconv.ParseInt(fields[0], 10, 64)
	units, errUnits := strconv.ParseInt(fields[3], 10, 64)
	from, okFrom := parseState(fields[4])
	to, okTo := parseState(fields[5])
	if errTime != nil || errUnits != nil || !okFrom || !okTo {
		return store.Entry{}, strange("ledger", "entry %s is %v", m.ID, m.Values)
	}
	return store.Entry{
		ID: m.ID, Time: time.UnixMilli(at), Hold: fields[1], SubjectHash: fields[2], Units: units,
		From: from, To: to, Cause: fields[6],
	}, nil
}
