package memstore

import (
	"sync"
	"sync/atomic"

	"github.com/slotgate/slotgate/gate/store"
)

// WatchKey fires after the key's owner settled.
func (s *Store) WatchKey(d *store.Decide) store.Watch { return s.keyWatches.watch(keyOf(d)) }

// WatchSlot fires after the slot's room or units changed.
func (s *Store) WatchSlot(pool, slot string) store.Watch {
	return s.slotWatches.watch(slotName{pool, slot})
}

// WatchRun never fires: this store's data go with its process.
func (s *Store) WatchRun() store.Watch { return silent{} }

type silent struct{}

func (silent) C() <-chan struct{} { return nil }
func (silent) Close()             {}

// hub knows who watches what.
type hub[N comparable] struct {
	watching atomic.Int64 // so that nobody pays for a lock when there is no watch

	mu      sync.Mutex
	closed  bool
	watches map[N]map[*watch[N]]struct{}
}

type watch[N comparable] struct {
	hub  *hub[N]
	name N
	c    chan struct{}
}

func (w *watch[N]) C() <-chan struct{} { return w.c }

func (h *hub[N]) watch(name N) store.Watch {
	w := &watch[N]{hub: h, name: name, c: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		close(w.c)
		return w
	}
	if h.watches == nil {
		h.watches = map[N]map[*watch[N]]struct{}{}
	}
	if h.watches[name] == nil {
		h.watches[name] = map[*watch[N]]struct{}{}
	}
	h.watches[name][w] = struct{}{}
	h.watching.Add(1)
	return w
}

// Close ends the watch. It may be called twice.
func (w *watch[N]) Close() {
	h := w.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.watches[w.name][w]; !ok {
		return
	}
	delete(h.watches[w.name], w)
	if len(h.watches[w.name]) == 0 {
		delete(h.watches, w.name)
	}
	h.watching.Add(-1)
}

// fire wakes all who watch a name. One that has not yet read its last wake-up
// needs no other.
func (h *hub[N]) fire(name N) {
	if h.watching.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watches[name] {
		select {
		case w.c <- struct{}{}:
		default:
		}
	}
}

// close ends all watches by closing their channels.
func (h *hub[N]) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, watches := range h.watches {
		for w := range watches {
			close(w.c)
		}
	}
	h.watches = nil
	h.watching.Store(0)
}
