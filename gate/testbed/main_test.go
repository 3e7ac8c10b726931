package testbed

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(SharedMariaDB(SharedPostgres(m)))
}
