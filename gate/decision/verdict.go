package decision

// Verdict is what a store's decide found, in the order in which decide looks.
type Verdict uint8

const (
	NoVerdict Verdict = iota

	// Answered: the owner this twin waited for has left its answer.
	Answered
	// Gone: this request id was decided and finished before; a late copy.
	Gone
	// Replay: the key is done and its stored answer may be given.
	Replay
	// KeyDone: the key is done, but this caller may not see the answer.
	KeyDone
	// Mismatch: the key is known with another fingerprint.
	Mismatch
	// Twin: a request with this key is running.
	Twin
	// OutcomeUnknown: the key's, or the subject's, first attempt is unanswered.
	OutcomeUnknown
	// LimitedSubject, LimitedClient, LimitedSlot: a rate limit is exhausted.
	LimitedSubject
	LimitedClient
	// SubjectBusy: one_per_subject, and an attempt of the subject runs here.
	SubjectBusy
	// SubjectHolds: one_per_subject, and the subject has the slot.
	SubjectHolds
	// SubjectFull: max_per_subject would be exceeded in the pool.
	SubjectFull
	// Closed by an operator.
	Closed
	// NotOpen: before opens_at.
	NotOpen
	// Load: the slot's capacity is not known, or a sold out would rest on a look
	// that is too old: truth is to be looked at, then asked again.
	Load
	// OverCapacity: more units than the slot has in all.
	OverCapacity
	// SoldOut: not enough units left, or marked full.
	SoldOut
	LimitedSlot
	// NoRoom: max_inflight requests of the slot are at the backend.
	NoRoom
	// Admitted: the hold is taken (or goes on) and the request may be forwarded.
	Admitted
)

var verdictNames = [...]string{
	"", "answered", "gone", "replay", "key_done", "mismatch", "twin", "outcome_unknown",
	"limited_subject", "limited_client", "subject_busy", "subject_holds", "subject_full",
	"closed", "not_open", "load", "over_capacity", "sold_out", "limited_slot", "no_room", "admitted",
}

// String is the word the scripts return.
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return "invalid"
}

// ParseVerdict is the inverse of String; false for a word no script returns.
func ParseVerdict(s string) (Verdict, bool) {
	for i, name := range verdictNames {
		if i > 0 && name == s {
			return Verdict(i), true
		}
	}
	return NoVerdict, false
}
