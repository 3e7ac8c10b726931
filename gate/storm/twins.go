package storm

import (
	"context"
	"sync/atomic"
)

// twins ties a request to its repeat: it releases both at the same instant and
// keeps the first result for the comparison.
type twins struct {
	arrived  atomic.Int32
	released chan struct{}
	first    *result // guarded by the tally
}

func newTwins() *twins { return &twins{released: make(chan struct{})} }

// meet returns true to both when both have come, or false when ctx ended first.
func (t *twins) meet(ctx context.Context) bool {
	if t.arrived.Add(1) == 2 {
		close(t.released)
		return true
	}
	select {
	case <-t.released:
		return true
	case <-ctx.Done():
		return false
	}
}

// result is what the tally needs of one answer.
type result struct {
	status   int
	sum      uint64 // of the body, under a seed of this process
	failed   bool   // no answer, or a 5xx
	success  bool
	replayed bool // the server says that it repeats an earlier answer
}

func (r result) sameAnswer(other result) bool {
	return r.status == other.status && r.sum == other.sum
}

// TwinCounts compares the two answers to each request that was sent twice.
type TwinCounts struct {
	Pairs       int `json:"pairs"` // both were sent and ended
	Same        int `json:"same"`  // same status and body
	Differed    int `json:"differed"`
	NotCompared int `json:"not_compared"` // one was a 5xx or a transport error
}

func (c *TwinCounts) add(a, b result) {
	c.Pairs++
	switch {
	case a.failed || b.failed:
		c.NotCompared++
	case a.sameAnswer(b):
		c.Same++
	default:
		c.Differed++
	}
}
