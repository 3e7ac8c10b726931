package degrade

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/slotgate/slotgate/gate/store"
)

const (
	// tailSpan is how long a settlement that the store took is kept, in case the store
	// comes back without it. A replica lags less; a master that was cut off together
	// with this gate may have gone on for longer, and what is older is left to truth.
	tailSpan = 30 * time.Second
	// maxTail settlements, of maxTailBytes in all, are kept at most.
	maxTail      = 4096
	maxTailBytes = 16 << 20
	// maxTailAnswers bytes of answers are kept at most; the newest do without.
	maxTailAnswers = maxTailBytes / 2
)

// tail keeps the settlements that the store took last, in the order in which it did.
// A store that comes back with other data may lack them. It is safe for concurrent use
// and bounded: the oldest go first.
type tail struct {
	mu      sync.Mutex
	began   time.Time // with the first
	log     byteLog   // of records, as in a journal, each after its head
	record  []byte    // memory for the one under way
	count   int
	answers int64 // bytes of answers
	frozen  bool
}

// taken is what is written before a record in the log.
type taken struct {
	at           time.Duration // since began
	size, answer uint32        // of the record, and of the answer in it, in bytes
}

const takenHead = 8 + 4 + 4

// add keeps a settlement that was taken just now. It keeps nothing of s.
func (t *tail) add(s *store.Settle) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.began.IsZero() {
		t.began = now
	}
	if t.answers+int64(len(s.Answer)) > maxTailAnswers {
		s = withoutAnswer(s)
	}
	t.record = appendSettle(t.record[:0], s)
	t.write(taken{at: now.Sub(t.began), size: uint32(len(t.record)), answer: uint32(len(s.Answer))})
	t.log.write(t.record)
	if cap(t.record) > chunkSize {
		t.record = nil
	}
	t.count++
	t.answers += int64(len(s.Answer))
	for t.count > maxTail || t.log.len() > maxTailBytes {
		t.drop()
	}
	t.forget(now)
}

// take returns what is kept as it is to be sent now, for what lives for a time has had
// a part of it, and keeps it no longer.
func (t *tail) take() []*store.Settle {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(now)
	list := make([]*store.Settle, 0, t.count)
	for t.count > 0 {
		one := t.oldest()
		record := make([]byte, one.size)
		t.log.read(t.log.first+takenHead, record)
		t.drop()
		s, err := readSettle(record)
		if err != nil {
			continue // never: add wrote it
		}
		if s = aged(s, now.Sub(t.began)-one.at); s.Pool != "" || s.Key != "" {
			list = append(list, s)
		}
	}
	return list
}

// freeze keeps all that is young now until thaw: while the store is away, nothing of
// its last seconds grows old.
func (t *tail) freeze() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(time.Now())
	t.frozen = true
}

func (t *tail) thaw() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.frozen = false
}

// forget drops what is too old; t.mu is held.
func (t *tail) forget(now time.Time) {
	for !t.frozen && t.count > 0 && now.Sub(t.began)-t.oldest().at > tailSpan {
		t.drop()
	}
}

// drop lets the oldest go; t.mu is held.
func (t *tail) drop() {
	one := t.oldest()
	t.log.forget(t.log.first + takenHead + uint64(one.size))
	t.count--
	t.answers -= int64(one.answer)
}

// oldest is the head of the first record; t.mu is held.
func (t *tail) oldest() taken {
	var b [takenHead]byte
	t.log.read(t.log.first, b[:])
	return taken{
		at:     time.Duration(binary.NativeEndian.Uint64(b[:])),
		size:   binary.NativeEndian.Uint32(b[8:]),
		answer: binary.NativeEndian.Uint32(b[12:]),
	}
}

// write begins a record; t.mu is held.
func (t *tail) write(one taken) {
	var b [takenHead]byte
	binary.NativeEndian.PutUint64(b[:], uint64(one.at))
	binary.NativeEndian.PutUint32(b[8:], one.size)
	binary.NativeEndian.PutUint32(b[12:], one.answer)
	t.log.write(b[:])
}

// aged is a settlement as it is to be sent so long after the store first took it: its
// key ends when it would have, and a pending booking expires when it would have.
func aged(s *store.Settle, age time.Duration) *store.Settle {
	if s.PendingTTL > 0 {
		s.PendingTTL = max(time.Millisecond, s.PendingTTL-age)
	}
	if s.KeyTTL -= age; s.KeyTTL <= 0 {
		s.Group, s.Partition, s.Key, s.KeyTTL, s.Answer = "", "", "", 0, nil
	}
	return s
}

// withoutAnswer is a settlement whose key is completed without a body.
func withoutAnswer(s *store.Settle) *store.Settle {
	bare := *s
	bare.Answer = nil
	return &bare
}

// sizeOf is about what a settlement takes in memory.
func sizeOf(s *store.Settle) int64 {
	const itself = 512
	return itself + int64(len(s.ID)+len(s.Hold)+len(s.Reference)+
		len(s.Pool)+len(s.Slot)+len(s.Subject)+
		len(s.Group)+len(s.Partition)+len(s.Key)+len(s.Scope)+len(s.Answer))
}
