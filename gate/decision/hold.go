package decision

// HoldState is where a hold stands. Units of held, pending and unknown holds
// count as held, of confirmed ones as confirmed; released and lapsed ones are
// kept only so that late copies of a call find them (design H4, H22).
type HoldState uint8

const (
	NoHold HoldState = iota
	Held
	Pending
	HoldUnknown
	Confirmed
	Released
	Lapsed
)

var holdNames = [...]string{"", "held", "pending", "unknown", "confirmed", "released", "lapsed"}

// String is the word in the store, the ledger and the admin API.
func (s HoldState) String() string {
	if int(s) < len(holdNames) {
		return holdNames[s]
	}
	return "invalid"
}

// ParseHoldState is the inverse of String; false for an unknown word.
func ParseHoldState(word string) (HoldState, bool) {
	for i, name := range holdNames {
		if i > 0 && name == word {
			return HoldState(i), true
		}
	}
	return NoHold, false
}

// Open reports whether the hold's units are taken but not final.
func (s HoldState) Open() bool { return s == Held || s == Pending || s == HoldUnknown }
