package e2e

import (
	"bytes"
	"testing"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
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
				backend := startLegacy(t, booking.Options{
					Style: booking.Conditional, Lessons: 1, Seats: 2,
					CommitThenDelay: 700 * time.Millisecond, AfterCommit: func() { committed <- struct{}{} },
				})
				store := memoryStore
				if kind == "redis" {
					store = redisStore(testbed.Redis(t).Addr())
				}
				gate := startGate(t, lessons(backend.url, store, ", timeout: 300ms", "capacity: 1, hold_ttl: 20s",
					"    idempotency: { unknown: "+unknown+" }\n"))
				who := []string{"Idempotency-Key: k1", "Authorization: Bearer ann"}

				first := book(gate.url, 1, "ann", who...)
				<-committed
				expect(t, first, 504, "upstream-timeout", "unknown")
				if held := gate.slot("lessons", "1").Held; held != 1 {
					t.Fatalf("%d units held after an unknown outcome", held)
				}
				expect(t, book(gate.url, 1, "bob", "Idempotency-Key: k2"), 409, "sold-out", "")

				again := book(gate.url, 1, "ann", who...)
				s := gate.slot("lessons", "1")
				if unknown == "reject" {
					expect(t, again, 409, "outcome-unknown", "")
					if s.Held != 1 || s.Confirmed != 0 || again.header.Get("Retry-After") == "" {
						t.Fatalf("held %d, confirmed %d, %v", s.Held, s.Confirmed, again.header)
					}
				} else {
					expect(t, again, 409, "admitted", "duplicate")
					if again.header.Get("Gate-Hold") != first.header.Get("Gate-Hold") || s.Held != 0 || s.Confirmed != 1 {
						t.Fatalf("holds %q and %q, held %d, confirmed %d", first.header.Get("Gate-Hold"), again.header.Get("Gate-Hold"), s.Held, s.Confirmed)
					}
					third := book(gate.url, 1, "ann", who...)
					expect(t, third, 409, "replayed", "duplicate")
					if !bytes.Equal(third.body, again.body) {
						t.Fatalf("replayed %s, want %s", third.body, again.body)
					}
				}
				if n := backend.Stats().Bookings; n != 1 {
					t.Fatalf("%d bookings", n)
				}
			})
		}
	}
}

func expect(t testing.TB, a answer, status int, decision, outcome string) {
	t.Helper()
	if a.err != nil || a.status != status || a.header.Get("Gate-Decision") != decision || a.header.Get("Gate-Outcome") != outcome {
		t.Fatalf("got %v, want %d %s %s", a, status, decision, outcome)
	}
}

// TestALapsedUnknownHoldIsOfferedAgain is the other side: without truth, hold_ttl is
// when the unit is free again, and not before.
func TestALapsedUnknownHoldIsOfferedAgain(t *testing.T) {
	hang := make(chan struct{})
	slow := startLegacy(t, booking.Options{Style: booking.Conditional, Lessons: 1, Seats: 1, BeforeWrite: func() { <-hang }})
	defer close(hang)
	gate := startGate(t, lessons(slow.url, memoryStore, ", timeout: 200ms", "capacity: 1, hold_ttl: 1500ms", ""))
	began := time.Now()
	expect(t, book(gate.url, 1, "ann"), 504, "upstream-timeout", "unknown")
	for {
		a := book(gate.url, 1, "bob")
		after := time.Since(began)
		if a.header.Get("Gate-Decision") == "sold-out" {
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
