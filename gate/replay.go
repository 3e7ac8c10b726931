package gate

import (
	"bytes"
	"slices"
	"strings"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// replay is a stored answer, or the answer of the twin that was waited for.
func (j *journey) replay(decided *store.Decided, mayReplay bool) *Reply {
	if decided.Verdict == decision.Answered && !mayReplay {
		return j.refuseVerdict(&store.Decided{Verdict: decision.KeyDone})
	}
	r := j.newReply(decision.DecisionReplayed)
	r.Replayed = true
	if len(decided.Answer) == 0 {
		// The booking is certain, its answer was never seen (H21).
		r.Answer.Status, r.Outcome = 200, rules.Booked
		return r
	}
	stored, err := decision.DecodeStored(decided.Answer)
	if err != nil || stored.Fingerprint != j.facts.Fingerprint {
		j.gate.meter.StoreError(string(store.KindReply))
		j.gate.log.Error("a stored answer does not belong to its request", "rule", j.match.Rule.Name, j.requestID(), "error", err)
		return j.refuseVerdict(&store.Decided{Verdict: decision.KeyDone})
	}
	answer, ok := asAccepted(stored.Answer, j.req.Header, maxInflation*j.route.maxAnswer)
	if !ok {
		return j.refuse(decision.DecisionDuplicate, "A request with this idempotency key is done; its answer is in a form that this request does not accept.", 0)
	}
	r.Answer, r.Outcome = answer, stored.Outcome
	return r
}

// maxInflation bounds a stored answer out of its content coding, in bodies of
// idempotency.max_response: what shrinks further is no text.
const maxInflation = 8

// asAccepted makes a stored answer one that the request may be given, for it may
// have been negotiated with a request that accepted other things (RFC 9110, 12):
//
//   - A body in a content coding goes as it is to whoever names the coding; without
//     Accept-Encoding that is nobody, although the standard lets a server send any.
//     For others gzip and deflate are undone, which leaves the same content.
//   - A media type is not turned into another: ok is false where Accept excludes it.
//     The gate's own problems go to everybody, as they do outside of replays.
//   - A part (206) goes to requests for a part only.
//
// All else that the answer may vary by, such as the language, was chosen for the
// first request and stays: the same key asks for the same answer. limit is in bytes.
func asAccepted(a decision.Answer, request []rules.Field, limit int64) (_ decision.Answer, ok bool) {
	if a.Status == 206 && len(fieldValues(request, "Range")) == 0 {
		return decision.Answer{}, false
	}
	if len(a.Body) == 0 {
		return a, true
	}
	codings := listed(fieldValues(a.Header, "Content-Encoding"))
	accepted := fieldValues(request, "Accept-Encoding")
	if slices.ContainsFunc(codings, func(c string) bool { return !acceptsCoding(accepted, c) }) {
		if len(codings) > 1 {
			return decision.Answer{}, false
		}
		text, err := rules.InflateAnswer(a.Body, codings[0], limit)
		if err != nil {
			return decision.Answer{}, false
		}
		a, codings = inflated(a, text), nil
	}
	if !acceptsType(fieldValues(request, "Accept"), mediaType(a, len(codings) > 0)) {
		return decision.Answer{}, false
	}
	return a, true
}

// inflated is the answer with its body out of the coding: another representation,
// with which the first one's digests do not agree.
func inflated(a decision.Answer, text []byte) decision.Answer {
	a.Body = text
	a.Header = slices.DeleteFunc(slices.Clone(a.Header), func(f rules.Field) bool {
		switch strings.ToLower(f.Name) {
		case "content-encoding", "content-md5", "digest", "content-digest", "repr-digest":
			return true
		}
		return false
	})
	for i := range a.Header {
		if f := &a.Header[i]; strings.EqualFold(f.Name, "ETag") && strings.HasPrefix(f.Value, `"`) {
			f.Value = "W/" + f.Value
		}
	}
	return a
}

// mediaType is what an answer's body is, "" where that is not certain: without one
// label, or under text/html and text/plain, which servers write on whatever has none,
// unless the text, where it can be read, begins as markup does. A problem of the gate
// has no type here, for everybody accepts it.
func mediaType(a decision.Answer, coded bool) string {
	labels := fieldValues(a.Header, "Content-Type")
	if len(labels) != 1 {
		return ""
	}
	label, _, _ := strings.Cut(labels[0], ";")
	switch label = strings.ToLower(strings.TrimSpace(label)); label {
	case "application/problem+json":
		return ""
	case "text/html", "text/plain":
		if coded || !bytes.HasPrefix(bytes.TrimLeft(a.Body, " \t\r\n\ufeff"), []byte("<")) {
			return ""
		}
	}
	return label
}
