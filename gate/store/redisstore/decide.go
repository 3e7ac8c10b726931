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
func (s *Store) Decide(ctx context.Context, d *store.Decide) (decided store.Decided, err error) {
	if err := checkCall(d.Pool, unitsOf(d.Action, d.Units), d.ID, d.Target); err != nil {
		return decided, err
	}
	if d.Units > maxUnits {
		return store.Decided{Verdict: decision.OverCapacity, Left: -1}, nil
	}
	ctx, timer := within(ctx, s.timeout)
	defer timer.stop()
	names, err := s.current(ctx)
	if err != nil {
		return decided, err
	}
	if s.sharded() {
		decided, err = s.decideInSteps(ctx, names, d)
	} else {
		c := s.encodeDecide(names, d, slotPart{})
		var raw any
		if raw, err = s.run(ctx, c); err == nil {
			c.free()
			decided, err = decodeDecided(names, raw, d)
		}
	}
	s.openStored(names, d, &decided)
	return decided, err
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

// encodeDecide makes the call; part is what a cluster's slot is told besides. It hashes, then
// names, then packs: each step has the stack of the connection for itself.
func (s *Store) encodeDecide(n *names, d *store.Decide, part slotPart) *call {
	by := decideNames{subject: n.subject(d.Subject), scope: n.scope(d.Scope), key: part.key}
	if d.Key != "" {
		by.hash = n.key(d.Group, d.Partition, d.Key)
		by.key = shorten(by.hash)
	}
	c := newCall("decide", luascripts.Decide)
	s.nameDecide(c, &by, n, d)
	s.tellDecide(c, &by, d)
	s.tellUnusual(c, d, &part)
	return c
}

// decideNames are the names that a decide goes by in the store.
type decideNames struct {
	subject, scope, hash                 string // hash is that of the key
	key                                  string // short; it may be on another shard
	state                                string
	subjectLimit, clientLimit, slotLimit bool // there is one
}

// nameDecide makes KEYS.
func (s *Store) nameDecide(c *call, by *decideNames, n *names, d *store.Decide) {
	none := s.none
	slot := s.noSlot()
	tombstone, callTombstone, slotLimit, poolSubject, targetTombstone := none, none, none, none, none
	record, awaited, subjectLimit, clientLimit := none, none, none, none
	gated, keyed := d.Pool != "", d.Key != ""
	callID := s.nextCall()

	if keyed {
		record = s.keys.KeyRecord(by.hash)
		if d.Await != "" {
			awaited = s.keys.Answer(record, d.Await)
		}
	}
	switch {
	case gated:
		slot = s.keysOf(d.Pool, d.Slot, d.Truth)
		tombstone, callTombstone = slot.Tombstone(d.ID), slot.Tombstone(callID)
		if d.MaxPerSubject > 0 && !s.sharded() {
			poolSubject = s.keys.PoolSubject(d.Pool, by.subject)
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
	if !d.SubjectLimit.IsZero() && by.subject != "" {
		subjectLimit = s.keys.SubjectLimit(d.Rule, by.subject)
	}
	if !d.ClientLimit.IsZero() && d.Client.IsValid() {
		clientLimit = s.keys.ClientLimit(d.Rule, n.client(d.Client.Unmap().String()))
	}
	by.state = slot.State
	by.subjectLimit, by.clientLimit, by.slotLimit = subjectLimit != none, clientLimit != none, slotLimit != none
	c.keys = s.needed(append(slot.first(slices.Grow(c.keys, 15)), tombstone, callTombstone, record, slot.looks,
		poolSubject, slotLimit, subjectLimit, clientLimit, awaited, targetTombstone))
}

// tellDecide packs what the script is told of every call.
func (s *Store) tellDecide(c *call, by *decideNames, d *store.Decide) {
	gated, keyed := d.Pool != "", d.Key != ""
	usual := gated && d.Action == store.Book && d.Truth == store.NoTruth && d.MaxPerSubject == 0 && !d.Line && d.Await == "" && !s.sharded()
	opens := int64(0)
	if !d.OpensAt.IsZero() {
		opens = d.OpensAt.UnixMilli()
	}
	all := c.told.flag(usual).flag(false)
	if by.subjectLimit || by.clientLimit || by.slotLimit {
		all = all.list(6).
			limit(d.SubjectLimit, by.subjectLimit && !d.Charged).
			limit(d.ClientLimit, by.clientLimit && !d.Charged).
			limit(d.SlotLimit, by.slotLimit)
	} else {
		all = all.none()
	}
	c.told = all.
		number(s.ahead.Load()).text(d.ID).text("h:", d.ID).text("t:", d.ID).text("u:", by.subject).
		number(d.Units).number(min(d.Capacity, maxUnits)).number(opens).flag(keyed).flag(d.KeepUnknown).millis(repeats(d)).
		text(encodeFingerprint(d.Fingerprint), "|", by.scope).flag(d.BareReplay).
		text(by.subject).text(strconv.FormatInt(d.Units, 10)).text(by.key).text(millis(max(d.KeyTTL, d.Lease))).
		text(s.encodeText(subjectPlace(by.state, d.ID), d.Subject)).number(int64(d.MaxInflight)).
		millis(lifetime(d.Retain, d.HoldTTL, d.Lease)).millis(d.Lease).millis(d.HoldTTL)
}

// tellUnusual adds what the script needs where a call is not a usual one.
func (s *Store) tellUnusual(c *call, d *store.Decide, part *slotPart) {
	c.told = c.told.
		flag(d.Pool != "").text(d.Slot).flag(d.OnePerSubject).number(d.MaxPerSubject).flag(d.Line).
		millis(d.KeyTTL).flag(d.RetryUnknown).millis(d.Wait).flag(d.Await != "").number(int64(d.Action)).
		text(d.Target).flag(d.Unreferenced).text(strconv.Itoa(int(d.Truth))).millis(d.Hot).millis(d.Refresh).
		flag(d.Blind).text(part.under).
		flag(part.subjectFull).flag(part.onlyLook).text(s.channel)
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
