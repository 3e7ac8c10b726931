package gate

import (
	"context"
	"sync"
)

// maxLooks bounds the looks at truth that shadows have begun.
const maxLooks = 32

// looks are looks at truth that nobody waits for. Beyond maxLooks none is begun: the next
// request of the slot asks again.
type looks struct {
	mu      sync.Mutex
	running map[slotName]struct{}
	all     sync.WaitGroup
}

type slotName struct{ pool, slot string }

// begin looks at a slot, unless that is being done.
func (l *looks) begin(book *rulebook, pool, slot string) {
	name := slotName{pool, slot}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, looking := l.running[name]; looking || len(l.running) >= maxLooks || book.Truth == nil {
		return
	}
	if l.running == nil {
		l.running = make(map[slotName]struct{})
	}
	l.running[name] = struct{}{}
	book.running.Add(1) // its truth is in use
	l.all.Go(func() {
		defer book.end()
		defer func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			delete(l.running, name)
		}()
		book.Truth.Load(context.Background(), pool, slot)
	})
}
