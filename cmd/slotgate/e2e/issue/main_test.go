// Package issue holds the tests of requests without a key of their own: browsers with tabs
// in front of a site of forms that knows nothing of request ids and books whatever comes.
// What the gate adds is one-time ids (idempotency.issue) and keys that it derives
// (idempotency.derive).
package issue

import (
	"os"
	"testing"

	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
)

func TestMain(m *testing.M) { os.Exit(stage.Main(m)) }
