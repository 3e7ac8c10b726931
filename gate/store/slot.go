package store

import (
	"time"

	"github.com/slotgate/slotgate/gate/decision"
)

// SlotQuery names a slot, or a pool for lists, and what its configuration says.
type SlotQuery struct {
	Pool, Slot  string
	Capacity    int64
	Truth       TruthKind
	HoldTTL     time.Duration
	Retain      time.Duration
	KeepUnknown bool
	// MaxPerSubject is the pool's, 0: what its subjects have is not counted.
	MaxPerSubject int64
	OpensAt       time.Time
	// Holds is how many holds of each slot a list shows; a single slot shows 100.
	Holds int
}

// SlotChange is what an operator sets; nil fields stay.
type SlotChange struct {
	Capacity      *int64
	ClearCapacity bool // back to the configured number
	Closed        *bool
	OpensAt       *time.Time // zero time: the pool's
	// Verify: the operator vouches for the slot's counters under the store's
	// present run. Setting a capacity vouches too.
	Verify bool
}

// Slot is a slot as the admin API shows it.
type Slot struct {
	Pool, Slot string
	Capacity   int64     // Learned when not known; with truth that tells no total: available + confirmed + held, not below 0
	Own        bool      // the capacity was set for this slot
	Debt       int64     // with truth: units by which more is taken than there is
	Outside    int64     // units taken of a told total that no hold accounts for; negative: holds whose bookings are gone
	CheckedAt  time.Time // when the last look that was applied began; zero: none
	LookFailed bool      // that look found no value
	Confirmed  int64
	Held       int64 // held, pending and unknown units
	Closed     bool
	Full       int64 // marked full for so many units or more; 0 not
	Dirty      bool  // touched, or not verified under the store's present run
	Verified   bool  // under the store's present run; else its capacity is not believed
	Version    int64
	Inflight   int // attempts, cancels and confirms within their lease
	OpensAt    time.Time
	Holds      []Hold // open first, then confirmed, newest 100 in all
}

// Available is the number of free units, never below 0; false when not known.
func (s *Slot) Available() (int64, bool) {
	if s.Capacity == Learned {
		return 0, false
	}
	return max(0, s.Capacity-s.Confirmed-s.Held-s.Outside), true
}

// Hold is one hold of a slot.
type Hold struct {
	ID        string
	Subject   string
	Units     int64
	State     decision.HoldState
	Reference string
	ExpiresAt time.Time // zero: does not expire by itself
	TakenAt   time.Time
}

// Entry is one transition in a slot's ledger.
type Entry struct {
	ID          string // the ledger's own order
	Time        time.Time
	Hold        string
	SubjectHash string
	Units       int64
	From, To    decision.HoldState
	Cause       string // decide, adopt, booked, refused, …, cancel, confirm, lapse, operator
}
