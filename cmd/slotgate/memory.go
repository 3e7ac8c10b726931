package main

import (
	"os"
	"runtime/debug"
)

// gcPercent is how much of what is alive may be garbage beside it. A gate is small and
// stands beside the program that it guards, whose the machine is. A booking makes little
// garbage: with half in place of 28 % a gate with 256 connections is some 6 MiB larger, for
// less processor time than can be told from chance.
const gcPercent = 28

// sparing has the collector keep the heap small, where nobody has said otherwise (GOGC).
// A limit that the environment sets (GOMEMLIMIT) holds beside it.
func sparing() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
