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
// store is first asked.
type reject struct {
	all   *rejects
	name  slotName
	watch store.Watch

	// Guarded by all.mu.
	asking  bool // the store is being asked
	verdict *verdict
	timer   *time.Timer // drops it at the end of verdict
}

// verdict is the store's "sold out", while it is repeated. It is immutable.
type verdict struct {
	book    *rulebook
	run     int64     // of the store
	renew   time.Time // from then on one request asks the store again, so that not all do at the end
	until   time.Time
	changes time.Time // when the verdict may change by itself; zero: not known
	units   int64     // that were asked for: others may lapse free sooner
	keyTTL  time.Duration
	holders store.Holders
}

func newRejects() *rejects { return &rejects{bySlot: make(map[slotName]*reject)} }

// listen begins to learn whether a slot is sold out; nil where somebody does so already, or
// it is known for a while yet. It is ended with end.
func (r *rejects) listen(s store.Store, name slotName) *reject {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.bySlot[name]
	switch {
	case one != nil && !one.due(time.Now()), one == nil && len(r.bySlot) >= maxRejects:
		return nil
	case one == nil:
		name.slot = strings.Clone(name.slot) // it is part of a request
		one = &reject{all: r, name: name, watch: s.WatchSlot(name.pool, name.slot)}
		r.bySlot[name] = one
	}
	one.asking = true
	return one
}

// due reports whether somebody is to ask the store again.
func (r *reject) due(now time.Time) bool {
	return r.verdict != nil && !r.asking && !now.Before(r.verdict.renew)
}

// keep remembers the store's answer to d.
func (r *reject) keep(d *store.Decide, decided *store.Decided, asked time.Time, book *rulebook, run int64) {
	v := &verdict{
		book: book, run: run,
		renew: asked.Add(d.Repeat / 2), until: asked.Add(d.Repeat),
		units: d.Units, keyTTL: d.KeyTTL, holders: decided.Holders,
	}
	if decided.RetryAfter > 0 {
		v.changes = asked.Add(decided.RetryAfter)
		if !v.changes.After(v.until) {
			v.renew, v.until = v.changes, v.changes // before then the store would say the same
		}
	}
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	if r.all.bySlot[r.name] != r {
		return // dropped meanwhile
	}
	r.verdict = v
	if r.timer != nil {
		r.timer.Stop()
	}
	r.timer = time.AfterFunc(time.Until(v.until), func() { r.expire(v) })
}

// expire ends a verdict, unless there is a newer one.
func (r *reject) expire(v *verdict) {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	if r.verdict == v {
		r.verdict = nil
		r.settle()
	}
}

// end is called once the store has answered, or will not.
func (r *reject) end() {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	r.asking = false
	r.settle()
}

// settle forgets it if it has no verdict, and gets none.
func (r *reject) settle() {
	if r.verdict == nil && !r.asking {
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

// find is what is known of a slot, nil if nothing is that still holds, or it is to be
// renewed.
func (r *rejects) find(name slotName, book *rulebook, run int64) *verdict {
	r.mu.RLock()
	one := r.bySlot[name]
	if one == nil || one.verdict == nil {
		r.mu.RUnlock()
		return nil
	}
	now := time.Now()
	v, due := one.verdict, one.due(now)
	r.mu.RUnlock()
	select {
	case <-one.watch.C():
		one.drop()
		return nil
	default:
	}
	switch {
	case v.book != book || v.run != run:
		one.drop()
	case !now.Before(v.until):
		one.expire(v)
	case !due:
		return v
	}
	return nil
}

// answers reports whether the store need not be asked about a request for the slot.
func (v *verdict) answers(d *store.Decide) bool {
	// The slot may have been forgotten before a key that lives longer than the one it was
	// asked with.
	longer := d.Key != "" && d.KeyTTL > v.keyTTL
	return d.Units == v.units && !longer && !v.holders.Know(d)
}

// decided is what the store would say again.
func (v *verdict) decided() store.Decided {
	again := store.Decided{Verdict: decision.SoldOut}
	if !v.changes.IsZero() {
		again.RetryAfter = max(time.Until(v.changes), time.Millisecond)
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
