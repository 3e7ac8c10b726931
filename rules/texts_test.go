package rules

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// Texts that have been handed out stay what they were, whatever comes after them and
// whatever becomes of the bytes that they were made of.
func TestTextsDoNotChange(t *testing.T) {
	var texts Texts
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { makeTexts(t, &texts) })
	}
	all.Wait()
}

func makeTexts(t *testing.T, texts *Texts) {
	var made, want []string
	b := make([]byte, 0, 2*textsPiece)
	for i := range 3000 {
		b = fmt.Appendf(b[:0], "%d%s", i, bytes.Repeat([]byte{byte(i)}, i%1500))
		made, want = append(made, texts.Of(b)), append(want, string(b))
		clear(b)
	}
	for i := range made {
		if made[i] != want[i] {
			t.Errorf("text %d of %d bytes has become another", i, len(want[i]))
			return
		}
	}
}

func TestTextsShareMemory(t *testing.T) {
	var texts Texts
	b := []byte("s-12345")
	if n := testing.AllocsPerRun(10_000, func() { _ = texts.Of(b) }); n > raceGarbage {
		t.Errorf("a short text takes %v allocations", n)
	}
	long := bytes.Repeat(b, textsPiece)
	if got := texts.Of(long); got != strings.Repeat("s-12345", textsPiece) {
		t.Error("a text longer than a piece is another one")
	}
	if got := (*Texts)(nil).Of(b); got != "s-12345" {
		t.Errorf("without Texts: %q", got)
	}
}
