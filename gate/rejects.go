package gate

import (
	"strings"
	"sync"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

// maxRejects bounds the slots of which a gate remembers that they are sold out.
const maxRejects = 4096

// rejects are the slots of which this process says "sold out" by itself for a while
// (pools.*.reject_cache). A request is told so only if the store would have let nobody
// like it in: nothing was left, the slot and the keys used on it know nothing of this
// request, and nothing has come free since as far as the store has told. What the slot does
// not know of is not asked: limits, and a key that was used on another slot. Safe for
// concurrent use.
type rejects struct {
	mu     sync.RWMutex
	bySlot map[slotName]*reject
}

// reject is what one process knows of one slot. It listens to the slot from before the
// store is asked.
type reject struct {
	all   *rejects
	name  slotName
	watch store.Watch

	// What follows is written once, before the reject is found by others.
	book    *rulebook
	run     int64 // of the store
	until   time.Time
	timer   *time.Timer // drops it then
	changes time.Time   // when the verdict may change by itself; zero: not known
	units   int64       // that were asked for: others may lapse free sooner
	keyTTL  time.Duration
	holders store.Holders
	known   bool // false: the store is being asked
}

func newRejects() *rejects { return &rejects{bySlot: make(map[slotName]*reject)} }

// listen begins to learn whether a slot is sold out; nil where somebody does so already, or
// it is known. It is ended with end.
func (r *rejects) listen(s store.Store, name slotName) *reject {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bySlot[name] != nil || len(r.bySlot) >= maxRejects {
		return nil
	}
	name.slot = strings.Clone(name.slot) // it is part of a request
	one := &reject{all: r, name: name, watch: s.WatchSlot(name.pool, name.slot)}
	r.bySlot[name] = one
	return one
}

// keep remembers the store's answer to d.
func (r *reject) keep(d *store.Decide, decided *store.Decided, asked time.Time, book *rulebook, run int64) {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	if r.all.bySlot[r.name] != r {
		return // dropped meanwhile
	}
	r.book, r.run, r.until = book, run, asked.Add(d.Repeat)
	r.units, r.keyTTL, r.holders, r.known = d.Units, d.KeyTTL, decided.Holders, true
	if decided.RetryAfter > 0 {
		r.changes = asked.Add(decided.RetryAfter)
		if r.changes.Before(r.until) {
			r.until = r.changes
		}
	}
	r.timer = time.AfterFunc(time.Until(r.until), r.drop)
}

// end forgets it unless the store's answer was kept.
func (r *reject) end() {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	if !r.known {
		r.forget()
	}
}

// drop forgets it. It may be called twice.
func (r *reject) drop() {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	r.forget()
}

func (r *reject) forget() {
	if r.all.bySlot[r.name] == r {
		delete(r.all.bySlot, r.name)
		r.watch.Close()
		if r.timer != nil {
			r.timer.Stop() // it would keep the holders in memory until then
		}
	}
}

// drop forgets what is known of a slot, and what the store is being asked of it.
func (r *rejects) drop(name slotName) {
	r.mu.RLock()
	one := r.bySlot[name]
	r.mu.RUnlock()
	if one != nil {
		one.drop()
	}
}

// find is what is known of a slot, nil if nothing is that still holds.
func (r *rejects) find(name slotName, book *rulebook, run int64) *reject {
	r.mu.RLock()
	one := r.bySlot[name]
	known := one != nil && one.known
	r.mu.RUnlock()
	if !known {
		return nil
	}
	select {
	case <-one.watch.C():
		one.drop()
		return nil
	default:
	}
	if one.book != book || one.run != run || !time.Now().Before(one.until) {
		one.drop()
		return nil
	}
	return one
}

// answers reports whether the store need not be asked about a request for the slot.
func (r *reject) answers(d *store.Decide) bool {
	// The slot may have been forgotten before a key that lives longer than the one it was
	// asked with.
	longer := d.Key != "" && d.KeyTTL > r.keyTTL
	return d.Units == r.units && !longer && !r.holders.Know(d)
}

// decided is what the store would say again.
func (r *reject) decided() store.Decided {
	again := store.Decided{Verdict: decision.SoldOut}
	if !r.changes.IsZero() {
		again.RetryAfter = max(time.Until(r.changes), time.Millisecond)
	}
	return again
}

// repeatReject is the answer to a booking that this process can give without the store,
// nil if that has to be asked.
func (j *journey) repeatReject() *Reply {
	if j.gate.back.Away() || j.repeats() == 0 {
		return nil
	}
	name := slotName{j.route.decide.Pool, j.facts.Slot}
	known := j.gate.rejects.find(name, j.book, j.gate.back.Run())
	if known == nil || !known.answers(j.about()) {
		return nil
	}
	j.gate.meter.Repeated(name.pool)
	again := known.decided()
	return j.refuseVerdict(&again)
}

// listen is to be told of the store's answer to d, nil where nobody waits for it.
func (j *journey) listen(d *store.Decide) *reject {
	repeat := j.repeats()
	if repeat == 0 {
		return nil
	}
	listening := j.gate.rejects.listen(j.gate.store, slotName{d.Pool, d.Slot})
	if listening != nil {
		d.Repeat = repeat
	}
	return listening
}

// repeats is for how long "sold out" may be repeated to requests like this one, 0 not at all.
func (j *journey) repeats() time.Duration {
	if j.outage != nil {
		j.gate.rejects.drop(slotName{j.route.decide.Pool, j.facts.Slot}) // it is passed by
		return 0
	}
	d := &j.route.decide
	if d.Pool == "" || d.Action != store.Book || d.MaxPerSubject > 0 {
		return 0 // what a subject has in all, its slot does not know
	}
	cache := j.match.Rule.Pool.RejectCache
	if d.Truth != store.NoTruth {
		cache = min(cache, d.Hot/2) // nothing rests on a look that is older than Hot
	}
	return cache
}
