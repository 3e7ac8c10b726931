package memstore

import "sync/atomic"

// What one of each costs in bytes beside its texts: the struct, its entries in
// maps and queues with their slack, and the allocator's rounding. A test holds the
// sum against the heap.
const (
	slotCost    = 900
	holdCost    = 800
	attemptCost = 250
	keyCost     = 500
	answerCost  = 350
	finishCost  = 250
	bucketCost  = 300
	quotaCost   = 200
	entryCost   = 200
	dirtyCost   = 250
	cancelCost  = 400
	refCost     = 250
	lookCost    = 300
)

// account is the memory in use, by estimate, and its bound.
type account struct {
	used  atomic.Int64
	limit int64 // 0: none
}

// reserve charges n bytes, or nothing and false when they do not fit.
func (a *account) reserve(n int64) bool {
	if used := a.used.Add(n); a.limit > 0 && used > a.limit {
		a.used.Add(-n)
		return false
	}
	return true
}

// charge charges n bytes that must be kept whether they fit or not: the few that a
// settlement needs.
func (a *account) charge(n int64) { a.used.Add(n) }

func (a *account) free(n int64) { a.used.Add(-n) }
