package e2e

import (
	"bytes"
	"testing"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
	"github.com/slotgate/slotgate/gate/testbed"
)

// TestBackendCommitsAndAnswersTooLate: the booking exists, nobody was told. Its unit
// is offered to nobody, a retry with the same key takes no second one, and under
// retry the backend's duplicate settles it.
func TestBackendCommitsAndAnswersTooLate(t *testing.T) {
	for _, unknown := range []string{"retry", "reject"} {
		for _, kind := range []string{"redis", "memory"} {
			t.Run(unknown+" "+kind, func(t *testing.T) {
				committed := make(chan struct{}, 8)
				backend := stage.StartBackend(t, booking.Options{
					Style: booking.Conditional, Lessons: 1, Seats: 2,
					CommitThenDelay: 700 * time.Millisecond, AfterCommit: func() { committed <- struct{}{} },
				})
				store := stage.MemoryStore
				if kind == "redis" {
					store = stage.RedisStore(testbed.Redis(t).Addr())
				}
				gate := stage.StartGate(t, stage.Lessons(backend.URL, store, ", timeout: 300ms", "capacity: 1, hold_ttl: 20s",
					"    idempotency: { unknown: "+unknown+" }\n"))
				who := []string{"Idempotency-Key: k1", "Authorization: Bearer ann"}

				first := stage.Book(gate.URL, 1, "ann", who...)
				<-committed
				stage.Expect(t, first, 504, "upstream-timeout", "unknown")
				if held := gate.Slot("lessons", "1").Held; held != 1 {
					t.Fatalf("%d units held after an unknown outcome", held)
				}
				stage.Expect(t, stage.Book(gate.URL, 1, "bob", "Idempotency-Key: k2"), 409, "sold-out", "")

				again := stage.Book(gate.URL, 1, "ann", who...)
				s := gate.Slot("lessons", "1")
				if unknown == "reject" {
					stage.Expect(t, again, 409, "outcome-unknown", "")
					if s.Held != 1 || s.Confirmed != 0 || again.Header.Get("Retry-After") == "" {
						t.Fatalf("held %d, confirmed %d, %v", s.Held, s.Confirmed, again.Header)
					}
				} else {
					stage.Expect(t, again, 409, "admitted", "duplicate")
					if again.Header.Get("Gate-Hold") != first.Header.Get("Gate-Hold") || s.Held != 0 || s.Confirmed != 1 {
						t.Fatalf("holds %q and %q, held %d, confirmed %d", first.Header.Get("Gate-Hold"), again.Header.Get("Gate-Hold"), s.Held, s.Confirmed)
					}
					third := stage.Book(gate.URL, 1, "ann", who...)
					stage.Expect(t, third, 409, "replayed", "duplicate")
					if !bytes.Equal(third.Body, again.Body) {
						t.Fatalf("replayed %s, want %s", third.Body, again.Body)
					}
				}
				if n := backend.Stats().Bookings; n != 1 {
					t.Fatalf("%d bookings", n)
				}
			})
		}
	}
}

// TestALapsedUnknownHoldIsOfferedAgain is the other side: without truth, hold_ttl is
// when the unit is free again, and not before.
func TestALapsedUnknownHoldIsOfferedAgain(t *testing.T) {
	hang := make(chan struct{})
	slow := stage.StartBackend(t, booking.Options{Style: booking.Conditional, Lessons: 1, Seats: 1, BeforeWrite: func() { <-hang }})
	defer close(hang)
	gate := stage.StartGate(t, stage.Lessons(slow.URL, stage.MemoryStore, ", timeout: 200ms", "capacity: 1, hold_ttl: 1500ms", ""))
	began := time.Now()
	stage.Expect(t, stage.Book(gate.URL, 1, "ann"), 504, "upstream-timeout", "unknown")
	for {
		a := stage.Book(gate.URL, 1, "bob")
		after := time.Since(began)
		if a.Header.Get("Gate-Decision") == "sold-out" {
			if after > 10*time.Second {
				t.Fatal("never free again")
			}
			continue
		}
		if after < 1500*time.Millisecond {
			t.Fatalf("offered to another after %v: %v", after, a)
		}
		return
	}
}
