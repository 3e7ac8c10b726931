package luascripts

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// Keys builds the names of a store's keys. What must change in one step shares a
// hash tag {…}, so that it lives on one shard of a cluster:
//
//	PREFIX:s:{POOL:SLOT}            slot, with :due :log :look :l:RULE :x:ID beside it
//	PREFIX:k:{HASH}                 key record, with :a:OWNER :x:ID beside it
//	PREFIX:l:{s:RULE:HASH}          a limit by subject; c: by client; :x:CALL beside it
//	PREFIX:p:{POOL:HASH}            a subject's units in a pool, with :x:CALL beside it
//	PREFIX:i:{POOL}                 index of a pool's slots
//	PREFIX:o:{POOL}                 outbox of a pool, see below; :sweep beside it
//	PREFIX:d:{POOL}                 a pool's slots by when a look at them is due
//	PREFIX:lead:{POOL}              who looks, with :fence :x:CALL beside it
//	PREFIX:b:{HASH}                 a booking's reference: HOLD|SLOT
//	PREFIX:secret                   what the hashes are keyed with
//	PREFIX:epoch                    the run that the store's data is in; on a cluster
//	                                :{TAG} for each shard
//	PREFIX:gates                    the gates that run, and what they decide by
//	PREFIX:none                     placeholder for a key that plays no part; on a
//	                                cluster that is the call's first key
//	PREFIX:n                        the channel of notices (no key)
//
// Pool, slot and rule are encoded, so that no two of them meet and none leaves its
// place.
//
// On a cluster all keys of a script have one tag. What a script of a slot would write
// under its pool's tags, it tells the gate, which carries it there: at once what a subject
// has, soon when a look is due and what goes to the outbox. The index is told before.
//
// # Outbox
//
// The outbox is a stream of all transitions of a pool's holds, written in the same step
// as the transition itself, for programs outside the gate. It is written from a second
// after a program has made it on: a pool whose transitions nobody reads has none. On a
// cluster it is written within a second or so, from the slots' ledgers, and an entry may
// come twice: with the same n and l. Its entries have the fields
//
//	n  the slot              t  when, in milliseconds since 1970
//	h  the hold              s  the subject's hash, "" none
//	u  units                 f  the state before, "" for a new hold
//	o  the state after       c  the cause: decide, booked, cancel, lapse, …
//	l  its id in the slot's ledger (on a cluster only)
//
// A state is held, pending, unknown, confirmed, released or lapsed. The stream keeps
// about 100,000 entries, and goes when nothing has happened in the pool for retain. A
// program reads it with a consumer group of its own, so that it may stop and go on:
//
//	XGROUP CREATE slotgate:o:{lessons} billing 0 MKSTREAM
//	XREADGROUP GROUP billing worker-1 COUNT 100 BLOCK 5000 STREAMS slotgate:o:{lessons} >
//	XACK slotgate:o:{lessons} billing ID…                       after each entry is done
//	XAUTOCLAIM slotgate:o:{lessons} billing worker-2 60000 0-0  what a dead worker left
//
// An entry that is not acknowledged is given out again, so that each is seen at least
// once; ID tells one that was seen before. What MKSTREAM makes has no time to live until
// the first entry.
type Keys struct{ Prefix string }

// SlotKeys are the keys of one slot. Each Tombstone and Limit is one more.
type SlotKeys struct{ State, Due, Ledger, Look string }

// Slot names the keys of a slot.
func (k Keys) Slot(pool, slot string) SlotKeys {
	state := k.Prefix + ":s:{" + Encode(pool) + ":" + Encode(slot) + "}"
	return SlotKeys{State: state, Due: state + ":due", Ledger: state + ":log", Look: state + ":look"}
}

// Tombstone remembers a finished id, or a refused call.
func (s SlotKeys) Tombstone(id string) string { return s.State + ":x:" + id }

// Limit is the slot's limit under a rule.
func (s SlotKeys) Limit(rule string) string { return s.State + ":l:" + Encode(rule) }

