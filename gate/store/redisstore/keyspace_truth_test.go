package redisstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// follow books, confirms, cancels and looks in a pool with truth.
func follow(t *testing.T, s *Store, n int64) {
	ctx := context.Background()
	ok := func(what string, err error) {
		if err != nil && err != store.ErrNoHold {
			t.Errorf("%s: %v", what, err)
		}
	}
	d := booking(n)
	d.Pool, d.Slot, d.Subject, d.Key = "seats", fmt.Sprintf("seat-%d", n%3), fmt.Sprintf("student-%d", n%5), ""
	d.Truth, d.Hot, d.Refresh, d.Capacity, d.MaxPerSubject = store.TruthRemaining, time.Second, time.Minute, store.Learned, 1000
	l := &store.Look{Query: query(d), ID: d.ID + "-look", Lag: 2 * time.Second, Lease: time.Second}
	looked, err := s.Look(ctx, l)
	ok("look", err)
	if n%4 != 0 { // else its lease is left to end
		_, err = s.Apply(ctx, &store.Reading{Look: l, Looked: looked, Found: n%5 != 0, Missing: n%25 == 0, Value: 100, Total: 200, Hot: d.Hot, Refresh: d.Refresh})
		ok("apply", err)
	}
	got, err := s.Decide(ctx, d)
	ok("decide", err)
	if got.Verdict == decision.Admitted {
		booked := settling(d, got, rules.Booked)
		booked.Reference, booked.PendingTTL = fmt.Sprintf("booking-%d", n), time.Duration(n%2)*5*time.Second
		_, err = s.Settle(ctx, booked)
		ok("settle", err)
	}
	for i, action := range []store.Action{store.Confirm, store.Cancel} {
		c := cancelling(d, fmt.Sprintf("%s-%d", d.ID, i), action)
		if n%3 == 0 {
			c.Target = got.Hold
		}
		meant, err := s.Decide(ctx, c)
		ok("decide", err)
		if meant.Verdict == decision.Admitted && n%6 != 0 {
			_, err = s.Settle(ctx, settling(c, meant, []rules.Outcome{rules.Done, rules.Refused, rules.Unknown}[n%3]))
			ok("settle", err)
		}
	}
	_, _, err = s.Find(ctx, d.Pool, fmt.Sprintf("booking-%d", n))
	ok("find", err)
	_, _, err = s.Due(ctx, d.Pool, 2, time.Second)
	ok("due", err)
	_, _, err = s.Lead(ctx, d.Pool, "gate-a", time.Minute)
	ok("lead", err)
	if n%2 == 0 {
		ok("resign", s.Resign(ctx, d.Pool, "gate-a"))
	}
}
