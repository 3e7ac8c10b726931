// Package chaos holds storms of bookings drawn from one number each: who asks for
// what, the topology of the store, the rules, the backend, and which faults of the
// store, the backend and the gates fall when. Real gates run in front of the sample
// API on a real PostgreSQL. What the clients were told is held against a model of a
// lesson (slotModel) by porcupine, and against the database itself.
//
//	SLOTGATE_SEED=7 go test -run TestChaos ./cmd/slotgate/e2e/chaos       one storm (or 7,20-39)
//	SLOTGATE_SEEDS=50 go test -run TestChaos ./cmd/slotgate/e2e/chaos     so many
//	SLOTGATE_SOAK_TIME=3m go test -run TestSoak ./cmd/slotgate/e2e/chaos  storm after storm on the same gates
//
// With -artifacts a storm that failed leaves every call and the database's history.
//
// The same seed draws the same plan; when its steps fall depends on the machine.
// Seeds that once found a fault are kept in testdata/seeds.txt and always run.
package chaos

import (
	"os"
	"testing"

	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
)

func TestMain(m *testing.M) { os.Exit(stage.Main(m)) }
