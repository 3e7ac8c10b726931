package redisstore

import (
	"context"
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"strings"
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
	ctx, timer := within(ctx, s.timeout)
	defer timer.stop()
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
	c := s.encodeDecide(names, d, slotPart{})
	raw, err := s.run(ctx, c)
	if err != nil {
		return store.Decided{}, err
	}
	c.free()
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
	none := s.none
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
		if d.Await != "" {
			awaited = s.keys.Answer(record, d.Await)
		}
	}
	switch {
	case gated:
		slot = s.keysOf(d.Pool, d.Slot, d.Truth)
		tombstone, callTombstone = slot.Tombstone(d.ID), slot.Tombstone(callID)
		if d.MaxPerSubject > 0 && !s.sharded() {
			poolSubject = s.keys.PoolSubject(d.Pool, subject)
		}
		if d.Target != "" {
			targetTombstone = slot.Tombstone(d.Target)
		}
		if !d.SlotLimit.IsZero() {
			slotLimit = slot.Limit(d.Rule)
		}
	case keyed:
		tombstone, callTombstone = s.keys.KeyTombstone(record, d.ID), s.keys.KeyTombstone(record, callID)
	}
	if !d.SubjectLimit.IsZero() && subject != "" {
		subjectLimit = s.keys.SubjectLimit(d.Rule, subject)
	}
	if !d.ClientLimit.IsZero() && d.Client.IsValid() {
		clientLimit = s.keys.ClientLimit(d.Rule, n.client(d.Client.Unmap().String()))
	}

	usual := gated && d.Action == store.Book && d.Truth == store.NoTruth && d.MaxPerSubject == 0 && !d.Line && d.Await == "" && !s.sharded()
	opens := int64(0)
	if !d.OpensAt.IsZero() {
		opens = d.OpensAt.UnixMilli()
	}
	c := newCall("decide", luascripts.Decide)
	all := c.told.flag(usual).flag(false)
	if subjectLimit != none || clientLimit != none || slotLimit != none {
		all = all.list(6).
			limit(d.SubjectLimit, subjectLimit != none && !d.Charged).
			limit(d.ClientLimit, clientLimit != none && !d.Charged).
			limit(d.SlotLimit, slotLimit != none)
	} else {
		all = all.none()
	}
	c.told = all.
		number(s.ahead.Load()).text(d.ID).text("h:", d.ID).text("t:", d.ID).text("u:", subject).
		number(d.Units).number(min(d.Capacity, maxUnits)).number(opens).flag(keyed).flag(d.KeepUnknown).millis(repeats(d)).
		text(encodeFingerprint(d.Fingerprint), "|", n.scope(d.Scope)).flag(d.BareReplay).
		text(subject).text(strconv.FormatInt(d.Units, 10)).text(key).text(millis(max(d.KeyTTL, d.Lease))).
		text(s.encodeText(subjectPlace(slot.State, d.ID), d.Subject)).number(int64(d.MaxInflight)).
		millis(lifetime(d.Retain, d.HoldTTL, d.Lease)).millis(d.Lease).millis(d.HoldTTL).
		flag(gated).text(d.Slot).flag(d.OnePerSubject).number(d.MaxPerSubject).flag(d.Line).
		millis(d.KeyTTL).flag(d.RetryUnknown).millis(d.Wait).flag(d.Await != "").number(int64(d.Action)).
		text(d.Target).flag(d.Unreferenced).text(strconv.Itoa(int(d.Truth))).millis(d.Hot).millis(d.Refresh).
		flag(d.Blind).text(part.under).
		flag(part.subjectFull).flag(part.onlyLook).text(s.channel)
	c.keys = s.needed(append(slot.first(slices.Grow(c.keys, 15)), tombstone, callTombstone, record, slot.looks,
		poolSubject, slotLimit, subjectLimit, clientLimit, awaited, targetTombstone))
	return c
}

// limit is two values: the time between two events in µs, 0 where none applies, and the burst.
func (p packed) limit(l store.Limit, applies bool) packed {
	if !applies {
		l = store.Limit{}
	}
	return p.float(interval(l)).number(int64(max(1, l.Burst)))
}

// appendLimit writes a limit as microseconds between two events and burst.
func appendLimit(args []any, l store.Limit) []any {
	return append(args, strconv.FormatFloat(interval(l), 'f', 3, 64), max(1, l.Burst))
}

// interval is a limit's time between two events, in µs to three places; 0 where there is no limit.
func interval(l store.Limit) float64 {
	if l.Count <= 0 || l.Per <= 0 {
		return 0
	}
	return math.Round(1000*float64(l.Per)/float64(time.Microsecond)/float64(l.Count)) / 1000
}

// encodeFingerprint keeps 128 bits: whoever could find two requests alike in these would have
// one of the two replayed for the other, to himself.
func encodeFingerprint(f [32]byte) string { return base64.RawURLEncoding.EncodeToString(f[:16]) }

func decodeDecided(n *names, raw any, d *store.Decide) (store.Decided, error) {
	var r reply
	r.unpack("decide", raw, 13)
	decided := store.Decided{
		Verdict: r.verdict(), Hold: r.text(), Adopted: r.flag(), Probe: r.flag(), ReleaseSeq: r.count(),
		Owner: r.text(), MayReplay: r.flag(),
	}
	decided.RetryAfter, decided.Lapsed = r.millis(), int(r.count())
	decided.Left = r.units()
	who := r.text()
	holders, ok := n.holders(who)
	if !ok {
		r.fail("the hashes of holders", who)
	}
	decided.Holders = holders
	decided.Limits = r.limits(d)
	answer := r.text()
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

// limits reads those that a decide looked at: name:remaining:reset in ms of each, with ","
// between.
func (r *reply) limits(d *store.Decide) (states []store.LimitState) {
	list := r.text()
	for list != "" {
		var text string
		text, list, _ = strings.Cut(list, ",")
		parts := &reply{op: r.op, values: strings.Split(text, ":")}
		state := store.LimitState{Name: parts.text(), Remaining: int(parts.count()), Reset: parts.millis()}
		switch state.Name {
		case "subject":
			state.Limit = d.SubjectLimit
		case "client":
			state.Limit = d.ClientLimit
		case "slot":
			state.Limit = d.SlotLimit
		default:
			r.fail("limits", text)
		}
		if parts.err != nil || parts.more() {
			r.fail("limits", text)
		}
		states = append(states, state)
	}
	return states
}
