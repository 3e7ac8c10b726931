package decision

import (
	"encoding/json"
	"strconv"
	"strings"

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

// urns are the types of problems, made once.
var urns = func() map[Decision]string {
	made := make(map[Decision]string, len(renderings))
	for d := range renderings {
		made[d] = "urn:slotgate:" + string(d)
	}
	return made
}()

// NewProblem describes a decision that the gate answers itself.
func NewProblem(d Decision, detail, requestID string) Problem {
	r := renderings[d]
	return Problem{
		Type:      urns[d],
		Title:     r.title,
		Status:    r.status,
		Detail:    detail,
		Retryable: r.retryable,
		RequestID: requestID,
	}
}

// Answer renders the problem.
func (p Problem) Answer() Answer { return p.AnswerIn(new(Room)) }

// Room is memory for the head and body of one answer, with some for the fields that are
// usually added: a sold-out sale is thousands of these a second.
type Room struct {
	fields [5]rules.Field
	body   [384]byte
}

// AnswerIn is Answer in memory that has been used before. The answer is good until that is
// used again.
func (p Problem) AnswerIn(room *Room) Answer {
	return Answer{
		Status: p.Status,
		Header: append(room.fields[:0],
			rules.Field{Name: "Content-Type", Value: "application/problem+json"},
			rules.Field{Name: "Cache-Control", Value: "no-store"}),
		Body: append(p.appendJSON(room.body[:0]), '\n'),
	}
}

// appendJSON writes what encoding/json would.
func (p *Problem) appendJSON(b []byte) []byte {
	b = appendString(append(b, `{"type":`...), p.Type)
	b = appendString(append(b, `,"title":`...), p.Title)
	b = strconv.AppendInt(append(b, `,"status":`...), int64(p.Status), 10)
	b = appendString(append(b, `,"detail":`...), p.Detail)
	b = strconv.AppendBool(append(b, `,"retryable":`...), p.Retryable)
	b = appendString(append(b, `,"request_id":`...), p.RequestID)
	return append(b, '}')
}

// appendString leaves a text that needs escapes to encoding/json.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if !plainBytes[s[i]] {
			quoted, _ := json.Marshal(s) // a string always marshals
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// plainBytes are those that encoding/json writes as they are.
var plainBytes = func() (t [256]bool) {
	for c := byte(' '); c <= '~'; c++ {
		t[c] = strings.IndexByte(`"\<>&`, c) < 0
	}
	return t
}()
