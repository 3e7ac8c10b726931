package memstore

import (
	"testing"

	"github.com/slotgate/slotgate/gate/decision"
)

func TestLedgerKeepsTheNewest(t *testing.T) {
	var l ledger
	for range 3 * ledgerLength {
		l.add(entry{to: decision.Held}, !l.full())
	}
	newest := l.newest(10 * ledgerLength)
	if len(newest) != ledgerLength {
		t.Fatalf("%d entries, want %d", len(newest), ledgerLength)
	}
	for i, e := range newest {
		if want := int64(3*ledgerLength - i); e.number != want {
			t.Fatalf("entry %d has number %d, want %d", i, e.number, want)
		}
	}
}

func TestLedgerWithoutRoomGivesUpItsOldest(t *testing.T) {
	var l ledger
	l.add(entry{}, false)
	if len(l.newest(10)) != 0 {
		t.Fatal("an entry without room")
	}
	for range 3 {
		l.add(entry{}, true)
	}
	l.add(entry{}, false)
	if !l.full() {
		t.Fatal("a ledger that has begun to turn must not grow")
	}
	for i, e := range l.newest(10) {
		if want := int64(5 - i); e.number != want {
			t.Fatalf("entry %d has number %d, want %d", i, e.number, want)
		}
	}
}
