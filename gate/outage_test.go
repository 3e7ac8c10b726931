package gate

import (
	"errors"
	"fmt"
	"testing"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

func down(maybe bool) func(string) error {
	return func(op string) error {
		return &store.Error{Op: op, Kind: store.KindConnection, Maybe: maybe, Err: errors.New("down")}
	}
}

func TestAStoreThatIsAwayPassesOrRejects(t *testing.T) {
	limits := "passthrough: { slot: { rate: 1/m, burst: 2 }, rule: { rate: 1/m, burst: 3 }, max_inflight: 9 }"
	f := newFixture(t, "capacity: 1", limits)
	f.store.set(down(false), nil)
	for range 2 {
		r := f.want(f.book(call{}), decision.DecisionPassthrough, 201)
		if r.Mode != ModeDegraded || r.Bound != "backend" || r.Hold != "" || r.Outcome != rules.Booked {
			t.Fatalf("%+v", r)
		}
	}
	r := f.want(f.book(call{}), decision.DecisionStoreDown, 503)
	if r.Mode != ModeDegraded || field(r, "Retry-After") == "" {
		t.Fatalf("%+v", r)
	}
	f.want(f.book(call{lesson: "2"}), decision.DecisionPassthrough, 201)
	f.want(f.book(call{lesson: "3"}), decision.DecisionStoreDown, 503) // the rule's own limit
	if f.backend.count() != 3 {
		t.Fatalf("the backend saw %d", f.backend.count())
	}

	f = newFixture(t, "capacity: 1", "on_store_failure: reject")
	f.store.set(down(false), nil)
	f.want(f.book(call{}), decision.DecisionStoreDown, 503)
	if f.backend.count() != 0 {
		t.Fatal("forwarded")
	}
}

func TestADecideThatMayHaveRunIsSettledLater(t *testing.T) {
	for _, policy := range []string{"pass", "reject"} {
		f := newFixture(t, "capacity: 1", "on_store_failure: "+policy)
		f.store.set(nil, func(op string) error {
			if op == "decide" {
				return down(true)(op)
			}
			return nil
		})
		f.book(call{}) // the store took the hold, its reply was lost
		waitFor(t, func() bool { return f.Status().SettleBacklog == 0 })
		s := f.slot("1")
		if want := int64(map[string]int{"pass": 1, "reject": 0}[policy]); s.Confirmed != want || s.Held != 0 {
			t.Fatalf("%s: confirmed %d, held %d", policy, s.Confirmed, s.Held)
		}
	}
}

func TestASettlementTheStoreDidNotTakeIsRetried(t *testing.T) {
	f := newFixture(t, "capacity: 5", keyed)
	f.store.set(func(op string) error {
		if op == "settle" {
			return down(false)(op)
		}
		return nil
	}, nil)
	for i := range 2 {
		f.want(f.book(call{student: fmt.Sprint(i), fields: []string{fmt.Sprintf("Idempotency-Key: k%d", i), "Cookie: a=1"}}), decision.DecisionAdmitted, 201)
	}
	if f.Status().SettleBacklog != 2 {
		t.Fatalf("backlog %d", f.Status().SettleBacklog)
	}
	f.store.set(nil, nil)
	waitFor(t, func() bool { return f.Status().SettleBacklog == 0 })
	if s := f.slot("1"); s.Confirmed != 2 || s.Held != 0 {
		t.Fatalf("%+v", s)
	}
	f.want(f.book(call{student: "0", fields: []string{"Idempotency-Key: k0", "Cookie: a=1"}}), decision.DecisionReplayed, 201)
}
