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
// Cluster: which master has which hash slots is asked every 5 s, and after any failure
// of transport, a few times a second at most and beside the calls. With
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
// its old shard's run and is believed. That any shard has changed is noted on all, so
// that slots which no shard knows count as learned.
//
// # Rights
//
// A user needs no more than this, with another prefix in its place; config|get and scan
// are for warnings at the start only, cluster and asking for a cluster:
//
//	ACL SETUSER gate on >PASSWORD resetkeys ~slotgate:* resetchannels &slotgate:n -@all
//	  +ping +info +time +eval +evalsha +script|load +get +set +mget +del +pexpire +pttl
//	  +hget +hset +hdel +hmget +hgetall +zadd +zrem +zcount +zscore +zrange
//	  +zrangebyscore +zrevrangebyscore +zremrangebyscore +xadd +xtrim +xrange +xrevrange
//	  +publish +subscribe +unsubscribe +config|get +scan +cluster|slots +cluster|nodes
//	  +asking
//
// # Batches
//
// A call is three steps, so that calls can be batched: encode (names, KEYS and
// ARGV), run, decode.
//
// # What stands in Redis
//
// The keys are listed at luascripts.Keys and the fields at the head of the scripts'
// parts. Idempotency keys, scopes, subjects and client addresses appear in names
// only as HMAC-SHA-256 under a secret, cut to 128 bits. A secret that is not
// configured is made once and shared through the store, where it lives for 400 days
// and is renewed by every running gate; if the store loses its data, a running gate
// puts its secret back. A subject's text stands in the values of its holds.
//
// Everything has a time to live. A slot's keys live for Retain after its last
// change.
package redisstore
