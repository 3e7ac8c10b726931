package degrade

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func TestByteLogHoldsWhatWasWrittenAndNotForgotten(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var log byteLog
	log.first, log.end = 7, 7
	held := []byte{} // from log.first on
	for range 300 {
		switch random.IntN(3) {
		case 0, 1:
			b := make([]byte, random.IntN(random.IntN(3*chunkSize)+1))
			salt := random.Int()
			for i := range b {
				b[i] = byte((salt + i) * 31 >> 3)
			}
			log.write(b)
			held = append(held, b...)
		case 2:
			n := random.IntN(len(held) + 1)
			log.forget(log.first + uint64(n))
			held = held[n:]
		}
		if log.len() != int64(len(held)) {
			t.Fatalf("holds %d bytes; want %d", log.len(), len(held))
		}
		if most := len(held)/chunkSize + 2; len(log.chunks) > most {
			t.Fatalf("%d chunks for %d bytes", len(log.chunks), len(held))
		}
		from := random.IntN(len(held) + 1)
		got := make([]byte, random.IntN(len(held)-from+1))
		log.read(log.first+uint64(from), got)
		if !bytes.Equal(got, held[from:from+len(got)]) {
			t.Fatalf("%d bytes at %d are not those that were written", len(got), from)
		}
	}
}
