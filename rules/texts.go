package rules

import (
	"strings"
	"sync"
)

// textsPiece is how much memory Texts take at once: that of some ten requests.
const textsPiece = 4 << 10

// Texts make texts that share pieces of memory, so that few of them cost an allocation.
// A text never changes and may be kept, but it keeps its piece: what is remembered for
// longer than a request is to be a copy (strings.Clone). They are safe for concurrent use,
// and meant for it: with a piece for each request under way, pieces would be much of what
// many connections take.
type Texts struct{ pieces sync.Pool }

// Of is string(b). Nil Texts give each text memory of its own.
func (t *Texts) Of(b []byte) string {
	if t == nil || len(b) > textsPiece/4 {
		return string(b)
	}
	piece, ok := t.pieces.Get().(*strings.Builder)
	if !ok {
		piece = new(strings.Builder)
	}
	start := piece.Len()
	if piece.Cap()-start < len(b) {
		piece.Reset()
		piece.Grow(textsPiece)
		start = 0
	}
	_, _ = piece.Write(b)
	text := piece.String()[start:]
	t.pieces.Put(piece)
	return text
}
