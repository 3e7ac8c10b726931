package testbed

import "math/rand/v2"

// BackendFault is what may befall a request.
type BackendFault int

const (
	// NoFault passes request and response on.
	NoFault BackendFault = iota
	// RefuseBackend resets the connection without an answer and refuses new ones for
	// a while (RefuseFor), as a backend does that is restarted. The backend never
	// gets the request.
	RefuseBackend
	// BusyBefore answers 503 with Retry-After: 1. The backend never gets the request.
	BusyBefore
	// HangBefore never answers. The backend never gets the request.
	HangBefore
	// HangAfter never answers, though the backend did.
	HangAfter
	// ErrorAfter answers 500, whatever the backend answered.
	ErrorAfter
	// CutBody resets the connection in the middle of the response's body, or of its
	// head where it has no body.
	CutBody
	// Garbage sends bytes that are no HTTP in place of the response, and closes.
	Garbage
	// Stray sends another whole response, which nobody asked for, right behind the
	// response, and leaves the connection open.
	Stray
	// StrayLate does the same, but sends the other response a while later (SlowBy),
	// when the connection may be idle or have been given to the next request.
	StrayLate
	// CloseAfter closes the connection right behind the response, unannounced.
	CloseAfter
	// Slow answers late (SlowBy).
	Slow

	faultKinds = iota
)

var faultNames = [faultKinds]string{
	"NoFault", "RefuseBackend", "BusyBefore", "HangBefore", "HangAfter", "ErrorAfter", "CutBody", "Garbage",
	"Stray", "StrayLate", "CloseAfter", "Slow",
}

func (f BackendFault) String() string { return faultNames[f] }

// backendOrder is a fault that is to befall one request.
type backendOrder struct {
	fault BackendFault
	after int // requests still to come, the chosen one included
}

// draw returns the fault of the n-th request.
func draw(seed uint64, n int, odds map[BackendFault]float64) BackendFault {
	at := rand.New(rand.NewPCG(seed, uint64(n))).Float64()
	for fault := NoFault; fault < faultKinds; fault++ {
		if at -= odds[fault]; at < 0 {
			return fault
		}
	}
	return NoFault
}
