package upstream

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http/httputil"
)

// maxTrailers bounds the lines after the last chunk, which are dropped.
const maxTrailers = 64

// body reads the body of an answer to its end as the framing tells. It returns
// io.EOF only there: a body that was cut is io.ErrUnexpectedEOF.
type body struct {
	br     *bufio.Reader
	left   int64 // of a body of known length
	chunks io.Reader
	framed bool // false: the end of the connection ends it
	ended  bool
}

func newBody(br *bufio.Reader, framing int64) *body {
	b := &body{br: br, framed: true}
	switch framing {
	case noBody:
	case chunked:
		b.chunks = httputil.NewChunkedReader(br)
	case untilClose:
		b.framed = false
	default:
		b.left = framing
	}
	b.ended = b.framed && b.chunks == nil && b.left == 0
	return b
}

func (b *body) Read(p []byte) (int, error) {
	if b.ended {
		return 0, io.EOF
	}
	if b.chunks != nil {
		return b.readChunk(p)
	}
	if b.framed && int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.br.Read(p)
	if !b.framed {
		b.ended = err == io.EOF
		return n, err
	}
	b.left -= int64(n)
	switch {
	case b.left == 0:
		b.ended = true
		return n, io.EOF
	case err == io.EOF:
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

func (b *body) readChunk(p []byte) (int, error) {
	n, err := b.chunks.Read(p)
	if err != io.EOF {
		return n, err
	}
	if err := b.skipTrailers(); err != nil {
		return n, err
	}
	b.ended = true
	return n, io.EOF
}

func (b *body) skipTrailers() error {
	for range maxTrailers {
		line, err := b.br.ReadSlice('\n')
		switch {
		case err == io.EOF:
			return io.ErrUnexpectedEOF
		case errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("a trailer of the backend's answer is longer than %d bytes", b.br.Size())
		case err != nil:
			return err
		case len(line) == 1 || len(line) == 2 && line[0] == '\r':
			return nil
		}
	}
	return fmt.Errorf("the backend's answer has more than %d trailers", maxTrailers)
}

// atEnd reports that the body ended where its framing says and that nothing has
// come behind it: another request may follow on the connection.
func (b *body) atEnd() bool {
	return b.ended && b.framed && b.br.Buffered() == 0
}
