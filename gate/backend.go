package gate

import (
	"time"

	"github.com/slotgate/slotgate/rules"
)

// Backend forwards a gated request. It is safe for concurrent use.
type Backend interface {
	// Forward sends the request once, if a connection is there by SendBy, and waits
	// Timeout from then for the whole answer. It never repeats a request of which a byte may have been sent.
	// A failure is a *BackendError; the answer is otherwise complete, with
	// hop-by-hop fields removed.
	Forward(f *Forward) (*BackendAnswer, error)
}

// Forward is a request on its way to the backend.
type Forward struct {
	Request *Request
	// SendBy is when the first byte must be on its way; else none is sent.
	SendBy  time.Time
	Timeout time.Duration
	// Limit bounds the answer's body that is kept in memory, in bytes.
	Limit int64
}

// BackendAnswer is a backend's complete answer.
type BackendAnswer struct {
	rules.Response
	// Release gives pooled memory back; Response must not be used afterwards.
	Release func()
}

// BackendFailure tells apart what is known when there is no answer.
type BackendFailure uint8

const (
	// NotConnected: no byte was sent.
	NotConnected BackendFailure = iota + 1
	// BreakerOpen: not tried, no byte was sent.
	BreakerOpen
	// NoRoom: every connection was in use until it was too late, no byte was sent.
	NoRoom
	// TimedOut: sent, no complete answer before the deadline.
	TimedOut
	// Broken: sent in part or whole, then the connection failed or the answer
	// was no HTTP.
	Broken
)

// BackendError is a forward without an answer.
type BackendError struct {
	Failure    BackendFailure
	RetryAfter time.Duration // BreakerOpen: when it may close
	Err        error
}

func (e *BackendError) Error() string { return e.Err.Error() }
func (e *BackendError) Unwrap() error { return e.Err }

// NeverSent reports that the backend cannot have seen the request.
func (e *BackendError) NeverSent() bool {
	return e.Failure == NotConnected || e.Failure == BreakerOpen || e.Failure == NoRoom
}
