package redisstore

import (
	"testing"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/rules"
)

// Two gates tell a store that came back empty what they told it last, each its own: the
// booking may come after its cancel, and must not bring back what was cancelled.
func TestABookingToldAgainAfterItsCancelStaysCancelled(t *testing.T) {
	server := testbed.Redis(t)
	s := openStore(t, server.Addr())
	for _, cancelFirst := range []bool{true, false} {
		d := at("one", map[bool]int64{true: 1, false: 2}[cancelFirst])
		d.Subject, d.OnePerSubject = "ann", true
		booked := settling(d, verdict(t, s, d, decision.Admitted), rules.Booked)
		if _, err := s.Settle(t.Context(), booked); err != nil {
			t.Fatal(err)
		}
		c := cancelling(d, "cancel-of-"+d.ID, store.Cancel)
		cancelled := settling(c, verdict(t, s, c, decision.Admitted), rules.Done)
		if _, err := s.Settle(t.Context(), cancelled); err != nil {
			t.Fatal(err)
		}
		if err := s.client.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		again := []*store.Settle{booked, cancelled}
		if cancelFirst {
			again = []*store.Settle{cancelled, booked}
		}
		for _, told := range again {
			if _, err := s.Settle(t.Context(), told); err != nil {
				t.Fatal(err)
			}
		}
		if slot, err := s.Slot(t.Context(), query(d)); err == nil && slot.Confirmed+slot.Held != 0 {
			t.Errorf("cancel first %t: %+v", cancelFirst, slot)
		}
	}
}
