package edge

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/upstream"
	"github.com/slotgate/slotgate/rules"
)

// maxForwards is the field by which OPTIONS and TRACE say how far they may go (RFC
// 9110 section 7.6.2). With other methods it says nothing.
const maxForwards = "Max-Forwards"

func (in *head) countsHops() bool { return in.method == "OPTIONS" || in.method == "TRACE" }

// lastHop reports that the request may go no further than here.
func (in *head) lastHop() bool {
	if !in.countsHops() {
		return false
	}
	for _, f := range in.fields {
		if n, ok := upstream.ParseLength(f.Value); ok && n == 0 && strings.EqualFold(f.Name, maxForwards) {
			return true
		}
	}
	return false
}

// countHop takes this hop off, in place. What is no number is not for here to mend.
func (in *head) countHop() {
	if !in.countsHops() {
		return
	}
	for i, f := range in.fields {
		if n, ok := upstream.ParseLength(f.Value); ok && n > 0 && strings.EqualFold(f.Name, maxForwards) {
			in.fields[i].Value = strconv.FormatInt(n-1, 10)
		}
	}
}

// methodsHere are those that may have a meaning behind the gate.
const methodsHere = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"

// lastHopAnswer is for the gate alone: what a resource allows is not known here, and
// TRACE would show what the proxies before have added (RFC 9110 section 9.3.8).
func (in *head) lastHopAnswer(requestID string) decision.Answer {
	if in.method == "OPTIONS" {
		return decision.Answer{Status: http.StatusOK}
	}
	a := decision.Problem{
		Type:      "about:blank",
		Title:     http.StatusText(http.StatusMethodNotAllowed),
		Status:    http.StatusMethodNotAllowed,
		Detail:    "The gate answers no TRACE.",
		RequestID: requestID,
	}.Answer()
	a.Header = append(a.Header, rules.Field{Name: "Allow", Value: methodsHere})
	return a
}
