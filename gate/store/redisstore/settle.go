package redisstore

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/luascripts"
	"github.com/slotgate/slotgate/rules"
)

// Settle is one atomic step after forwarding.
func (s *Store) Settle(ctx context.Context, t *store.Settle) (store.Settled, error) {
	if err := checkCall(t.Pool, unitsOf(t.Action, t.Units), t.ID, t.Hold); err != nil {
		return store.Settled{}, err
	}
	ctx, timer := within(ctx, s.timeout)
	defer timer.stop()
	names, err := s.current(ctx)
	if err != nil {
		return store.Settled{}, err
	}
	whose := names.subject(t.Subject)
	if t.Action != store.Book && t.Hold != "" && t.MaxPerSubject > 0 {
		// The script must be told the key of the subject's units in the pool, and the
		// subject is the hold's.
		if h, err := s.readHold(ctx, "settle", t.Pool, t.Slot, t.Hold); err == nil {
			whose = h.subjectHash
		} else if !errors.Is(err, store.ErrNoHold) {
			return store.Settled{}, err
		}
	}
	if s.sharded() {
		return s.settleInSteps(ctx, names, t, whose)
	}
	c := s.encodeSettle(names, t, whose, "")
	raw, err := s.run(ctx, c)
	if err != nil {
		return store.Settled{}, err
	}
	c.free()
	return decodeSettled(raw)
}

// encodeSettle makes the call; subject is the hash of the hold's subject, key a short one
// where the key itself is on another shard. Its steps are those of encodeDecide.
func (s *Store) encodeSettle(n *names, t *store.Settle, subject, key string) *call {
	by := settleNames{subject: subject, scope: n.scope(t.Scope), key: key}
	if t.Key != "" {
		by.hash = n.key(t.Group, t.Partition, t.Key)
		by.key = shorten(by.hash)
	}
	c := newCall("settle", luascripts.Settle)
	s.nameSettle(c, &by, n, t)
	s.tellSettle(c, &by, t)
	c.args = append(c.args, s.sealAnswer(by.record, t.Answer))
	return c
}

// settleNames are the names that a settlement goes by in the store.
type settleNames struct {
	subject, scope, hash, key string // as in decideNames
	state, record             string
	calledBy                  string // the booking's id in the backend's answer
}

// nameSettle makes KEYS.
func (s *Store) nameSettle(c *call, by *settleNames, n *names, t *store.Settle) {
	none := s.none
	slot := s.noSlot()
	attemptTombstone, holdTombstone, poolSubject, record, answer, reference := none, none, none, none, none, none
	gated, keyed := t.Pool != "", t.Key != ""

	if keyed {
		record = s.keys.KeyRecord(by.hash)
		answer = s.keys.Answer(record, t.ID)
	}
	switch {
	case gated:
		slot = s.keysOf(t.Pool, t.Slot, t.Truth)
		attemptTombstone = slot.Tombstone(t.ID)
		if t.Hold != t.ID {
			holdTombstone = slot.Tombstone(t.Hold)
		}
		if t.MaxPerSubject > 0 && !s.sharded() {
			poolSubject = s.keys.PoolSubject(t.Pool, by.subject)
		}
	case keyed:
		attemptTombstone = s.keys.KeyTombstone(record, t.ID)
	}
	if gated && t.Reference != "" {
		kind, text := s.encodeText(referencePlace(slot.State, t.Hold), t.Reference)
		by.calledBy = kind + text
		if !s.sharded() {
			reference = s.keys.Reference(n.reference(t.Pool, t.Reference))
		}
	}
	by.state, by.record = slot.State, record
	c.keys = s.needed(append(slot.first(slices.Grow(c.keys, 12)), attemptTombstone, record, answer, slot.looks, holdTombstone,
		poolSubject, reference))
}

// tellSettle packs what the script is told.
func (s *Store) tellSettle(c *call, by *settleNames, t *store.Settle) {
	gated, keyed := t.Pool != "", t.Key != ""
	usual := gated && t.Outcome == rules.Booked && t.Hold == t.ID && t.Action == store.Book && t.Truth == store.NoTruth &&
		t.MaxPerSubject == 0 && !t.Probe && t.PendingTTL == 0 && (t.Keep || !keyed) && !s.sharded()
	units := min(t.Units, maxUnits)
	all := c.told.
		flag(usual).flag(false).number(s.ahead.Load()).text(t.ID).text("h:", t.Hold).text("f:", t.Hold).text("u:", by.subject).
		text(by.subject).number(units).text(strconv.FormatInt(units, 10)).
		millis(lifetime(t.Retain, max(t.HoldTTL, t.PendingTTL), 0)).
		flag(keyed).text(by.key).text("|", encodeFingerprint(t.Fingerprint), "|", by.scope, "|", t.ID, "|", t.ID, "||").
		text(millis(t.KeyTTL))
	if by.calledBy != "" {
		all = all.text(by.calledBy).text(t.Hold, "|", t.Slot)
	} else {
		all = all.none().none()
	}
	c.told = all.
		text(t.Outcome.String()).flag(gated).text(t.Hold).text(t.Slot).number(min(t.Capacity, maxUnits)).
		millis(t.HoldTTL).number(t.MaxPerSubject).flag(t.KeepUnknown).number(t.ReleaseSeq).flag(t.Probe).
		text(s.encodeText(subjectPlace(by.state, t.Hold), t.Subject)).flag(t.Keep).number(int64(t.Action)).
		text(strconv.Itoa(int(t.Truth))).millis(t.PendingTTL).text(s.channel)
}

func decodeSettled(raw any) (store.Settled, error) {
	var r reply
	r.unpack("settle", raw, 5)
	settled := store.Settled{Applied: r.flag(), Hold: r.state(), Late: r.flag(), Oversold: r.count(), Look: r.flag()}
	if err := r.end(); err != nil {
		return store.Settled{}, err
	}
	return settled, nil
}
