// Package memstore keeps slots, holds and keys in this process: the store of a
// gate that runs alone. It gives the same verdicts as every other store; its state
// ends with the process.
//
// # Shape
//
// A call is a visit: it locks the key's shard and the slot's shard, looks and
// writes, unlocks, and then wakes watchers. What a transition does to a slot, a
// hold, a key, a mark or a bucket is in the file of that name and knows neither
// locks nor clock. Locks are taken in this order and no other:
//
//	key shard, slot shard, then at most one of: quota shard, bucket shard,
//	then at most one of: reference shard, agenda
//
// The agenda is when slots are due for a look; the leaders of pools have a lock by
// themselves. Watchers have a lock of their own, taken when all others are released.
//
// # Memory
//
// What is kept is charged to an account of MaxMemory bytes by an estimate that is
// held against the real heap in the tests. A new slot, hold, key or bucket that
// does not fit is a failure of the store (store.KindFull): nothing alive is ever
// evicted. A settlement of a known hold never fails for want of memory: its answer
// is then kept without its body, and the ledger gives up its oldest entry.
//
// Everything has an end: keys by their ttl, answers when their twins stop waiting,
// finished holds, with their references, and cancels after the copy window, looks'
// leases when they end, buckets when they are full again, slots
// when they have been idle for retain. Each call drops a few of those that are due
// in its shards, a goroutine that ends with Close the rest.
package memstore
