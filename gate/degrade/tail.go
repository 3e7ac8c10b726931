package degrade

import (
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
	kept    []taken
	bytes   int64
	answers int64
	frozen  bool
}

type taken struct {
	settle *store.Settle
	at     time.Time
	size   int64
}

// add keeps a settlement that was taken just now.
func (t *tail) add(s *store.Settle) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.answers+int64(len(s.Answer)) > maxTailAnswers {
		s = withoutAnswer(s)
	}
	one := taken{settle: s, at: now, size: sizeOf(s)}
	t.kept = append(t.kept, one)
	t.bytes += one.size
	t.answers += int64(len(s.Answer))
	for len(t.kept) > maxTail || t.bytes > maxTailBytes {
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
	list := make([]*store.Settle, 0, len(t.kept))
	for _, one := range t.kept {
		if s := aged(one.settle, now.Sub(one.at)); s.Pool != "" || s.Key != "" {
			list = append(list, s)
		}
	}
	t.kept, t.bytes, t.answers = nil, 0, 0
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
	for !t.frozen && len(t.kept) > 0 && now.Sub(t.kept[0].at) > tailSpan {
		t.drop()
	}
}

// drop lets the oldest go; t.mu is held.
func (t *tail) drop() {
	one := t.kept[0]
	t.kept[0] = taken{}
	t.kept = t.kept[1:]
	if len(t.kept) == 0 {
		t.kept = nil
	}
	t.bytes -= one.size
	t.answers -= int64(len(one.settle.Answer))
}

// aged is a settlement as it is to be sent so long after the store first took it: its
// key ends when it would have, and a pending booking expires when it would have.
func aged(s *store.Settle, age time.Duration) *store.Settle {
	old := *s
	if old.PendingTTL > 0 {
		old.PendingTTL = max(time.Millisecond, old.PendingTTL-age)
	}
	if old.KeyTTL -= age; old.KeyTTL <= 0 {
		old.Group, old.Partition, old.Key, old.KeyTTL, old.Answer = "", "", "", 0, nil
	}
	return &old
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
