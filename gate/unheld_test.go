package gate

import (
	"context"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

// forgetful admits the first question, and knows nothing of the slot then.
type forgetful struct {
	*flaky
	asked int
}

func (s *forgetful) Decide(ctx context.Context, d *store.Decide) (store.Decided, error) {
	if s.asked++; s.asked > 1 {
		return store.Decided{Verdict: decision.Load, Left: -1}, nil
	}
	return s.flaky.Decide(ctx, d)
}

// What is forwarded in the end without a hold is not told of the one that was given back.
func TestAHoldThatWasGivenBackIsNotTold(t *testing.T) {
	f, o := newOracle(t, "", map[string]int64{"1": 2})
	f.want(f.book(call{}), decision.DecisionAdmitted, 201)
	delete(o.left, "1")
	f.Gate.store.Store = &forgetful{flaky: f.store}
	f.Gate.book.Load().routes[0].decide.Lease = time.Second // all of the backend's time: a grant comes too late
	if r := f.want(f.book(call{student: "bob"}), decision.DecisionAdmitted, 201); r.Hold != "" {
		t.Fatalf("told of hold %s, which was given back", r.Hold)
	}
	if s := f.slot("1"); s.Confirmed != 1 || s.Held != 0 {
		t.Fatalf("%+v", s)
	}
}
