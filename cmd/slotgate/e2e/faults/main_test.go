// Package faults holds the fault matrix: each cell is one fault of the store, the
// backend or a gate, in one topology of the store, in the middle of a sale through
// two gates. What the clients saw and what the database and the store say
// afterwards is measured, held against what is promised, and written as one row of
// a table:
//
//	SLOTGATE_TABLE=/tmp/matrix.md go test ./cmd/slotgate/e2e/faults
//
// The sales are small, so that the whole matrix belongs to every test run;
// SLOTGATE_SOAK=1 makes them five times as large and as long.
package faults

import (
	"os"
	"testing"

	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
)

func TestMain(m *testing.M) { os.Exit(stage.Main(m)) }
