package upstream

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

const (
	firstRead = 4 << 10   // where the length is not known
	trusted   = 64 << 10  // how much of an announced length is allocated at once
	keepBelow = 256 << 10 // the largest buffer that is kept for reuse
)

var errBudget = errors.New("too many bytes are buffered at once (server.max_buffered)")

// buffer is pooled memory that holds one answer's body, counted in the budget.
type buffer struct {
	b      []byte
	budget Budget
	taken  int64
}

var buffers = sync.Pool{New: func() any { return &buffer{} }}

// readAll reads a body of at most limit bytes. The caller calls release when it
// is done with the bytes.
func (c *Client) readAll(b *body, framing, limit int64) (*buffer, error) {
	if framing > limit {
		return nil, fmt.Errorf("the backend's answer is %d bytes long, more than the %d that are kept", framing, limit)
	}
	buf := buffers.Get().(*buffer)
	buf.budget, buf.b = c.budget, buf.b[:0]
	if err := buf.fill(b, framing, limit); err != nil {
		buf.release()
		return nil, err
	}
	return buf, nil
}

func (buf *buffer) fill(b *body, framing, limit int64) error {
	if b.ended {
		return nil
	}
	first := int64(firstRead)
	if framing > 0 {
		first = min(framing, trusted)
	}
	if !buf.reserve(first) {
		return errBudget
	}
	for {
		n, err := b.Read(buf.b[len(buf.b):cap(buf.b)])
		buf.b = buf.b[:len(buf.b)+n]
		switch {
		case int64(len(buf.b)) > limit:
			return fmt.Errorf("the backend's answer is longer than the %d bytes that are kept", limit)
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case len(buf.b) == cap(buf.b) && !buf.reserve(2*int64(cap(buf.b))):
			return errBudget
		}
	}
}

// reserve makes room for size bytes in all, or for what the memory has anyway.
func (buf *buffer) reserve(size int64) bool {
	size = max(size, int64(cap(buf.b)))
	if !buf.budget.Take(size - buf.taken) {
		return false
	}
	buf.taken = size
	if size > int64(cap(buf.b)) {
		grown := make([]byte, len(buf.b), size)
		copy(grown, buf.b)
		buf.b = grown
	}
	return true
}

func (buf *buffer) release() {
	if buf.taken > 0 {
		buf.budget.Give(buf.taken)
	}
	buf.taken, buf.budget = 0, nil
	if cap(buf.b) > keepBelow {
		buf.b = nil
	}
	buffers.Put(buf)
}
