package main

import (
	"os"
	"runtime/debug"
)

// gcPercent is how much of what is alive may be garbage beside it. A gate is small and
// stands beside the program that it guards, whose the machine is. A booking makes little
// garbage: a third in place of half is some 5 MiB less with 256 connections, for no more
// processor time than can be told from chance.
const gcPercent = 33

// sparing has the collector keep the heap small, where nobody has said otherwise (GOGC).
// A limit that the environment sets (GOMEMLIMIT) holds beside it.
func sparing() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
