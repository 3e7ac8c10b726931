package redisstore

import (
	"context"
	"encoding/base64"
	"strconv"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/luascripts"
)

// maxUnits keeps sums of units exact in Lua, whose numbers are doubles.
const maxUnits = int64(1) << 40

// Decide is one atomic step before forwarding.
func (s *Store) Decide(ctx context.Context, d *store.Decide) (store.Decided, error) {
	if err := checkCall(d.Pool, unitsOf(d.Action, d.Units), d.ID, d.Target); err != nil {
		return store.Decided{}, err
	}
	if d.Units > maxUnits {
		return store.Decided{Verdict: decision.OverCapacity, Left: -1}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	names, err := s.current(ctx)
	if err != nil {
		return store.Decided{}, err
	}
	decided, err := s.decide(ctx, names, d)
	s.openStored(names, d, &decided)
	return decided, err
}

func (s *Store) decide(ctx context.Context, names *names, d *store.Decide) (store.Decided, error) {
	if s.sharded() {
		return s.decideInSteps(ctx, names, d)
	}
	raw, err := s.run(ctx, s.encodeDecide(names, d, slotPart{}))
	if err != nil {
		return store.Decided{}, err
	}
	return decodeDecided(names, raw, d)
}

// openStored decrypts the answer of another request. With one that does not open the
// key is done and its answer may not be given.
func (s *Store) openStored(n *names, d *store.Decide, decided *store.Decided) {
	if len(decided.Answer) == 0 {
		return
	}
	answer, ok := s.openAnswer(s.keys.KeyRecord(n.key(d.Group, d.Partition, d.Key)), decided.Answer)
	decided.Answer = answer
	if !ok {
		decided.Verdict, decided.MayReplay = decision.KeyDone, false
	}
}

// encodeDecide makes the call; part is what a cluster's slot is told besides.
func (s *Store) encodeDecide(n *names, d *store.Decide, part slotPart) *call {
	none := s.keys.None()
	slot := s.noSlot()
	tombstone, callTombstone, slotLimit, poolSubject, targetTombstone := none, none, none, none, none
	record, awaited, subjectLimit, clientLimit := none, none, none, none
	gated, keyed := d.Pool != "", d.Key != ""
	subject := n.subject(d.Subject)
	callID := s.nextCall()

	key := part.key
	if keyed {
		hash := n.key(d.Group, d.Partition, d.Key)
		key, record = shorten(hash), s.keys.KeyRecord(hash)
		awaited = s.keys.Answer(record, d.Await)
		tombstone, callTombstone = s.keys.KeyTombstone(record, d.ID), s.keys.KeyTombstone(record, callID)
	}
	if gated {
		slot = s.keysOf(d.Pool, d.Slot, d.Truth)
		tombstone, callTombstone = slot.Tombstone(d.ID), slot.Tombstone(callID)
		if !s.sharded() {
			poolSubject = s.keys.PoolSubject(d.Pool, subject)
		}
		if d.Target != "" {
			targetTombstone = slot.Tombstone(d.Target)
		}
		if !d.SlotLimit.IsZero() {
			slotLimit = slot.Limit(d.Rule)
		}
	}
	if !d.SubjectLimit.IsZero() && subject != "" {
		subjectLimit = s.keys.SubjectLimit(d.Rule, subject)
	}
	if !d.ClientLimit.IsZero() && d.Client.IsValid() {
		clientLimit = s.keys.ClientLimit(d.Rule, n.client(d.Client.Unmap().String()))
	}

	args := make([]any, 0, 48)
	args = append(args, d.ID, millis(d.Lease),
		flag(gated), d.Slot, d.Units, min(d.Capacity, maxUnits),
		millis(d.HoldTTL), life(d.Retain, d.HoldTTL, d.Lease), flag(d.OnePerSubject), d.MaxPerSubject,
		d.MaxInflight, flag(d.KeepUnknown), unixMillis(d.OpensAt), flag(d.Line), subject, s.encodeText(subjectPlace(slot.State, d.ID), d.Subject),
		flag(keyed), millis(d.KeyTTL), n.scope(d.Scope), flag(d.BareReplay),
		encodeFingerprint(d.Fingerprint), flag(d.RetryUnknown), millis(d.Wait), flag(d.Await != ""),
		flag(d.Charged))
	args = appendLimit(args, d.SubjectLimit, subjectLimit != none)
	args = appendLimit(args, d.ClientLimit, clientLimit != none)
	args = appendLimit(args, d.SlotLimit, slotLimit != none)
	args = append(args, int(d.Action), d.Target, flag(d.Unreferenced),
		int(d.Truth), millis(d.Hot), millis(d.Refresh), flag(d.Blind),
		key, millis(repeats(d)), part.under, flag(part.subjectFull), flag(part.onlyLook))
	return &call{op: "decide", script: luascripts.Decide, args: args, keys: slot.with(
		tombstone, callTombstone, slotLimit, poolSubject, record, awaited, subjectLimit, clientLimit,
		targetTombstone)}
}

// appendLimit writes a limit as microseconds between two events and burst.
func appendLimit(args []any, l store.Limit, applies bool) []any {
	if !applies || l.Count <= 0 || l.Per <= 0 {
		return append(args, "0", "0")
	}
	interval := float64(l.Per) / float64(time.Microsecond) / float64(l.Count)
	return append(args, strconv.FormatFloat(interval, 'f', 3, 64), max(1, l.Burst))
}

func encodeFingerprint(f [32]byte) string { return base64.RawURLEncoding.EncodeToString(f[:]) }

func decodeDecided(n *names, raw any, d *store.Decide) (store.Decided, error) {
	r := newReply("decide", raw, 12)
	decided := store.Decided{
		Verdict: r.verdict(), Hold: r.text(), Adopted: r.flag(), Probe: r.flag(), ReleaseSeq: r.count(),
		Owner: r.text(), MayReplay: r.flag(),
	}
	answer := r.text()
	decided.RetryAfter, decided.Lapsed = r.millis(), int(r.count())
	decided.Left = r.units()
	who := r.text()
	holders, ok := n.holders(who)
	if !ok {
		r.fail("the hashes of holders", who)
	}
	decided.Holders = holders
	for r.more() {
		state := store.LimitState{Name: r.text(), Remaining: int(r.count()), Reset: r.millis()}
		switch state.Name {
		case "subject":
			state.Limit = d.SubjectLimit
		case "client":
			state.Limit = d.ClientLimit
		case "slot":
			state.Limit = d.SlotLimit
		default:
			r.fail("a limit's name", state.Name)
		}
		decided.Limits = append(decided.Limits, state)
	}
	switch decided.Verdict {
	case decision.Replay, decision.Answered:
		decided.Answer = []byte(answer)
	case decision.Admitted:
		if d.Action == store.Book && (decided.Hold == "") != (d.Pool == "") {
			r.fail("a hold exactly where there is a pool", decided.Hold)
		}
	}
	if err := r.end(); err != nil {
		return store.Decided{}, err
	}
	return decided, nil
}
