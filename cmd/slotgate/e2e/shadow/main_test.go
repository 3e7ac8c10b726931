// Package shadow shows, with the real program, that a rule in shadow changes nothing for
// clients, that its report is what enforce does, and that to switch to enforce is warm.
package shadow

import (
	"os"
	"testing"

	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
)

func TestMain(m *testing.M) { os.Exit(stage.Main(m)) }
