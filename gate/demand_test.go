package gate

import (
	"fmt"
	"testing"

	"github.com/slotgate/slotgate/gate/decision"
)

func TestDemandOfASlot(t *testing.T) {
	f := newFixture(t, "capacity: 2, max_inflight: 1, queue: { size: 4, wait: 20s }", "")
	release, first := f.held(call{student: "s1"})
	second := make(chan *Reply)
	go func() { second <- f.book(call{student: "s2"}) }()
	waitFor(t, func() bool { return f.Demand("lessons", "1") == (Demand{Waiting: 1}) })
	release(answers(201, "{}"), nil)
	f.want(<-first, decision.DecisionAdmitted, 201)
	f.want(<-second, decision.DecisionAdmitted, 201)
	for _, student := range []string{"s3", "s4"} {
		f.want(f.book(call{student: student}), decision.DecisionSoldOut, 409)
	}
	if d := f.Demand("lessons", "1"); d != (Demand{Rejected: 2}) {
		t.Errorf("two were refused, and there is %+v", d)
	}
	if d := f.Demand("lessons", "8"); d != (Demand{}) {
		t.Errorf("nobody asked for it, and there is %+v", d)
	}
}

func TestRefusalsAreCountedWithinABound(t *testing.T) {
	r := newRefusals()
	name := func(i int) slotName { return slotName{"lessons", fmt.Sprint(i)} }
	for i := 1; i <= 3*maxRefusedSlots; i++ {
		r.add(name(i))
		r.add(name(0)) // it is refused all the time
		if n := len(r.young) + len(r.old); n > 2*maxRefusedSlots {
			t.Fatalf("%d slots are counted", n)
		}
	}
	if n := r.of(name(0)); n != 3*maxRefusedSlots {
		t.Errorf("%d counted of the slot that is refused most, want %d", n, 3*maxRefusedSlots)
	}
	if n := r.of(name(1)); n != 0 {
		t.Errorf("%d counted of one that is not refused any more", n)
	}
}
