package degrade

import "slices"

// chunkSize is how many bytes a byteLog takes at a time.
const chunkSize = 64 << 10

// byteLog is a queue of bytes: written at its end, forgotten from its beginning, read
// anywhere between. A position counts the bytes ever written and never comes again.
//
// It is for records that are many, live for a while and are seldom asked for: there are no
// pointers in it that the garbage collector would have to follow, and what is forgotten
// makes room for what comes. It is not safe for concurrent use.
type byteLog struct {
	chunks     [][]byte // from the one of first on
	spare      []byte   // a chunk that nothing is in; nil: none
	first, end uint64   // what is held lies from first to before end
}

func (l *byteLog) len() int64 { return int64(l.end - l.first) }

// chunk is the rest of a chunk from a position on.
func (l *byteLog) chunk(at uint64) []byte {
	return l.chunks[at/chunkSize-l.first/chunkSize][at%chunkSize:]
}

func (l *byteLog) write(b []byte) {
	for len(b) > 0 {
		if int(l.end/chunkSize-l.first/chunkSize) == len(l.chunks) {
			if l.spare == nil {
				l.spare = make([]byte, chunkSize)
			}
			l.chunks, l.spare = append(l.chunks, l.spare), nil
		}
		n := copy(l.chunk(l.end), b)
		b, l.end = b[n:], l.end+uint64(n)
	}
}

// read copies what begins at a position into b.
func (l *byteLog) read(at uint64, b []byte) {
	for len(b) > 0 {
		n := copy(b, l.chunk(at))
		b, at = b[n:], at+uint64(n)
	}
}

// forget drops all that lies before a position.
func (l *byteLog) forget(before uint64) {
	if gone := int(before/chunkSize - l.first/chunkSize); gone > 0 {
		l.spare = l.chunks[0]
		l.chunks = slices.Delete(l.chunks, 0, gone)
	}
	l.first = before
}
