package child

import "sync"

// maxTail bounds what is kept of a child's output, in bytes.
const maxTail = 16 << 10

// tail is an io.Writer that keeps the last bytes written to it.
type tail struct {
	mu    sync.Mutex
	bytes []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes = append(t.bytes, b...)
	if excess := len(t.bytes) - maxTail; excess > 0 {
		t.bytes = append(t.bytes[:0], t.bytes[excess:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.bytes)
}
