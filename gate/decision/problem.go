package decision

import (
	"encoding/json"

	"github.com/slotgate/slotgate/rules"
)

// Problem is the body of the gate's own answers (RFC 9457).
type Problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Retryable bool   `json:"retryable"`
	RequestID string `json:"request_id"`
}

// NewProblem describes a decision that the gate answers itself.
func NewProblem(d Decision, detail, requestID string) Problem {
	return Problem{
		Type:      "urn:slotgate:" + string(d),
		Title:     d.Title(),
		Status:    d.Status(),
		Detail:    detail,
		Retryable: d.Retryable(),
		RequestID: requestID,
	}
}

// Answer renders the problem.
func (p Problem) Answer() Answer {
	body, err := json.Marshal(p)
	if err != nil { // strings, a number and a bool always marshal
		panic(err)
	}
	return Answer{
		Status: p.Status,
		Header: []rules.Field{
			{Name: "Content-Type", Value: "application/problem+json"},
			{Name: "Cache-Control", Value: "no-store"},
		},
		Body: append(body, '\n'),
	}
}
