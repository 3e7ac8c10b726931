package interleave

import (
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/store"
)

const (
	// Tick is the step of the world's clock. store.CopyWindow is two and a half.
	Tick = 12 * time.Second
	half = Tick / 2

	gates = 2
)

// Rig is a store under test that can be put back. It is used by one goroutine.
type Rig interface {
	// Wire reports whether calls go over a wire, on which they may be delayed while
	// their second attempt is answered.
	Wire() bool
	// Gate returns one of the two gates on the store.
	Gate(i int) store.Store
	// Decide makes a call of one gate. number tells the calls of one request apart;
	// with the same number it is a copy of the same call.
	Decide(gate int, d *store.Decide, number int, copy Copy) (store.Decided, error)
	Advance(d time.Duration)
	// Look begins a look at truth, and Apply ends the one that was begun last, whatever
	// r says of where it stood: that is put back with the store.
	Look(gate int, l *store.Look) (store.Looked, error)
	Apply(gate int, r *store.Reading) (store.Applied, error)

	// Save tells where the store stands, and what it knows of the keys of calls.
	Save(keys []*store.Decide) Saved
	// Restore puts the store back, its clock included.
	Restore(s Saved)
}

// Fragile is a rig whose store can come back with other data.
type Fragile interface {
	Rig
	// Replace puts a server in the store's place that has the data of an earlier
	// Save, or none where it is nil. Every gate has then connected to it.
	Replace(data *Saved)
}

// Stepped is a rig whose calls take several steps, between which others take theirs.
type Stepped interface {
	Rig
	// Step makes a gate's call again up to where replies end, with those for what its steps
	// were told, then one step more. told is what that was told; done that there is no other,
	// and reply what the call returns then.
	Step(gate, number int, replies []any, call func(store.Store) (any, error)) (reply any, told []any, done bool, err error)
}

// Copy says which attempt of a call reaches the store.
type Copy uint8

const (
	First  Copy = iota // the only one, or the first
	Second             // the client's own retry, which is marked as such
)

// Saved is a state of a store.
type Saved struct {
	// Digest is equal where no answer of the store will ever tell two states apart:
	// all that it keeps, times as ticks from now.
	Digest string
	Keys   []KeyState
	Data   any // the rig's own
}

// KeyState is what the store knows of a key.
type KeyState struct {
	Done bool
	Hold string // that its booking went under
}

// Ticks is how far ahead a moment is, as digests tell it: in ticks, the same for all
// that is long past or far away. What a store times lies on a tick, where it began, or
// half a tick beside one, where it ends: both are a quarter from where this changes.
func Ticks(ahead time.Duration) int {
	n := int((ahead + 1000*Tick + Tick/4) / Tick)
	return max(-4, min(n-1000, 50))
}

// Open opens the store for one worker, empty.
type Open func(t testing.TB) Rig
