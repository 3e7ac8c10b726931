package redisstore

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

// packedHold is a hold as hold.lua packs it.
type packedHold struct {
	store.Hold
	subjectHash string
}

// keptForGood as a hold's expiry: it does not lapse; KEPT in luascripts/hold.lua.
const keptForGood = 1

// unpackHold is the reading half of hold_pack in luascripts/hold.lua for a hold of the
// slot with that state key; false when the text is nothing that it writes.
func (s *Store) unpackHold(state, id, packed string) (packedHold, bool) {
	fields := strings.SplitN(packed, "|", 11)
	if len(fields) != 11 {
		return packedHold{}, false
	}
	is, ok := decision.ParseHoldState(fields[0])
	if !ok {
		return packedHold{}, false
	}
	h := packedHold{Hold: store.Hold{ID: id, State: is}, subjectHash: fields[6]}
	var err [3]error
	var taken, expires int64
	h.Units, err[0] = strconv.ParseInt(fields[5], 10, 64)
	taken, err[1] = strconv.ParseInt(fields[7], 10, 64)
	expires, err[2] = strconv.ParseInt(fields[2], 10, 64)
	if err != [3]error{} {
		return packedHold{}, false
	}
	h.TakenAt = time.UnixMilli(taken)
	if expires > keptForGood {
		h.ExpiresAt = time.UnixMilli(expires)
	}
	h.Subject, ok = s.decodeText(subjectPlace(state, id), fields[10])
	return h, ok
}

// readHold reads one hold as it stands; ErrNoHold where none does. A hold keeps its
// subject.
func (s *Store) readHold(ctx context.Context, op, pool, slot, hold string) (packedHold, error) {
	state := s.keys.Slot(pool, slot).State
	var fields []any
	err := s.try(ctx, op, func(ctx context.Context, client redis.UniversalClient, _ bool) (err error) {
		fields, err = client.HMGet(ctx, state, "h:"+hold, "f:"+hold).Result()
		return err
	})
	if err != nil {
		return packedHold{}, err
	}
	packed, ok := fields[0].(string)
	if !ok {
		return packedHold{}, store.ErrNoHold
	}
	h, ok := s.unpackHold(state, hold, packed)
	if !ok {
		return packedHold{}, strange(op, "%.40q, want a hold", packed)
	}
	if note, ok := fields[1].(string); ok {
		if parts := strings.SplitN(note, "|", 3); len(parts) == 3 {
			h.Reference, _ = s.decodeText(referencePlace(state, hold), parts[2])
		}
	}
	return h, nil
}