// KeyRecord is the record of one idempotency key, named by its hash.
func (k Keys) KeyRecord(hash string) string { return k.Prefix + ":k:{" + hash + "}" }

// Answer is what the owner of a key record leaves for its twins.
func (k Keys) Answer(record, owner string) string { return record + ":a:" + owner }

// KeyTombstone remembers a finished id that went under no slot.
func (k Keys) KeyTombstone(record, id string) string { return record + ":x:" + id }

// SubjectLimit and ClientLimit are a rule's limits for one subject or client,
// named by its hash.
func (k Keys) SubjectLimit(rule, hash string) string { return k.limit("s", rule, hash) }
func (k Keys) ClientLimit(rule, hash string) string  { return k.limit("c", rule, hash) }

// LimitTombstone remembers a call that charged a limit and was sent twice.
func (k Keys) LimitTombstone(limit, call string) string { return limit + ":x:" + call }

func (k Keys) limit(kind, rule, hash string) string {
	return k.Prefix + ":l:{" + kind + ":" + Encode(rule) + ":" + hash + "}"
}

// PoolSubject is what a subject, named by its hash, has in a pool.
func (k Keys) PoolSubject(pool, hash string) string {
	return k.Prefix + ":p:{" + Encode(pool) + ":" + hash + "}"
}

// PoolSubjectTombstone remembers a call that counted a hold and was sent twice.
func (k Keys) PoolSubjectTombstone(poolSubject, call string) string {
	return poolSubject + ":x:" + call
}

// Index lists a pool's slots.
func (k Keys) Index(pool string) string { return k.Prefix + ":i:{" + Encode(pool) + "}" }

// Outbox is the stream of a pool's transitions.
func (k Keys) Outbox(pool string) string { return k.Prefix + ":o:{" + Encode(pool) + "}" }

// Sweep is held by the gate that last looked for ledger entries which are not in a pool's
// outbox yet.
func (k Keys) Sweep(pool string) string { return k.Outbox(pool) + ":sweep" }

// Looks orders a pool's slots by when a look at truth is due.
func (k Keys) Looks(pool string) string { return k.Prefix + ":d:{" + Encode(pool) + "}" }

// LeaderKeys are the keys of the leadership of one pool. Each Tombstone is one more.
type LeaderKeys struct{ Leader, Fence string }

// Leader names the keys of a pool's leadership.
func (k Keys) Leader(pool string) LeaderKeys {
	leader := k.Prefix + ":lead:{" + Encode(pool) + "}"
	return LeaderKeys{Leader: leader, Fence: leader + ":fence"}
}

// Tombstone remembers a call that changed the leadership.
func (l LeaderKeys) Tombstone(call string) string { return l.Leader + ":x:" + call }

// Reference is what a booking's reference, named by its hash, stands for.
func (k Keys) Reference(hash string) string { return k.Prefix + ":b:{" + hash + "}" }

// Secret is the shared key of all hashes.
func (k Keys) Secret() string { return k.Prefix + ":secret" }

// Epoch holds the run that the store's data is in.
func (k Keys) Epoch() string { return k.Prefix + ":epoch" }

// Gates lists the gates that run.
func (k Keys) Gates() string { return k.Prefix + ":gates" }

// None stands where a script's key plays no part.
func (k Keys) None() string { return k.Prefix + ":none" }

// Channel carries notices: the State of a slot, or the name of a key record.
func (k Keys) Channel() string { return k.Prefix + ":n" }

// encodedMax bounds a name's part of a key; what is longer is named by its hash.
const encodedMax = 192

// Encode turns any text into letters, digits and -._~%, one to one (as percent
// encoding, RFC 3986 section 2.1). A long text becomes "#" and its SHA-256.
func Encode(text string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; unreserved(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	if b.Len() <= encodedMax {
		return b.String()
	}
	sum := sha256.Sum256([]byte(text))
	return "#" + base64.RawURLEncoding.EncodeToString(sum[:])
}

func unreserved(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return c == '-' || c == '.' || c == '_' || c == '~'
}
