package stage

import (
	"testing"
	"time"
)

// Eventually asks until missing returns "", and returns how long that took.
func Eventually(t testing.TB, within time.Duration, missing func() string) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		what := missing()
		took := time.Since(began)
		if what == "" {
			return took
		}
		if took > within {
			t.Fatalf("after %v still: %s", took.Round(time.Millisecond), what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
