package chaos

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"
)

// action is what a client asks for.
type action string

const (
	book   action = "book"
	cancel action = "cancel"
)

// call is one request of a client and what it was told. A request that is sent again
// is another call.
type call struct {
	client    int
	action    action
	lesson    int
	student   string
	key       string // Idempotency-Key; "" of a cancel
	principal string // who asks: the content of Authorization
	cancels   int64  // the booking that a cancel names; 0: it names the student
	gate      int

	began, ended time.Duration // since the storm began; monotonic

	unsent   bool // no connection: the request never left
	status   int  // 0: no answer
	decision string
	outcome  string
	mode     string
	bound    int    // Gate-Bound, where it is a number
	session  string // Set-Cookie
	body     string
	booking  int64  // booking_id of the body, 0 none
	told     string // student_id of the body
}

func (c call) String() string {
	answer := fmt.Sprintf("%d %s/%s", c.status, c.decision, cmp.Or(c.outcome, "-"))
	switch {
	case c.unsent:
		answer = "not sent"
	case c.status == 0:
		answer = "no answer"
	case c.mode == "degraded":
		answer += " degraded"
	}
	if c.booking != 0 {
		answer += fmt.Sprintf(" booking %d", c.booking)
	}
	return fmt.Sprintf("%9.3fms %9.3fms client %-2d gate %d %-6s lesson %d %-4s key %-18s as %-6s → %s",
		milliseconds(c.began), milliseconds(c.ended), c.client, c.gate, c.action, c.lesson, c.student, c.key, c.principal, answer)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// verdict is what an answer says of the slot.
type verdict string

const (
	booked    verdict = "booked"    // by this call
	replayed  verdict = "replayed"  // what another call of the key booked
	settled   verdict = "settled"   // the hold of its key is booked, nobody knows with which answer (H21)
	duplicate verdict = "duplicate" // the gate says that the student has the lesson
	taken     verdict = "taken"     // the backend says so
	soldOut   verdict = "sold out"  // says the gate
	full      verdict = "full"      // says the backend
	cancelled verdict = "cancelled" // by this call
	absent    verdict = "absent"    // the backend has nothing to cancel
	silent    verdict = "silent"    // nothing of the slot: a refusal for other reasons
	unknown   verdict = "unknown"   // it may have been done, now or later, or not
	closing   verdict = "closing"   // the end of the history
)

// verdict reads an answer.
func (c *call) verdict() verdict {
	switch {
	case c.unsent:
		return silent
	case c.decision == "replayed":
		// The answer of a twin that was waited for tells of a moment before this call,
		// and a duplicate that was kept is told for as long as its key lives.
		switch {
		case c.outcome != "booked":
			return silent
		case c.status == http.StatusOK:
			return settled
		}
		return replayed
	case c.status == 0, c.outcome == "unknown":
		return unknown
	case c.action == cancel:
		return c.cancelVerdict()
	}
	switch c.decision {
	case "admitted", "passthrough":
		switch c.outcome {
		case "booked":
			return booked
		case "duplicate":
			return taken
		case "sold_out":
			return full
		}
	case "duplicate":
		return duplicate
	case "sold-out":
		return soldOut
	}
	return silent
}

func (c *call) cancelVerdict() verdict {
	switch {
	case c.outcome == "done":
		return cancelled
	case c.outcome == "refused" && c.cancels == 0:
		return absent
	}
	return silent // a booking may be gone, and the student have another
}

// forever is the end of what has no known end.
const forever = time.Duration(math.MaxInt64)

// history is what the clients of one storm were told.
type history struct {
	epoch time.Time
	mu    sync.Mutex
	calls []call
}

func newHistory() *history { return &history{epoch: time.Now()} }

// now is the time since the storm began.
func (h *history) now() time.Duration { return time.Since(h.epoch) }

func (h *history) record(c call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, c)
}

// all returns the calls so far in the order in which they began.
func (h *history) all() []call {
	h.mu.Lock()
	defer h.mu.Unlock()
	calls := slices.Clone(h.calls)
	slices.SortStableFunc(calls, func(a, b call) int { return cmp.Compare(a.began, b.began) })
	return calls
}
