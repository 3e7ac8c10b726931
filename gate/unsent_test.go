package gate

import (
	"errors"
	"fmt"
	"testing"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// noTurn fails calls of one kind for want of a turn.
func noTurn(which string) func(string) error {
	return func(op string) error {
		if op != which {
			return nil
		}
		return &store.Error{Op: op, Kind: store.KindUnsent, Err: errors.New("others were ahead")}
	}
}

// However many find no turn at a store that is well, the backend does not get them, and the
// store is not taken to be away.
func TestACrowdBeyondTheStoreIsToldThatTheGateIsBusy(t *testing.T) {
	for _, rule := range []string{"on_store_failure: reject", "on_store_failure: local\n    passthrough: { share: 1 }", generous} {
		f := newFixture(t, "capacity: 1", rule)
		f.store.set(noTurn("decide"), nil)
		for i := range 50 {
			r := f.want(f.book(call{student: fmt.Sprint(i)}), decision.DecisionBusy, 503)
			if r.Mode != ModeNormal || field(r, "Retry-After") == "" {
				t.Fatalf("%+v", r)
			}
		}
		if n := f.backend.count(); n != 0 || f.Status().Degraded || f.meter.failures[string(store.KindUnsent)] != 50 {
			t.Errorf("%d reached the backend; degraded %t; counted %v", n, f.Status().Degraded, f.meter.failures)
		}
		f.store.set(nil, nil)
		f.want(f.book(call{}), decision.DecisionAdmitted, 201)
	}
}

// While the store is away a call that found no turn before is one more that it does not answer.
func TestNoTurnAtAStoreThatIsAway(t *testing.T) {
	f := newFixture(t, "capacity: 1", generous)
	f.store.set(func(op string) error {
		if op == "decide" && !f.Status().Degraded {
			f.goAway()
			return noTurn(op)(op)
		}
		return down(false)(op)
	}, nil)
	f.want(f.book(call{}), decision.DecisionPassthrough, 201)
	f.comeBack()
}

// What became of a booking is told later where its settlement found no turn.
func TestASettlementThatFoundNoTurnIsMadeLater(t *testing.T) {
	f := newFixture(t, "capacity: 1", "")
	f.store.set(noTurn("settle"), nil)
	if r := f.want(f.book(call{}), decision.DecisionAdmitted, 201); r.Outcome != rules.Booked {
		t.Errorf("%+v", r)
	}
	if held := f.slot("1").Held; held != 1 || f.Status().SettleBacklog != 1 {
		t.Errorf("%d held, %d settlements wait", held, f.Status().SettleBacklog)
	}
	f.store.set(nil, nil)
	waitFor(t, func() bool { return f.slot("1").Confirmed == 1 && f.Status().SettleBacklog == 0 })
}
