package store

import (
	"context"
	"time"
)

// Truth is how a slot's counters follow the backend's own data (design section 5).
// A look is Look, then a read of the source that starts after Look has returned,
// then Apply. See the package documentation, "Truth".
type Truth interface {
	// Look begins a look: it applies due lapses and notes where the counters
	// stand. It takes the slot's look lease, unless another look holds it.
	Look(ctx context.Context, l *Look) (Looked, error)
	// Apply ends a look with what the source said.
	Apply(ctx context.Context, r *Reading) (Applied, error)
	// Due takes up to max slots of a pool whose look is due, soonest first. A slot
	// that was taken is not due again for Lease of its look, so that one which is
	// never applied comes back. next is how long until another is due (0: at
	// once; -1: none is).
	Due(ctx context.Context, pool string, max int, lease time.Duration) (slots []string, next time.Duration, err error)
	// Lead takes or renews the leadership of a pool for ttl. ok is false while
	// another leads. fence grows with every new leader of the pool and stays
	// through renewals.
	Lead(ctx context.Context, pool, who string, ttl time.Duration) (fence int64, ok bool, err error)
	// Find tells the slot and the hold that a booking's reference stands for;
	// ErrNoHold when none of the pool does. An open or confirmed hold is found.
	Find(ctx context.Context, pool, reference string) (slot, hold string, err error)
	// Resign gives the leadership up if who has it.
	Resign(ctx context.Context, pool, who string) error
}

// TruthKind is how a pool's capacity is known.
type TruthKind uint8

const (
	// NoTruth: a configured number, an operator's, or learned.
	NoTruth TruthKind = iota
	// TruthTotal: the source tells the units of a slot in all (means: capacity).
	// Counting is as with a number; the source recovers nothing.
	TruthTotal
	// TruthRemaining: the source tells what is left (means: remaining or booked).
	TruthRemaining
)

// Look asks where a slot's counters stand before its source is read.
type Look struct {
	Query SlotQuery // Truth is set
	// ID names this look, unique for ever.
	ID string
	// Lag: bookings confirmed, or pending, for less than this may not be visible
	// in truth yet.
	Lag time.Duration
	// Lease is how long other looks of the slot keep off. 0: this one will not be
	// applied, and neither keeps others off nor waits for their lease. Force: it does
	// not wait for another's lease, nor after a change of run (an operator asks).
	Lease time.Duration
	Force bool
	// Fresh > 0: the look is not needed where the last one that was applied began no
	// longer ago, found what it looked for or failed, and its counters still stand:
	// somebody else's look has answered meanwhile. Looked.Busy is not zero then.
	Fresh time.Duration
}

// Looked is where the counters stood. It goes unchanged into Reading.
type Looked struct {
	// Busy: another look holds the lease for so long; or, after a change of run,
	// the slot's first load must wait so long (H17); or the slot is Fresh. All else
	// is zero then.
	Busy time.Duration
	// Known: the store has the slot. Born tells its life from others of its name.
	Known bool
	Born  int64
	// At is when, in the store's microseconds: looks of a slot are ordered by it.
	At int64
	// Open is H₁: units held, unknown, booked for less than Lag, and booked with an
	// attempt that may still be booked too.
	Open int64
	// Admitted and Refunded are the slot's monotonic counters.
	Admitted, Refunded int64
	// Marked: the slot was marked full.
	Marked bool
}

// Reading is what the source said.
type Reading struct {
	Look   *Look
	Looked Looked
	// Found: the source has a value. Missing: it has no such slot: what is known
	// of the slot's truth is dropped, and nothing is created. Neither: the source
	// failed, or its value is none: learned until the next look.
	Found, Missing bool
	// Value is the units left (TruthRemaining, may be negative) or in all
	// (TruthTotal). Total is the units in all where the source tells, else Learned.
	Value, Total int64
	// Fence is the leader's, 0 for a look that is not a leader's: such a look is
	// never refused for its fence.
	Fence int64
	// Hot and Refresh say when the slot is next due.
	Hot, Refresh time.Duration
}

// Applied says what an apply changed.
type Applied struct {
	// Applied is false where the reading was refused: an apply of a later look, or
	// of a newer leader, came before; the slot was touched since, or lives anew.
	Applied bool
	// Known: counters were known before, and the source has the slot: of one that is
	// missing all else is zero. Before and After are the units available
	// before and after, signed; Drift is After − Before where Known, corrected for
	// nothing: what the apply had to change.
	Known         bool
	Before, After int64
	// Again: units were open at, or admitted during, the read: look again soon.
	Again bool
}
