package redisstore

import "slices"

const (
	// usualBatch, maxBatch and maxBatchBytes bound what is sent at once (take). The bytes are
	// those of stored answers: the rest of a call is short.
	usualBatch    = 16
	maxBatch      = 128
	maxBatchBytes = 256 << 10
	// maxQueued is how many calls may wait for a server.
	maxQueued = 8192
)

// line is the calls that wait to be sent, in the order of coming. Thousands may leave it at
// the same moment, so who leaves is passed over later, and the line closes up when most of
// it has left. It is guarded by its batcher's lock.
type line struct {
	calls   []*waiter
	waiting int // of calls, the rest has left
}

// join reports whether there was room.
func (l *line) join(w *waiter) bool {
	if l.waiting == maxQueued {
		return false
	}
	w.inLine = true
	l.calls = append(l.calls, w)
	l.waiting++
	return true
}

// leave reports whether the call was in line: it is never sent then.
func (l *line) leave(w *waiter) bool {
	if !w.inLine {
		return false
	}
	w.inLine = false
	l.waiting--
	l.closeUp()
	return true
}

// closeUp gives back the places of those who left, once they are most.
func (l *line) closeUp() {
	if 2*l.waiting < len(l.calls) {
		l.calls = slices.DeleteFunc(l.calls, func(w *waiter) bool { return !w.inLine })
	}
}

// take returns the calls that are sent next, at least one where any waits. Redis answers a
// batch when it has run all of it, so what waits is shared between the exchanges that there
// can be: this process has some replies to work with while Redis works on other calls.
func (l *line) take() []*waiter {
	most := min(l.waiting, max(usualBatch, l.waiting/maxTrips), maxBatch)
	batch := make([]*waiter, 0, most)
	passed, size := 0, 0
	for _, w := range l.calls {
		if w.inLine {
			if len(batch) == most || len(batch) > 0 && size+w.bytes > maxBatchBytes {
				break
			}
			w.inLine = false
			size += w.bytes
			batch = append(batch, w)
		}
		passed++
	}
	l.calls = slices.Delete(l.calls, 0, passed)
	l.waiting -= len(batch)
	l.closeUp()
	return batch
}
