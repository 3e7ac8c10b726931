package e2e

import (
	"testing"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
	"github.com/slotgate/slotgate/gate/testbed"
)

// TestAProbeSettlesWhatNobodyAnswered: under unknown: probe the list of bookings tells
// what came of a booking whose answer came too late, or never, before its hold lapses.
func TestAProbeSettlesWhatNobodyAnswered(t *testing.T) {
	t.Parallel()
	const holdTTL = 9 * time.Second
	start := func(t *testing.T, o booking.Options) (*stage.Backend, []*stage.Gate) {
		database := stage.SQLiteTables(t)
		o.Database, o.Lessons, o.Seats = database.Database, 1, 1
		backend := stage.StartBackend(t, o)
		config := stage.Lessons(backend.URL, `kind: redis, timeout: 1500ms, addresses: ["`+testbed.Redis(t).Addr()+`"]`, ", timeout: 400ms",
			database.Remainder("lesson_slot", "refresh: 5m, hot: 5m, lag: 100ms, timeout: 2s, max_rate: 200/s")+", hold_ttl: 9s, one_per_subject: true",
			"    idempotency: { unknown: probe }\n")
		return backend, []*stage.Gate{stage.StartGate(t, config), stage.StartGate(t, config)}
	}
	who := []string{"Idempotency-Key: 0123456789abcdef-probe", "Authorization: Bearer ann"}
	t.Run("committed", func(t *testing.T) {
		t.Parallel()
		backend, gates := start(t, booking.Options{Style: booking.Conditional, CommitThenDelay: 1500 * time.Millisecond})
		began := time.Now()
		stage.Expect(t, stage.Book(gates[0].URL, 1, "ann", who...), 504, "upstream-timeout", "unknown")
		told := map[string]int{}
		stage.Eventually(t, holdTTL-time.Since(began), func() string {
			a := stage.Book(gates[1].URL, 1, "ann", who...)
			decision := a.Header.Get("Gate-Decision")
			told[decision]++
			switch {
			case decision == "replayed" && a.Status == 200 && a.Header.Get("Gate-Outcome") == "booked":
				return ""
			case decision != "outcome-unknown" || a.Status != 409 || a.Header.Get("Retry-After") == "":
				t.Fatalf("a retry was answered %v", a)
			}
			return a.String()
		})
		t.Logf("settled %v after the booking began, with a hold_ttl of %v; retries were answered %v", time.Since(began).Round(time.Millisecond), holdTTL, told)
		if s, _ := gates[0].Lesson(1); s.Confirmed != 1 || s.Held != 0 {
			t.Errorf("after the probe: %v", s)
		}
		stage.Expect(t, stage.Book(gates[1].URL, 1, "bob"), 409, "sold-out", "")
		if n := backend.Stats().Requests.Book; n != 1 {
			t.Errorf("the backend saw %d bookings", n)
		}
	})
	t.Run("never committed", func(t *testing.T) {
		t.Parallel()
		hang := make(chan struct{})
		backend, gates := start(t, booking.Options{Style: booking.Naive, BeforeWrite: func() { <-hang }})
		defer close(hang)
		began := time.Now()
		stage.Expect(t, stage.Book(gates[0].URL, 1, "ann", who...), 504, "upstream-timeout", "unknown")
		stage.Expect(t, stage.Book(gates[1].URL, 1, "ann", who...), 409, "outcome-unknown", "")
		stage.Expect(t, stage.Book(gates[1].URL, 1, "bob"), 409, "sold-out", "")
		stage.Eventually(t, holdTTL-time.Since(began), func() string {
			if s, _ := gates[1].Lesson(1); s.Held != 0 || s.Confirmed != 0 || gates[1].Available(1) != 1 {
				return s.String()
			}
			return ""
		})
		released := time.Since(began)
		t.Logf("released %v after the booking began, with a hold_ttl of %v", released.Round(time.Millisecond), holdTTL)
		if released < time.Second {
			t.Errorf("released after %v, when the backend may still have committed", released)
		}
		if released >= holdTTL {
			t.Errorf("released only %v after the booking began, when the hold had lapsed", released)
		}
		if n := backend.Stats().Requests.Book; n != 1 {
			t.Errorf("the backend saw %d bookings", n)
		}
	})
}
