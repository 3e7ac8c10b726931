package memstore

import (
	"bytes"
	"sync"
	"time"

	"github.com/slotgate/slotgate/gate/store"
)

// keyName finds a key's record.
type keyName struct{ group, partition, key string }

type keyState uint8

const (
	keyRunning keyState = iota
	keyUnknown
	keyDone
)

// key is the record of an idempotency key. Its deadline is its ttl. A key that is
// free has no record.
type key struct {
	deadline
	name        keyName
	state       keyState
	owner       string // the attempt that completes or releases it
	hold        string
	scope       string
	fingerprint [32]byte
	lease       int64 // until when the owner is awaited
	waiting     int64 // until when registered twins wait
	answer      []byte
	cost        int64
}

// answerName is the answer that one owner of a key left for its twins.
type answerName struct {
	key   keyName
	owner string
}

type answer struct {
	deadline
	name  answerName
	scope string
	body  []byte
	cost  int64
}

// finished is a guard's id that must not be taken again: it has no hold to tell.
type finished struct {
	deadline
	id   string
	cost int64
}

type keyShard struct {
	mu       sync.Mutex
	keys     map[keyName]*key
	answers  map[answerName]*answer
	finished map[string]*finished

	expiring  queue[*key]
	unwaited  queue[*answer]
	forgotten queue[*finished]
}

// mayReplay tells whether a caller may be given what an owner of this scope got.
func mayReplay(scope string, d *store.Decide) bool {
	return scope == d.Scope && (scope != "" || d.BareReplay)
}

// keySize is what a record costs without its answer.
func keySize(name keyName, scope string) int64 {
	return keyCost + int64(len(name.group)+len(name.partition)+len(name.key)+len(scope))
}

// find returns the record of a key, or nil.
func (shard *keyShard) find(name keyName, now int64) *key {
	if k := shard.keys[name]; k != nil && k.at > now {
		return k
	}
	return nil
}

// enter adds a record that has been paid for. One that has expired makes way.
func (shard *keyShard) enter(memory *account, k *key, ttl time.Duration, now int64) {
	if old := shard.keys[k.name]; old != nil {
		shard.drop(memory, old)
	}
	if shard.keys == nil {
		shard.keys = map[keyName]*key{}
	}
	shard.keys[k.name] = k
	shard.expiring.put(k, now+int64(ttl))
}

// prolong lets a record live for ttl from now, if it would not anyway.
func (shard *keyShard) prolong(k *key, ttl time.Duration, now int64) {
	shard.expiring.put(k, max(k.at, now+int64(ttl)))
}

func (shard *keyShard) drop(memory *account, k *key) {
	shard.expiring.remove(k)
	delete(shard.keys, k.name)
	memory.free(k.cost)
}

// unanswered: nobody is awaited who might complete the key.
func (k *key) unanswered(now int64) bool {
	return k.state == keyUnknown || k.state == keyRunning && k.lease <= now
}

// complete makes a key done for good, without the answer's body where there is no
// memory for it.
func (k *key) complete(memory *account, body []byte) {
	k.state = keyDone
	if size := int64(len(body)); size > 0 && memory.reserve(size) {
		k.answer = bytes.Clone(body)
		k.cost += size
	}
}

// leave keeps the owner's answer, if it has one, for as long as registered twins wait
// for it.
func (shard *keyShard) leave(memory *account, k *key, body []byte, now int64) {
	if k.waiting <= now || len(body) == 0 {
		return
	}
	a := &answer{name: answerName{k.name, k.owner}, scope: k.scope}
	if shard.answers[a.name] != nil {
		return
	}
	a.cost = answerCost + int64(len(k.name.group)+len(k.name.partition)+len(k.name.key)+len(k.owner)+len(k.scope))
	memory.charge(a.cost)
	if size := int64(len(body)); size > 0 && memory.reserve(size) {
		a.body = bytes.Clone(body)
		a.cost += size
	}
	if shard.answers == nil {
		shard.answers = map[answerName]*answer{}
	}
	shard.answers[a.name] = a
	shard.unwaited.put(a, k.waiting)
}

// left returns the answer that an owner has left, or nil.
func (shard *keyShard) left(name answerName, now int64) *answer {
	if a := shard.answers[name]; a != nil && a.at > now {
		return a
	}
	return nil
}

// finish remembers a guard's id for the copy window.
func (shard *keyShard) finish(memory *account, id string, now int64) {
	f := shard.finished[id]
	if f == nil {
		f = &finished{id: id, cost: finishCost + int64(len(id))}
		memory.charge(f.cost)
		if shard.finished == nil {
			shard.finished = map[string]*finished{}
		}
		shard.finished[id] = f
	}
	shard.forgotten.put(f, now+int64(store.CopyWindow))
}

func (shard *keyShard) isFinished(id string, now int64) bool {
	f := shard.finished[id]
	return f != nil && f.at > now
}

// sweep drops at most n of each kind that are due.
func (shard *keyShard) sweep(memory *account, now int64, n int) {
	for range n {
		k, ok := shard.expiring.due(now)
		if !ok {
			break
		}
		shard.drop(memory, k)
	}
	for range n {
		a, ok := shard.unwaited.due(now)
		if !ok {
			break
		}
		shard.unwaited.remove(a)
		delete(shard.answers, a.name)
		memory.free(a.cost)
	}
	for range n {
		f, ok := shard.forgotten.due(now)
		if !ok {
			break
		}
		shard.forgotten.remove(f)
		delete(shard.finished, f.id)
		memory.free(f.cost)
	}
}
