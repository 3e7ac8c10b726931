package gate

import (
	"container/list"
	"sync"
)

// queue holds the requests of one pool that wait in this process for room at the
// backend: a line for each slot, first come first served, so many in all. Only
// the first of a line asks the store for room.
type queue struct{ *lines }

type lines struct {
	mu      sync.Mutex
	size    int
	waiting int
	bySlot  map[string]*list.List // of *place; no empty list is kept
}

// place is a request's place in the line of its slot.
type place struct {
	lines *lines
	slot  string
	entry *list.Element
	first chan struct{} // closed when it becomes the first
}

func newQueue(size int) queue {
	return queue{&lines{size: size, bySlot: make(map[string]*list.List)}}
}

// lined reports that somebody waits for the slot already.
func (q *lines) lined(slot string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bySlot[slot] != nil
}

// join takes the last place in the slot's line; nil when the pool's queue is
// full.
func (q *lines) join(slot string) *place {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting >= q.size {
		return nil
	}
	line := q.bySlot[slot]
	if line == nil {
		line = list.New()
		q.bySlot[slot] = line
	}
	p := &place{lines: q, slot: slot, first: make(chan struct{})}
	p.entry = line.PushBack(p)
	q.waiting++
	if line.Len() == 1 {
		close(p.first)
	}
	return p
}

// len is how many wait in the pool.
func (q *lines) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}

// inLine is how many wait for a slot.
func (q *lines) inLine(slot string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if line := q.bySlot[slot]; line != nil {
		return line.Len()
	}
	return 0
}

func (p *place) isFirst() bool {
	select {
	case <-p.first:
		return true
	default:
		return false
	}
}

// leave gives the place up, admitted or not; the next one comes first.
func (p *place) leave() {
	q := p.lines
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.bySlot[p.slot]
	wasFirst := line.Front() == p.entry
	line.Remove(p.entry)
	q.waiting--
	switch next := line.Front(); {
	case next == nil:
		delete(q.bySlot, p.slot)
	case wasFirst:
		close(next.Value.(*place).first)
	}
}
