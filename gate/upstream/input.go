package upstream

import (
	"bufio"
	"bytes"
	"io"
	"sync"
)

// shortHead is the size of the buffer that a connection has, and is read through until a
// head turns out to be longer. Nearly none is, and with a buffer of max_header for each
// connection the buffers would be most of the gate's memory.
const shortHead = 4 << 10

// input is what comes on a connection, while one exchange uses it.
type input struct {
	*bufio.Reader // that of conn, or a longer one
	conn          *conn
	readers       *readers
}

// lengthen goes on with a longer buffer, and what the present one holds; false where
// there is no longer one.
func (in *input) lengthen() bool {
	if in.readers == nil || in.Size() >= in.readers.longest {
		return false
	}
	held, _ := in.Peek(in.Buffered())
	short := in.Reader
	in.Reader = in.readers.get(io.MultiReader(bytes.NewReader(held), in.conn))
	_, _ = in.Peek(len(held)) // now it holds them, if there are any
	_, _ = short.Discard(len(held))
	return true
}

// free gives the longer buffer back, if there is one.
func (in *input) free() {
	if in.Reader != in.conn.in {
		in.readers.put(in.Reader)
	}
}

// lengthenFor goes on with the longer buffer for a body that is read piece by piece, and
// not all here already: a system call for each 4 KiB would be the most of its cost.
func (in *input) lengthenFor(framing int64) {
	switch held, _ := in.Peek(in.Buffered()); {
	case framing == noBody, framing >= 0 && framing <= joinBelow:
	case framing == chunked && bytes.HasSuffix(held, []byte("\r\n0\r\n\r\n")):
	default:
		in.lengthen()
	}
}

// readers are long buffers that nobody uses.
type readers struct {
	unused  sync.Pool
	longest int // bounds the head of an answer, in bytes
}

func (r *readers) get(from io.Reader) *bufio.Reader {
	if br, ok := r.unused.Get().(*bufio.Reader); ok {
		br.Reset(from)
		return br
	}
	return bufio.NewReaderSize(from, r.longest)
}

func (r *readers) put(br *bufio.Reader) {
	br.Reset(nil)
	r.unused.Put(br)
}
