package degrade

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// scripted is a store whose Decide does what the test says.
type scripted struct {
	store.Store
	calls  int
	decide func() error
}

func (s *scripted) Decide(context.Context, *store.Decide) (store.Decided, error) {
	s.calls++
	return store.Decided{}, s.decide()
}

func fail(kind store.ErrorKind) func() error {
	return func() error { return &store.Error{Op: "decide", Kind: kind, Err: errors.New("test")} }
}

var breaker = rules.StoreBreaker{Failures: 3, OpenFor: time.Second, Probes: 1}

func kindOf(t *testing.T, err error) store.ErrorKind {
	t.Helper()
	var failure *store.Error
	if !errors.As(err, &failure) {
		t.Fatalf("got %v, want a *store.Error", err)
	}
	return failure.Kind
}

func TestGuardOpensAfterFailuresInARowAndProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{decide: fail(store.KindTimeout)}
		g := NewGuard(s, breaker)
		for range 3 {
			if _, err := g.Decide(t.Context(), nil); kindOf(t, err) != store.KindTimeout {
				t.Fatalf("got %v, want the store's own error", err)
			}
		}
		if g.State() != 2 {
			t.Fatalf("state %d after three failures, want 2 (open)", g.State())
		}
		if _, err := g.Decide(t.Context(), nil); kindOf(t, err) != KindOpen || s.calls != 3 {
			t.Fatalf("an open breaker made call %d: %v", s.calls, err)
		}

		time.Sleep(1300 * time.Millisecond) // open_for and its longest jitter
		if _, err := g.Decide(t.Context(), nil); kindOf(t, err) != store.KindTimeout || g.State() != 2 {
			t.Fatalf("a failed probe must open it again: state %d, %v", g.State(), err)
		}
		time.Sleep(1300 * time.Millisecond)
		s.decide = func() error { return nil }
		if _, err := g.Decide(t.Context(), nil); err != nil || g.State() != 0 {
			t.Fatalf("a good probe must close it: state %d, %v", g.State(), err)
		}
	})
}

func TestGuardTakesAFullStoreForAlive(t *testing.T) {
	s := &scripted{decide: fail(store.KindFull)}
	g := NewGuard(s, breaker)
	for range 10 {
		_, _ = g.Decide(t.Context(), nil)
	}
	if g.State() != 0 || s.calls != 10 {
		t.Fatalf("state %d after %d calls, want closed after 10", g.State(), s.calls)
	}
}

// A call that was not sent is no failure of the store, and no success.
func TestGuardPassesOverCallsThatWereNotSent(t *testing.T) {
	s := &scripted{decide: fail(store.KindUnsent)}
	g := NewGuard(s, breaker)
	for range 10 {
		if _, err := g.Decide(t.Context(), nil); kindOf(t, err) != store.KindUnsent || g.State() != 0 {
			t.Fatalf("state %d after %v", g.State(), err)
		}
	}
	for _, kind := range []store.ErrorKind{store.KindTimeout, store.KindTimeout, store.KindUnsent, store.KindTimeout} {
		s.decide = fail(kind)
		_, _ = g.Decide(t.Context(), nil)
	}
	if g.State() != 2 {
		t.Fatalf("state %d after three failures, want 2 (open)", g.State())
	}
}

// A probe that was not sent leaves its place to another.
func TestGuardProbesAgainAfterAProbeThatWasNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{decide: fail(store.KindConnection)}
		g := NewGuard(s, breaker)
		for range 3 {
			_, _ = g.Decide(t.Context(), nil)
		}
		time.Sleep(1300 * time.Millisecond)
		s.decide = fail(store.KindUnsent)
		for range 3 {
			if _, err := g.Decide(t.Context(), nil); kindOf(t, err) != store.KindUnsent || g.State() != 1 {
				t.Fatalf("state %d after %v, want 1 (half-open)", g.State(), err)
			}
		}
		s.decide = func() error { return nil }
		if _, err := g.Decide(t.Context(), nil); err != nil || g.State() != 0 {
			t.Fatalf("state %d after a good probe: %v", g.State(), err)
		}
	})
}

func TestGuardSurvivesAPanicOfItsProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{decide: fail(store.KindConnection)}
		g := NewGuard(s, breaker)
		for range 3 {
			_, _ = g.Decide(t.Context(), nil)
		}
		time.Sleep(1300 * time.Millisecond)
		s.decide = func() error { panic("test") }
		func() {
			defer func() { _ = recover() }()
			_, _ = g.Decide(t.Context(), nil)
		}()
		time.Sleep(1300 * time.Millisecond)
		s.decide = func() error { return nil }
		if _, err := g.Decide(t.Context(), nil); err != nil {
			t.Fatalf("the breaker is stuck: %v", err)
		}
	})
}
