package gate

import (
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/issue"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// bareReplayKey is the length from which a client-sent key is secret enough to
// hand out a stored answer when neither side showed any credential.
const bareReplayKey = 16

// keyed says what the key's source means for its record. One that was issued is a secret
// of the browser that brings it. A derived one is no secret: whoever sends the same gets
// the stored answer only by an equal scope that is not empty.
func (j *journey) keyed(d *store.Decide) {
	switch rules.KeySourceOf(j.facts.Key) {
	case rules.KeySent:
		d.BareReplay = len(j.facts.Key) >= bareReplayKey
	case rules.KeyIssued:
		d.BareReplay = true
		d.KeyTTL += issue.ClockSkew // it outlives the id, whichever gate's clock says how old that is
	case rules.KeyDerived:
		d.KeyTTL = j.match.Rule.Idempotency.Derive
	}
}

// keyTTL is how long a key is remembered from a settlement on. The time of a derived one
// counts from the request, then for as long as that may run at least (Decide.Lease), and
// anew from its answer: who clicks again may have waited for it. Where the outcome is not
// known, a repeat is kept from the backend until what it did shows (A1). After that, an
// equal request is a new one.
func (j *journey) keyTTL(d *store.Decide, outcome rules.Outcome) time.Duration {
	if rules.KeySourceOf(j.facts.Key) == rules.KeyDerived && outcome == rules.Unknown {
		return max(d.KeyTTL, d.HoldTTL, d.Lease)
	}
	return d.KeyTTL
}

// keyDetails stand for verdictDetails where the client knows of no key.
var keyDetails = [...]map[decision.Verdict]string{
	rules.KeyIssued: {
		decision.KeyDone:  "A booking from this page is done; its answer may not be shown to this caller.",
		decision.Mismatch: "Something else was asked for from this page before; load it again, a little later if that had no answer yet.",
		decision.Twin:     "A booking from this page is still running.",
	},
	rules.KeyDerived: {
		decision.KeyDone: "The same was asked for a moment ago and is done; its answer may not be shown to this caller.",
		decision.Twin:    "The same was asked for a moment ago and is still running.",
	},
}

// detail is what a client is told of a verdict.
func (j *journey) detail(v decision.Verdict) string {
	if text, ok := keyDetails[rules.KeySourceOf(j.facts.Key)][v]; ok {
		return text
	}
	return verdictDetails[v]
}
