package truth

import (
	"sync"
	"time"
)

// maxMissing bounds the slots of a pool that are remembered as missing.
const maxMissing = 8192

// missing remembers for a while the slots that truth does not have, so that
// requests for one of them do not each read the source. When it is full the oldest
// is forgotten. The zero value with keep set is ready.
type missing struct {
	keep time.Duration

	mu    sync.Mutex
	until map[string]time.Time
	order []string // a ring of the remembered, oldest at next
	next  int
}

// add remembers the slot from now on.
func (m *missing) add(slot string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.until[slot]; known {
		m.until[slot] = now.Add(m.keep)
		return
	}
	if m.until == nil {
		m.until = map[string]time.Time{}
	}
	if len(m.order) < maxMissing {
		m.order = append(m.order, slot)
	} else {
		delete(m.until, m.order[m.next])
		m.order[m.next] = slot
		m.next = (m.next + 1) % maxMissing
	}
	m.until[slot] = now.Add(m.keep)
}

// forget lets the slot be looked for again. Its place in the ring stays.
func (m *missing) forget(slot string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.until[slot]; known {
		m.until[slot] = time.Time{}
	}
}

// has reports whether the slot was found missing less than keep ago. What is older
// stays until it is overwritten: it costs no more than the bound.
func (m *missing) has(slot string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now.Before(m.until[slot])
}
