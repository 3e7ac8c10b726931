// Package redisstore keeps slots, holds and keys in Redis 7, one atomic script for
// each call (package luascripts), so that any number of gates may share them.
//
// # One call
//
// A call has Options.Timeout in all. Its first attempt gets two fifths of it; when
// that ends without a reply, the same call is sent once more, with the same id and
// marked as resent, over a new connection, in what is left. Every script may run
// twice: the second run finds what the first did. Nothing else is ever repeated:
// the client library's own retries are off. A script that Redis does not know is
// sent whole within the same attempt. What a reply does not say is never guessed: a
// reply of another shape is a store.Error of KindReply.
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
