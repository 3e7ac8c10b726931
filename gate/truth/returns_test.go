package truth

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
)

// held counts the confirmed holds of a slot.
func (b *bench) held(slot string) (n int) {
	b.Helper()
	for _, h := range b.slot(slot).Holds {
		if h.State == decision.Confirmed {
			n++
		}
	}
	return n
}

func TestABookingThatTheListShowsLateIsNotTakenForReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(6))
		b.truth().Lag = 2 * time.Second
		o := b.options("gate-a")
		o.Lister = b.backend
		p := b.open(o)
		b.lesson(p, "1", 2)
		b.backend.cancel("1", "1-student-1") // not to be seen yet
		done := make(chan error)
		go func() { done <- p.releaseReturned(t.Context(), "1") }()
		time.Sleep(b.truth().Lag - time.Millisecond)
		b.backend.book("1", "1-student-1")
		if err := <-done; err != nil || b.held("1") != 2 {
			t.Errorf("%v, %d holds, want both", err, b.held("1"))
		}
	})
}

// A list that writes subjects in another way than the gate would unblock everybody.
func TestNothingIsReleasedWhereTheListNamesStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(6))
		o := b.options("gate-a")
		o.Lister = b.backend
		p := b.open(o)
		b.lesson(p, "1", 2)
		for _, subject := range []string{"1-student-0", "1-student-1"} {
			b.backend.cancel("1", subject)
			b.backend.book("1", "S"+subject)
		}
		if err := p.releaseReturned(t.Context(), "1"); err != errStrangers {
			t.Errorf("error %v, want %v", err, errStrangers)
		}
		if got := b.reconcile(p, ReconcileOptions{Repair: true}); got.ByKind[HoldWithoutBooking] != 2 || got.Repaired != 0 {
			t.Errorf("report %+v, want 2 differences, none repaired", got)
		}
		// One subject that both know shows that they mean the same.
		b.lesson(p, "2", 1)
		b.reconcile(p, ReconcileOptions{})
		if err := p.releaseReturned(t.Context(), "1"); err != nil || b.held("1") != 0 {
			t.Errorf("%v, %d holds, want none", err, b.held("1"))
		}
	})
}
