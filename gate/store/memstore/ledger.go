package memstore

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

// ledgerLength is how many transitions a slot remembers.
const ledgerLength = 256

// entry is one transition. The subject is hashed only when somebody reads it.
type entry struct {
	number   int64
	time     int64
	hold     string
	subject  string
	units    int64
	from, to decision.HoldState
	cause    string
}

// ledger is a slot's last transitions, in a ring once it is full.
type ledger struct {
	entries []entry
	oldest  int
	written int64
}

// add appends an entry. Where room is false it takes the place of the oldest, so
// that the ledger does not grow.
func (l *ledger) add(e entry, room bool) {
	l.written++
	e.number = l.written
	switch {
	case room:
		l.entries = append(l.entries, e)
	case len(l.entries) > 0:
		l.entries[l.oldest] = e
		l.oldest = (l.oldest + 1) % len(l.entries)
	}
}

// full reports that the ledger is as long as it may get. It is never grown again
// once it has become a ring, or the order would be lost.
func (l *ledger) full() bool { return len(l.entries) >= ledgerLength || l.oldest > 0 }

// newest returns at most n entries, the newest first.
func (l *ledger) newest(n int) []entry {
	n = max(0, min(n, len(l.entries)))
	newest := make([]entry, n)
	for i := range newest {
		newest[i] = l.entries[(l.oldest+len(l.entries)-1-i)%len(l.entries)]
	}
	return newest
}

// view is the entry as readers see it, without the subject's text.
func (e *entry) view(hashKey []byte) store.Entry {
	v := store.Entry{
		ID: strconv.FormatInt(e.number, 10), Time: time.Unix(0, e.time),
		Hold: e.hold, Units: e.units, From: e.from, To: e.to, Cause: e.cause,
	}
	if e.subject != "" {
		mac := hmac.New(sha256.New, hashKey)
		mac.Write([]byte(e.subject))
		v.SubjectHash = hex.EncodeToString(mac.Sum(nil)[:16])
	}
	return v
}
