package redisstore

import (
	"sync"

	"github.com/slotgate/slotgate/gate/store"
)

// watches are the waiters of this process, by the name of the key whose change
// they wait for.
type watches struct {
	mu     sync.Mutex
	byName map[string]map[*watch]struct{}
	ended  bool
}

type watch struct {
	watches *watches
	name    string
	c       chan struct{} // holds one hint
}

func newWatches() *watches { return &watches{byName: make(map[string]map[*watch]struct{})} }

// WatchKey returns a watch on what the key's owner does. Before the store has ever
// answered there is nothing to hear of, and the watch stays silent.
func (s *Store) WatchKey(d *store.Decide) store.Watch {
	names := s.secret.names.Load()
	if names == nil {
		return s.watches.add("")
	}
	return s.watches.add(s.keys.KeyRecord(names.key(d.Group, d.Partition, d.Key)))
}

// WatchSlot returns a watch on the room and the units of a slot.
func (s *Store) WatchSlot(pool, slot string) store.Watch {
	return s.watches.add(s.keys.Slot(pool, slot).State)
}

func (w *watches) add(name string) *watch {
	one := &watch{watches: w, name: name, c: make(chan struct{}, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		one.fire()
		return one
	}
	if w.byName[name] == nil {
		w.byName[name] = make(map[*watch]struct{})
	}
	w.byName[name][one] = struct{}{}
	return one
}

func (w *watches) fire(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.byName[name] {
		one.fire()
	}
}

func (w *watches) fireAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fireLocked()
}

func (w *watches) fireLocked() {
	for _, group := range w.byName {
		for one := range group {
			one.fire()
		}
	}
}

// end fires all watches, and those that come later.
func (w *watches) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.fireLocked()
}

// C fires at least once after a change.
func (w *watch) C() <-chan struct{} { return w.c }

// Close ends the watch. It may be called twice.
func (w *watch) Close() {
	w.watches.mu.Lock()
	defer w.watches.mu.Unlock()
	group := w.watches.byName[w.name]
	delete(group, w)
	if len(group) == 0 {
		delete(w.watches.byName, w.name)
	}
}

func (w *watch) fire() {
	select {
	case w.c <- struct{}{}:
	default: // it has not been read since the last hint
	}
}
