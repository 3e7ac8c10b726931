package decision

// Decision is the word in Gate-Decision.
type Decision string

const (
	DecisionAdmitted        Decision = "admitted"
	DecisionReplayed        Decision = "replayed"
	DecisionInFlight        Decision = "in-flight"
	DecisionKeyMissing      Decision = "key-missing"
	DecisionKeyInvalid      Decision = "key-invalid"
	DecisionKeyMismatch     Decision = "key-mismatch"
	DecisionOutcomeUnknown  Decision = "outcome-unknown"
	DecisionDuplicate       Decision = "duplicate"
	DecisionSoldOut         Decision = "sold-out"
	DecisionClosed          Decision = "closed"
	DecisionRateLimited     Decision = "rate-limited"
	DecisionBusy            Decision = "busy"
	DecisionUnidentified    Decision = "unidentified"
	DecisionAmbiguous       Decision = "ambiguous"
	DecisionTooLarge        Decision = "too-large"
	DecisionUnsupported     Decision = "unsupported"
	DecisionPassthrough     Decision = "passthrough"
	DecisionStoreDown       Decision = "store-down"
	DecisionUpstreamOpen    Decision = "upstream-open"
	DecisionUpstreamFailed  Decision = "upstream-failed"
	DecisionUpstreamTimeout Decision = "upstream-timeout"
	DecisionShadow          Decision = "shadow"
)

type rendering struct {
	status    int
	title     string
	retryable bool
}

var renderings = map[Decision]rendering{
	DecisionInFlight:        {409, "A request with this key is still running", true},
	DecisionKeyMissing:      {400, "An idempotency key is required", false},
	DecisionKeyInvalid:      {400, "The idempotency key is not valid", false},
	DecisionKeyMismatch:     {422, "The idempotency key was used for another request", false},
	DecisionOutcomeUnknown:  {409, "The result of the first attempt is not known", true},
	DecisionDuplicate:       {409, "Already booked", false},
	DecisionSoldOut:         {409, "Sold out", false},
	DecisionClosed:          {409, "Not open for booking", false},
	DecisionRateLimited:     {429, "Too many requests", true},
	DecisionBusy:            {503, "Too busy, try again", true},
	DecisionUnidentified:    {400, "The request does not say what to book", false},
	DecisionAmbiguous:       {400, "The request could be read in two ways", false},
	DecisionTooLarge:        {413, "The request body is too large", false},
	DecisionUnsupported:     {415, "The request body cannot be read", false},
	DecisionStoreDown:       {503, "Bookings cannot be checked at the moment", true},
	DecisionUpstreamOpen:    {503, "The booking service is not available", true},
	DecisionUpstreamFailed:  {502, "The booking service did not answer properly", true},
	DecisionUpstreamTimeout: {504, "The booking service did not answer in time", true},
}

// Status is the HTTP status of the gate's own answer; 0 for decisions that pass
// on somebody else's (admitted, replayed, passthrough, shadow).
func (d Decision) Status() int { return renderings[d].status }

// Title is the short text of problem+json.
func (d Decision) Title() string { return renderings[d].title }

// Retryable reports whether the same request may succeed later unchanged.
func (d Decision) Retryable() bool { return renderings[d].retryable }

// Own lists the decisions that the gate answers itself.
func Own() []Decision {
	own := make([]Decision, 0, len(renderings))
	for d := range renderings {
		own = append(own, d)
	}
	return own
}

// FromVerdict is the decision a refused, waiting or replaying verdict ends in
// once there is nothing left to wait for.
func FromVerdict(v Verdict) Decision {
	switch v {
	case Admitted:
		return DecisionAdmitted
	case Answered, Replay:
		return DecisionReplayed
	case Gone, Twin, SubjectBusy:
		return DecisionInFlight
	case KeyDone, SubjectHolds:
		return DecisionDuplicate
	case Mismatch:
		return DecisionKeyMismatch
	case OutcomeUnknown:
		return DecisionOutcomeUnknown
	case LimitedSubject, LimitedClient, LimitedSlot, SubjectFull:
		return DecisionRateLimited
	case Closed, NotOpen:
		return DecisionClosed
	case OverCapacity:
		return DecisionUnidentified
	case SoldOut:
		return DecisionSoldOut
	case NoRoom:
		return DecisionBusy
	}
	return DecisionStoreDown
}
