// Package lograte bounds how often a log says the same. What is left out is counted,
// and the count is logged.
package lograte

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// Limiter lets a few lines of each kind through in a time, and counts the others. Kinds
// must be of a bounded number. It is safe for concurrent use; where nothing is let
// through, Take costs one atomic addition.
type Limiter struct {
	lines  int64
	per    time.Duration
	report func(kind string, left int64)

	kinds  atomic.Pointer[map[string]*kind] // replaced as a whole
	mu     sync.Mutex
	closed atomic.Bool
}

// kind is what was asked for in the time that began with the first line.
type kind struct {
	name  string
	asked atomic.Int64
	timer atomic.Pointer[time.Timer] // ends that time
}

// New makes a limiter that lets lines of each kind through in per, which begins with the
// first of them. At its end report is told how many were left out, if any were.
func New(lines int, per time.Duration, report func(kind string, left int64)) *Limiter {
	l := &Limiter{lines: int64(lines), per: per, report: report}
	l.kinds.Store(&map[string]*kind{})
	return l
}

// Take reports whether a line of that kind is to be written.
func (l *Limiter) Take(name string) bool {
	k := (*l.kinds.Load())[name]
	if k == nil {
		k = l.add(name)
	}
	asked := k.asked.Add(1)
	if asked == 1 {
		k.timer.Store(time.AfterFunc(l.per, func() { l.end(k) }))
		if l.closed.Load() {
			l.end(k) // Close may have come before the timer
		}
	}
	return asked <= l.lines
}

func (l *Limiter) add(name string) *kind {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := *l.kinds.Load()
	if k := known[name]; k != nil {
		return k
	}
	k := &kind{name: name}
	more := maps.Clone(known)
	more[name] = k
	l.kinds.Store(&more)
	return k
}

// end begins a new time for a kind.
func (l *Limiter) end(k *kind) {
	if t := k.timer.Load(); t != nil {
		t.Stop()
	}
	if left := k.asked.Swap(0) - l.lines; left > 0 {
		l.report(k.name, left)
	}
}

// Close reports what was left out so far. Lines that are asked for afterwards are let
// through. It may be called twice.
func (l *Limiter) Close() {
	l.closed.Store(true)
	for _, k := range *l.kinds.Load() {
		l.end(k)
	}
}
