package redisstore

import (
	"context"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

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

// unpackHold is the reading half of hold_pack in luascripts/hold.lua; false when
// the text is nothing that it writes.
func unpackHold(id, packed string) (packedHold, bool) {
	fields := strings.SplitN(packed, "|", 10)
	if len(fields) != 10 {
		return packedHold{}, false
	}
	state, ok := decision.ParseHoldState(fields[0])
	if !ok {
		return packedHold{}, false
	}
	h := packedHold{Hold: store.Hold{ID: id, State: state}, subjectHash: fields[2]}
	var err [3]error
	var taken, expires int64
	h.Units, err[0] = strconv.ParseInt(fields[1], 10, 64)
	taken, err[1] = strconv.ParseInt(fields[3], 10, 64)
	expires, err[2] = strconv.ParseInt(fields[4], 10, 64)
	if err != [3]error{} {
		return packedHold{}, false
	}
	h.TakenAt = time.UnixMilli(taken)
	if expires > keptForGood {
		h.ExpiresAt = time.UnixMilli(expires)
	}
	h.Subject, ok = decodeText(fields[9])
	return h, ok
}

// encodeText writes a subject so that it can be read by people where it is readable
// at all: "t:" and the text, else "b:" and base64.
func encodeText(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "t:" + text
	}
	return "b:" + base64.RawStdEncoding.EncodeToString([]byte(text))
}

func decodeText(encoded string) (string, bool) {
	if text, ok := strings.CutPrefix(encoded, "t:"); ok {
		return text, true
	}
	text, ok := strings.CutPrefix(encoded, "b:")
	if !ok {
		return "", false
	}
	raw, err := base64.RawStdEncoding.DecodeString(text)
	return string(raw), err == nil
}

// readHold reads one hold as it stands; ErrNoHold where none does. A hold keeps its
// subject.
func (s *Store) readHold(ctx context.Context, op, pool, slot, hold string) (packedHold, error) {
	var fields []any
	err := s.try(ctx, op, func(ctx context.Context, client *redis.Client, _ bool) (err error) {
		fields, err = client.HMGet(ctx, s.keys.Slot(pool, slot).State, "h:"+hold, "f:"+hold).Result()
		return err
	})
	if err != nil {
		return packedHold{}, err
	}
	packed, ok := fields[0].(string)
	if !ok {
		return packedHold{}, store.ErrNoHold
	}
	h, ok := unpackHold(hold, packed)
	if !ok {
		return packedHold{}, strange(op, "%.40q, want a hold", packed)
	}
	if note, ok := fields[1].(string); ok {
		if parts := strings.SplitN(note, "|", 3); len(parts) == 3 {
			h.Reference, _ = decodeText(parts[2])
		}
	}
	return h, nil
}
