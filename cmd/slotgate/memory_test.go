package main

import (
	"runtime/debug"
	"testing"
)

// TestTheEnvironmentSaysHowMuchGarbageThereMayBe: what a user has set stands.
func TestTheEnvironmentSaysHowMuchGarbageThereMayBe(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)

	t.Setenv("GOGC", "100")
	sparing()
	if now := debug.SetGCPercent(100); now != 100 {
		t.Errorf("GOGC=100 became %d", now)
	}
	t.Setenv("GOGC", "")
	sparing()
	if now := debug.SetGCPercent(100); now != gcPercent {
		t.Errorf("%d where nobody has set it, want %d", now, gcPercent)
	}
}
