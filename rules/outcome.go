package rules

// Outcome is what a backend's answer meant for the units that were held for it.
type Outcome uint8

const (
	NoOutcome Outcome = iota
	Booked            // the units are taken at the backend
	Refused           // definitely not taken
	SoldOut           // definitely not taken, and the backend has none left
	Duplicate         // the subject has them already
	Busy              // definitely not executed, may be tried again
	Unknown           // nobody knows: time-out, broken connection, other 5xx
	NeverSent         // no byte of the request reached the backend
	Done              // a cancel or confirm, or a guarded request, took effect
)

var outcomeNames = [...]string{"", "booked", "refused", "sold_out", "duplicate", "busy", "unknown", "never_sent", "done"}

// String is the word used in configuration, Gate-Outcome and metrics.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "invalid"
}

// Definite reports whether the outcome excludes that the backend took the units.
func (o Outcome) Definite() bool {
	return o == Refused || o == SoldOut || o == Busy || o == NeverSent
}
