package upstream

import (
	"bufio"
	"io"
	"net/http/httputil"

	"github.com/slotgate/slotgate/rules"
)

// body reads the body of an answer to its end as the framing tells. It returns
// io.EOF only there: a body that was cut is io.ErrUnexpectedEOF.
type body struct {
	br     *bufio.Reader
	left   int64 // of a body of known length
	chunks io.Reader
	framed bool // false: the end of the connection ends it
	ended  bool

	announced []string // trailers
	trailers  []rules.Field
}

// begin makes b the body behind a head.
func (b *body) begin(br *bufio.Reader, framing int64) {
	b.br, b.framed = br, true
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
	if b.trailers, err = readTrailers(b.br, b.announced); err != nil {
		return n, err
	}
	b.ended = true
	return n, io.EOF
}

// atEnd reports that the body ended where its framing says and that nothing has
// come behind it: another request may follow on the connection.
func (b *body) atEnd() bool {
	return b.ended && b.framed && b.br.Buffered() == 0
}
