package interleave

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/store"
)

// scene is a kind of world and what can happen in it. W is the world without the
// store: a value, where what == calls equal behaves equal.
type scene[W comparable] interface {
	start() W
	// steps lists what can happen next.
	steps(w W, at *state) []step[W]
	// broken tells what must not be true of any place, and rest what must not be where
	// nothing more can happen.
	broken(w W, at *state) []string
	rest(w W, at *state) []string

	query() store.SlotQuery
	keys() []*store.Decide
}

// step is one thing that can happen.
type step[W comparable] struct {
	label string
	// local does it where the store has no part in it. It returns the promises that this
	// breaks.
	local func(w *W) []string
	// Else call is what reaches the store, and then what becomes of the world; then may
	// say that there is nothing to it (nothing).
	call call
	then func(w *W, reply any, before, after *state) (said string, broken []string, err error)
}

// call is something that a store does, and tells, in the same way whenever it is in the
// same state: so it is made only once in each. name tells it from all others.
type call struct {
	name string
	do   func(p *play) (reply any, err error)
}

// nothing: the step had no effect that is worth a place of its own.
var errNothing = errors.New("nothing happened")

// state is a state of the store, as it was found the first time.
type state struct {
	Saved
	id   int32
	slot store.Slot // zero: never seen
}

// play is one worker's store.
type play struct {
	Rig
	at    int32 // the state that the store is in; -1 not known
	known func(id int32) *state
}

// Broken is a promise that was broken, and one of the shortest ways there.
type Broken struct {
	Promise string
	Trace   []string
}

func (b *Broken) String() string {
	var text strings.Builder
	text.WriteString(b.Promise)
	for i, label := range b.Trace {
		fmt.Fprintf(&text, "\n%4d  %s", i+1, label)
	}
	return text.String()
}

// Result is what an exploration found.
type Result struct {
	Places int // states of world and store together
	Stores int // states of the store
	Steps  int // between places, those without effect included
	Calls  int // made to the store
	Depth  int
	Took   time.Duration
	Broken []Broken // those that the first level with any had, one for each promise
}

func (r Result) String() string {
	return fmt.Sprintf("%d states (%d of the store), %d steps (%d calls), %d deep, %v",
		r.Places, r.Stores, r.Steps, r.Calls, r.Depth, r.Took.Round(10*time.Millisecond))
}

type place[W comparable] struct {
	world W
	state int32
}

type node struct {
	from  int32
	label string
}

// made is a call in a state, and outcome what it led to.
type made struct {
	state int32
	call  string
}

type outcome struct {
	reply any
	after *state
}

// explorer is one exploration, shared by its workers.
type explorer[W comparable] struct {
	scene scene[W]

	mu     sync.Mutex
	states []*state
	found  map[string]*state
	made   map[made]outcome
	seen   map[place[W]]bool
	places []place[W]
	nodes  []node
	next   int // the first place that no worker has taken
	level  int // the first place of the next level
	result Result
	err    error
}

// explore visits all that can happen, breadth first, and stops after the first level
// on which a promise was broken.
func explore[W comparable](rigs []Rig, s scene[W]) (Result, error) {
	began := time.Now()
	e := &explorer[W]{scene: s, found: map[string]*state{}, made: map[made]outcome{}, seen: map[place[W]]bool{}}
	plays := make([]*play, len(rigs))
	for i, rig := range rigs {
		plays[i] = &play{Rig: rig, at: -1, known: e.state}
	}
	first, err := e.observe(plays[0])
	if err != nil {
		return e.result, err
	}
	e.enter(place[W]{s.start(), first.id}, -1, "", nil)
	for e.next < len(e.places) && len(e.result.Broken) == 0 && e.err == nil {
		e.level = len(e.places)
		e.result.Depth++
		var workers sync.WaitGroup
		for _, p := range plays {
			workers.Go(func() { e.work(p) })
		}
		workers.Wait()
	}
	e.result.Places, e.result.Stores, e.result.Took = len(e.places), len(e.states), time.Since(began)
	return e.result, e.err
}

