// Package e2e holds the tests that run the real slotgate program in front of the
// sample legacy API, with a real Redis and PostgreSQL. Each shows one line of
// what the product promises.
package e2e

import (
	"os"
	"testing"

	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
)

func TestMain(m *testing.M) { os.Exit(stage.Main(m)) }

// rssGrowth bounds what 10,000 slots, subjects and keys may add to the process, in
// bytes; the race detector multiplies it.
func rssGrowth() int64 {
	if stage.Race {
		return 512 << 20
	}
	return 64 << 20
}
