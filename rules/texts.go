package rules

import "strings"

// textsPiece is how much memory Texts take at once: that of some ten requests.
const textsPiece = 4 << 10

// Texts make texts that share pieces of memory, so that few of them cost an allocation.
// A text never changes and may be kept, but it keeps its piece: what is remembered for
// longer than a request is to be a copy (strings.Clone). For one goroutine at a time.
type Texts struct{ piece strings.Builder }

// Of is string(b). Nil Texts give each text memory of its own.
func (t *Texts) Of(b []byte) string {
	if t == nil || len(b) > textsPiece/4 {
		return string(b)
	}
	start := t.piece.Len()
	if t.piece.Cap()-start < len(b) {
		t.piece.Reset()
		t.piece.Grow(textsPiece)
		start = 0
	}
	_, _ = t.piece.Write(b)
	return t.piece.String()[start:]
}
