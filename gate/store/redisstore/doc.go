// Package redisstore keeps slots, holds and keys in Redis, one atomic script for each
// call (package luascripts), or for each step of it on a cluster, so that any number of
// gates may share them.
//
// # One call
//
// A call has Options.Timeout in all. Its first attempt gets two fifths of it; when
// that ends without a reply, the same call is sent once more, with the same id and
// marked as resent, over a new connection, in what is left. Every script may run
// twice: the second run finds what the first did. No script is ever repeated by the
// client library: its retries are off, or opted out of. A script that Redis does not
// know is sent whole within the same attempt. What a reply does not say is never
// guessed: a reply of another shape is a store.Error of KindReply.
//
// Refusals are replies, too, and final but for those by a server that is not the one to
// ask: READONLY, by a master that became a replica, counts as no reply, and a new
// connection may lead to the right one. MOVED and ASK are followed, three times at
// most. TRYAGAIN, which a call gets while the hash slot of its keys is moved to another
// shard, is waited out for as long as the call has. LOADING, MASTERDOWN, CLUSTERDOWN,
// NOREPLICAS, MISCONF, BUSY, NOAUTH, WRONGPASS, NOPERM, CROSSSLOT are failures of
// KindServer, OOM is one of KindFull; none of them has run, and all but OOM count for
// the breaker, as do failures of transport. A script that a user's rights end in the
// middle is of KindReply, and may have run in part.
//
// # Topologies
//
// Standalone: the first address. A name is looked up for every new connection.
//
// Sentinel: all sentinels are asked whenever a connection is opened, at once, and the
// one that knows of the latest failover is believed when most have answered, or all
// that will. They are followed for failovers, too: connections to a server that is the
// master no more are closed. Bookings go on as soon as the sentinels name a new master.
//
// Cluster: which master has which hash slots is asked every 5 s, and before the second
// attempt of a call, once for all that fail at the same time. With
// cluster-require-full-coverage, the default of Redis, every shard refuses
// (CLUSTERDOWN) while one has no master. Reads that are no scripts may be repeated by
// the library.
//
// TLS takes the name in the certificate to be that of each address, also of those that
// sentinels and cluster nodes tell: there it must be good for IP addresses, or the
// servers must announce names.
//
// The server must be Redis 7 or say the same. Valkey speaks the same protocol; nothing
// has been tested with it.
//
// # Runs
//
// (package store, "Runs") On a cluster each shard has a run, which stands in the lowest
// hash slot that its master serves. A script is told the run of the very server that it
// is sent to, and beside it those of the other shards: hash slots are moved with their
// data, so what was verified on one shard stays so on another. One hole is known: a slot
// whose first writes after a move are lost, because its new shard fails over, still has
// its old shard's run and is believed. A gate that starts after a move, and finds no run
// in the lowest hash slot that there is now, names one: gates that know the shard take the
// name for another of the same run, while for the new gate slots of the shard count as
// learned until one of those has written them. That any shard has changed is noted on all, so
// that slots which no shard knows count as learned.
//
// # Cluster
//
// (design 3.7) A slot and all of its own has one hash tag; a key, a limit, what a subject
// has in a pool, a pool's index, looks and outbox each have another. So a call takes
// several steps there, each one script on one shard, made of the same parts that a single
// call runs elsewhere:
//
//   - Decide claims the key, which fixes the hold; charges the limits; counts the hold for
//     its subject in the pool (max_per_subject); asks the slot. What was taken is given
//     back when a later step refuses, and twins are woken. Where the key or a limit refuses,
//     or the id may have been here, the slot is looked at all the same: what it knows of
//     the id goes first. Two steps for a booking with a key, three to six with limits and
//     max_per_subject, one more for a refusal.
//   - Settle writes the reference, which alone means nothing, then settles the slot, then
//     the key (H20), then tells the pool.
//   - Touch marks the slot and takes forced holds, then claims their keys, then tells the
//     pool.
//
// A gate may die between any two steps, and each step may be repeated or arrive late:
// nothing is oversold or forwarded twice. A claim that is left is waited out by its lease,
// after which the outcome is unknown: with RetryUnknown the next request finds the hold
// booked and forwards nothing (H21), or gone, and takes a new one (H22); without, it is
// unknown for the key's ttl though nothing may have been forwarded. What is left counted in
// a pool goes with the hold's time. A settlement or touch that fails on the way is finished
// by the same call made again. What a dead gate did not tell the pool of holds is told when
// their ledger is shipped: how they stand then, for what the ledger says may be over.
//
// What differs from one server, for a moment or for good:
//
//   - A request whose slot then refuses has a claim for the time of a call: others with its
//     key are twins meanwhile, and a slot that a twin asks for may not exist yet. In the
//     same way another booking of the subject may find the pool full for a call's time.
//   - Times are each shard's own: the clocks of a cluster's servers must agree to less than
//     the spare time of a lease (a few hundred ms; NTP does).
//   - The outbox is filled from the ledgers, within a second, by the gates that touched
//     the slots, and each minute by one that looks at all slots of a pool: every transition
//     at least once, in order for a slot unless it comes twice. A slot that makes more than
//     20,000 transitions before any gate ships them loses the oldest.
//   - The index is told of a slot before a gate first touches it, so it may name one that
//     never came to be; a list leaves it out. When the index is lost with its shard, it is
//     told again as slots are touched.
//   - A look that a slot asks for is planned in the background, and may be planned late
//     while the pool's shard is away; up to ten minutes late if the gate dies then. No sold
//     out rests on an old look for that: a decide asks for one itself.
//   - With keep_unknown, a hold of a gate that died right after its decide counts in the
//     pool for the hold's time, and again once its ledger has been shipped; its slot's units
//     it keeps throughout.
//   - A settlement of a booking that the store had never seen, whose gate dies between slot
//     and key, writes its key only if it is made again within the copy window.
//
// # Rights
//
// deploy/redis has the least that a user must be allowed, by topology; tests start servers
// with those very files.
//
// # Batches
//
// A call is three steps, so that calls can be batched: encode (names, KEYS and
// ARGV), run, decode.
//
// The decides and settles of all requests share pipelines, of one server each (batcher):
// each goes at once as long as fewer than three exchanges are under way, with those that are
// made at the same moment. Of those that come meanwhile a third goes when one of these ends,
// 16 at least where so many wait, up to 128 of them and 256 KiB of answers. Whoever finds the
// server idle waits for nobody but the processor, and a far one has three connections at work.
// Other scripts have connections of their own, for their replies may be long.
//
// What a call is made of is used again once it has been answered, unless it was sent twice.
//
// Each call has its own time all the same: one whose caller gives up while it waits is never
// sent, one that was sent may have run (store.Error.Maybe). A batch has the time of a first
// attempt. When no exchange has begun for an eighth of that, what waits goes over another
// connection: what is slow stalls nobody. No more than 8192 calls wait for a server.
//
// An error reply is its own call's only. When a connection breaks, all calls on it fail; each
// is repeated as any is, by itself, so that what one of them does to a connection happens to
// no other again. Replies are given out when all of a batch are there and the last is that of
// a PING which ends each: with one too many or too few, nobody is given another's.
//
// Connections are the client library's, which looks at an idle one before it is used again:
// what a server closed meanwhile costs no call its attempt.
//
// # What stands in Redis
//
// The keys are listed at luascripts.Keys and the fields at the head of the scripts'
// parts. Idempotency keys, scopes, subjects and client addresses appear in names
// only as HMAC-SHA-256 under a secret, cut to 128 bits. A secret that is not
// configured is made once and shared through the store, where it lives for 400 days
// and is renewed by every running gate; if the store loses its data, a running gate
// puts its secret back.
//
// Subjects, the backend's references and stored answers stand in values, as text or,
// with Options.EncryptKey, sealed (package seal), each for its own hold or key record.
// One that no key opens is as good as lost: the key is done without an answer that may be
// given (KeyDone), a subject is not shown, and a booking is not found by its reference.
// Nothing is decided by these texts but by the hashes beside them, so gates with and
// without a key work on the same holds.
//
// Everything has a time to live. A slot's keys live for Retain after its last
// change.
package redisstore
