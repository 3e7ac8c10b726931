package upstream

import (
	"bufio"
	"bytes"
	"io"
	"sync"
)

// shortHead is the size of the buffer that a connection is read through until a head
// turns out to be longer. Nearly none is, and with a buffer of max_header for each
// connection in use the buffers would be most of the gate's memory.
const shortHead = 4 << 10

// input is what comes on a connection.
type input struct {
	*bufio.Reader
	conn    io.Reader
	readers *readers
}

// lengthen goes on with a longer buffer, and what the present one holds; false where
// there is no longer one.
func (in *input) lengthen() bool {
	if in.readers == nil || in.Size() >= in.readers.longest {
		return false
	}
	held, _ := in.Peek(in.Buffered())
	rest := io.MultiReader(bytes.NewReader(held), in.conn)
	short := in.Reader
	in.Reader = take(&in.readers.long, rest, in.readers.longest)
	_, _ = in.Peek(len(held)) // now it holds them, if there are any
	in.readers.put(short)
	return true
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

// readers are read buffers that nobody uses, of two sizes.
type readers struct {
	short, long sync.Pool
	longest     int // bounds the head of an answer, in bytes
}

func (r *readers) get(c *conn) input {
	return input{Reader: take(&r.short, c, min(shortHead, r.longest)), conn: c, readers: r}
}

func take(pool *sync.Pool, from io.Reader, size int) *bufio.Reader {
	if br, ok := pool.Get().(*bufio.Reader); ok {
		br.Reset(from)
		return br
	}
	return bufio.NewReaderSize(from, size)
}

func (r *readers) put(br *bufio.Reader) {
	br.Reset(nil)
	if br.Size() > shortHead {
		r.long.Put(br)
	} else {
		r.short.Put(br)
	}
}
