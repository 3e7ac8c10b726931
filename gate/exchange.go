package gate

import (
	"errors"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

// Request is a client's request as the edge hands it in. Nothing in it is kept
// after Serve returns.
type Request struct {
	rules.Request // Body is filled by ReadBody
	// Target is the path and query that the backend gets; empty: Path and Query.
	Target string
	// ID is the request id: the client's X-Request-Id when it is well formed,
	// else made by the edge.
	ID string
	// ReadBody reads the whole body. Its errors are a *rules.Refusal
	// (too-large), ErrOverloaded, ErrSlowBody, ErrBadBody or ErrClientGone.
	ReadBody func() ([]byte, error)
	// BodyHeld: the client sends its body when ReadBody is called, and not before;
	// what it announces of it is within server.max_body.
	BodyHeld bool
	// Gone reports that the client has closed its connection. It may be called
	// from the goroutine of Serve only.
	Gone func() bool
	// Arrived is when the head was complete.
	Arrived time.Time
	// Secure: the client came by https, to this gate or to a trusted proxy.
	Secure bool

	// Shadow is set by Route where the request's rule is in shadow.
	Shadow *Shadow

	under *rulebook // set by Route
	ids   *ids      // set by Route; nil: none are brought or to be issued
}

var (
	// ErrOverloaded: server.max_buffered is reached.
	ErrOverloaded = errors.New("too many buffered bytes")
	// ErrSlowBody: the body did not come in time.
	ErrSlowBody = errors.New("the body did not come in time")
	// ErrBadBody: the body's framing is broken.
	ErrBadBody = errors.New("the body is not what its framing announces")
	// ErrClientGone: the body never came.
	ErrClientGone = errors.New("the client went away")
)

// Mode is the word in Gate-Mode.
type Mode string

const (
	ModeNormal   Mode = "normal"
	ModeDegraded Mode = "degraded"
	ModeShadow   Mode = "shadow"
)

// Reply is what the client gets. The edge writes Answer and, unless
// server.gate_headers is false, the Gate-* fields.
type Reply struct {
	decision.Answer
	Decision decision.Decision
	Mode     Mode
	Rule     string
	Outcome  rules.Outcome // NoOutcome: nothing was forwarded
	Hold     string
	Bound    string // degraded only
	// Bodyless: not all of the answer's body is there, and none of it is kept.
	Bodyless bool
	// Shadow is what enforce would have answered with; "" outside of shadow.
	Shadow   decision.Decision
	Replayed bool // adds Idempotent-Replayed: true
	// Release gives pooled buffers back; the edge calls it after writing. May
	// be nil.
	Release func()
}
