package degrade

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

const (
	// localMemo is how long an answer given in normal times is remembered, for
	// the client that asks again in an outage.
	localMemo = 10 * time.Minute
	// maxMemos answers, of memoMemory bytes in all, are remembered; the oldest go first.
	maxMemos   = 3 << 13
	memoMemory = 32 << 20
)

// memos are the answers that were stored under keys last, in the form of what a question
// of an outage needs: nothing of a memo is read before, and nearly none ever is.
// They are safe for concurrent use and bounded.
//
// A memo is found by its place in a log, the newest of each bucket in latest, and the ones
// before it one by the other (memo.older); a place that the log has forgotten ends the
// list. So nothing has to be taken out where a memo goes.
type memos struct {
	began time.Time

	mu     sync.Mutex
	log    byteLog
	latest [1 << 15]uint64 // by the name's first bits; 0: none
	count  int
}

// digest stands for texts that are only ever compared.
type digest [16]byte

// memo is what is written before an answer in the log.
type memo struct {
	name        digest // of group, partition and key
	scope       digest
	fingerprint digest
	until       time.Duration // since began
	older       uint64        // the place of the one before it in its bucket
	size        uint32        // of the answer, in bytes
}

const memoHead = 3*16 + 8 + 8 + 4

func newMemos() *memos {
	m := &memos{began: time.Now()}
	m.log.first, m.log.end = 1, 1 // 0 is no place
	return m
}

// add remembers the answer under a key for ttl; one that the key has stands. One that is
// longer than all that may be remembered is not.
func (m *memos) add(s *store.Settle, ttl time.Duration) {
	if memoHead+len(s.Answer) > memoMemory {
		return
	}
	one := memo{
		name: digestOf(s.Group, s.Partition, s.Key), scope: digestOf(s.Scope), fingerprint: digest(s.Fingerprint[:16]),
		size: uint32(len(s.Answer)),
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Since(m.began)
	if _, _, known := m.find(one.name, now); known {
		return
	}
	bucket := m.bucket(one.name)
	one.until, one.older = now+ttl, *bucket
	*bucket = m.log.end
	var head [memoHead]byte
	one.put(&head)
	m.log.write(head[:])
	m.log.write(s.Answer)
	m.count++
	for m.count > 0 && (m.count > maxMemos || m.log.len() > memoMemory || m.read(m.log.first).until <= now) {
		m.log.forget(m.log.first + memoHead + uint64(m.read(m.log.first).size))
		m.count--
	}
}

// decide answers a question whose key has a memo, as a store does that has stored it.
func (m *memos) decide(d *store.Decide) (decided store.Decided, known bool) {
	if d.Key == "" {
		return store.Decided{}, false
	}
	name := digestOf(d.Group, d.Partition, d.Key)
	m.mu.Lock()
	defer m.mu.Unlock()
	one, at, known := m.find(name, time.Since(m.began))
	switch {
	case !known:
	case one.fingerprint != digest(d.Fingerprint[:16]):
		decided.Verdict = decision.Mismatch
	case one.scope != digestOf(d.Scope), d.Scope == "" && !d.BareReplay:
		decided.Verdict = decision.KeyDone
	default:
		decided.Verdict, decided.MayReplay = decision.Replay, true
		decided.Answer = make([]byte, one.size)
		m.log.read(at+memoHead, decided.Answer)
	}
	return decided, known
}

// find looks a name up that is still remembered. m.mu is held.
func (m *memos) find(name digest, now time.Duration) (one memo, at uint64, known bool) {
	for at = *m.bucket(name); at >= m.log.first; at = one.older {
		if one = m.read(at); one.name == name && one.until > now {
			return one, at, true
		}
	}
	return memo{}, 0, false
}

func (m *memos) bucket(name digest) *uint64 {
	return &m.latest[binary.NativeEndian.Uint64(name[:])%uint64(len(m.latest))]
}

func (m *memos) read(at uint64) (one memo) {
	var b [memoHead]byte
	m.log.read(at, b[:])
	copy(one.name[:], b[:16])
	copy(one.scope[:], b[16:32])
	copy(one.fingerprint[:], b[32:48])
	one.until = time.Duration(binary.NativeEndian.Uint64(b[48:]))
	one.older = binary.NativeEndian.Uint64(b[56:])
	one.size = binary.NativeEndian.Uint32(b[64:])
	return one
}

func (one *memo) put(b *[memoHead]byte) {
	copy(b[:], one.name[:])
	copy(b[16:], one.scope[:])
	copy(b[32:], one.fingerprint[:])
	binary.NativeEndian.PutUint64(b[48:], uint64(one.until))
	binary.NativeEndian.PutUint64(b[56:], one.older)
	binary.NativeEndian.PutUint32(b[64:], one.size)
}

// digestOf gives other texts another digest, as far as anybody can tell.
func digestOf(texts ...string) digest {
	var room [256]byte
	b := room[:0]
	for _, text := range texts {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	sum := sha256.Sum256(b)
	return digest(sum[:16])
}
