package gate

import (
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

// Meter counts what happens. Implementations are safe for concurrent use and
// cheap; they get only names from the configuration and fixed words, never a
// slot, subject or key.
type Meter interface {
	// Request is one gated request answered: the whole time, and the part spent
	// in the gate itself (without the backend).
	Request(rule string, d decision.Decision, total, inGate time.Duration)
	// Outcome is one forwarded attempt classified.
	Outcome(rule string, o rules.Outcome, took time.Duration)
	// Oversold adds units that a late booking put over a slot's capacity.
	Oversold(pool string, units int64)
	// Repeated counts one "sold out" that was told without asking the store.
	Repeated(pool string)
	// StoreError counts one failed store call by kind.
	StoreError(kind string)
}
