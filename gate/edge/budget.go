package edge

import "sync/atomic"

// Budget counts bytes held in memory up to a bound. It is safe for concurrent
// use.
type Budget struct {
	max  int64
	used atomic.Int64
}

// NewBudget makes a budget of max bytes.
func NewBudget(max int64) *Budget { return &Budget{max: max} }

// Take reserves n bytes, or reserves nothing and returns false.
func (b *Budget) Take(n int64) bool {
	if b.used.Add(n) <= b.max {
		return true
	}
	b.used.Add(-n)
	return false
}

// Give returns n bytes.
func (b *Budget) Give(n int64) { b.used.Add(-n) }

// Used is the number of bytes reserved now.
func (b *Budget) Used() int64 { return b.used.Load() }