// work expands places of this level until there is none left.
func (e *explorer[W]) work(p *play) {
	for {
		e.mu.Lock()
		i := e.next
		done := i >= e.level || e.err != nil
		if done {
			e.mu.Unlock()
			return
		}
		e.next++
		here, at := e.places[i], e.states[e.places[i].state]
		e.mu.Unlock()
		if err := e.expand(p, int32(i), here, at); err != nil {
			e.mu.Lock()
			e.err = errors.Join(e.err, fmt.Errorf("%w\nafter %s", err, &Broken{"this trace:", e.trace(int32(i), "this step")}))
			e.mu.Unlock()
			return
		}
	}
}

// expand takes every step from one place.
func (e *explorer[W]) expand(p *play, from int32, here place[W], at *state) error {
	for _, step := range e.scene.steps(here.world, at) {
		w, after, label := here.world, at, step.label
		var broken []string
		var err error
		if step.local != nil {
			broken = step.local(&w)
		} else {
			var got outcome
			if got, err = e.make(p, at, step.call); err != nil {
				return fmt.Errorf("%s: %w", label, err)
			}
			after = got.after
			var said string
			said, broken, err = step.then(&w, got.reply, at, after)
			label += said
		}
		e.mu.Lock()
		e.result.Steps++
		if err != errNothing {
			e.enter(place[W]{w, after.id}, from, label, broken)
		}
		e.mu.Unlock()
	}
	return nil
}

// make makes a call in a state of the store, or remembers what came of it.
func (e *explorer[W]) make(p *play, at *state, c call) (outcome, error) {
	what := made{at.id, c.name}
	e.mu.Lock()
	got, known := e.made[what]
	e.mu.Unlock()
	if known {
		return got, nil
	}
	if p.at != at.id {
		p.Restore(at.Saved)
	}
	p.at = -1
	var err error
	if got.reply, err = c.do(p); err != nil {
		return got, err
	}
	if got.after, err = e.observe(p); err != nil {
		return got, err
	}
	e.mu.Lock()
	e.made[what] = got
	e.result.Calls++
	e.mu.Unlock()
	return got, nil
}

// enter notes a place, and what is broken on the way to it, in it, or where it rests.
func (e *explorer[W]) enter(there place[W], from int32, label string, broken []string) {
	fresh := !e.seen[there]
	at := e.states[there.state]
	if fresh {
		broken = append(broken, e.scene.broken(there.world, at)...)
		broken = append(broken, e.scene.rest(there.world, at)...)
	}
	for _, promise := range broken {
		e.report(promise, from, label)
	}
	if fresh {
		e.seen[there] = true
		e.places = append(e.places, there)
		e.nodes = append(e.nodes, node{from, label})
	}
}

func (e *explorer[W]) report(promise string, from int32, label string) {
	for _, b := range e.result.Broken {
		if b.Promise == promise {
			return
		}
	}
	e.result.Broken = append(e.result.Broken, Broken{promise, e.trace(from, label)})
}

func (e *explorer[W]) trace(from int32, label string) []string {
	trace := []string{label}
	for i := from; i > 0; i = e.nodes[i].from {
		trace = append([]string{e.nodes[i].label}, trace...)
	}
	return trace
}

// observe reads the slot, which also lapses what is due, and notes where the store
// stands then.
func (e *explorer[W]) observe(p *play) (*state, error) {
	slot, err := p.Gate(0).Slot(context.Background(), e.scene.query())
	if err != nil && !errors.Is(err, store.ErrNoSlot) {
		return nil, fmt.Errorf("read the slot: %w", err)
	}
	saved := p.Save(e.scene.keys())
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.found[saved.Digest]
	if s == nil {
		s = &state{Saved: saved, id: int32(len(e.states)), slot: slot}
		e.found[saved.Digest] = s
		e.states = append(e.states, s)
	}
	p.at = s.id
	return s, nil
}

func (e *explorer[W]) state(id int32) *state {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.states[id]
}

// Case is one small world to be explored.
type Case interface {
	// String names the case.
	String() string
	// Explore visits all of it with several stores at a time. An error is a failure of
	// the rig, or of the store.
	Explore(rigs []Rig) (Result, error)
}

// workers is how many stores of its own a case is explored with.
const workers = 4

// Explore explores a case with stores that open gives.
func Explore(t testing.TB, open Open, c Case) Result {
	t.Helper()
	rigs := make([]Rig, workers)
	for i := range rigs {
		rigs[i] = open(t)
	}
	result, err := c.Explore(rigs)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(result)
	return result
}
