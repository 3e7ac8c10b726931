package main

import (
	"os"
	"runtime/debug"
)

// gcPercent is how much of what is alive may be garbage beside it. A gate is small and
// stands beside the program that it guards, whose the machine is: half of Go's own 100 is
// some 14 MiB less with 256 connections, for 2 % of the processor time of an admitted booking.
const gcPercent = 50

// sparing has the collector keep the heap small, where nobody has said otherwise (GOGC).
// A limit that the environment sets (GOMEMLIMIT) holds beside it.
func sparing() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
