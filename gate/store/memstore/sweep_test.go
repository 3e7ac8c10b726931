package memstore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotgate/slotgate/rules"
)

func TestSweeperDropsWhatHasExpiredAndEndsWithClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		for i := range 3000 {
			d := booking(i)
			got := decide(t, s, d)
			switch i % 3 {
			case 0:
				settle(t, s, settlement(d, got.Hold, rules.Booked))
			case 1:
				settle(t, s, settlement(d, got.Hold, rules.Refused))
			}
			guard := booking(i)
			guard.ID, guard.Key, guard.Pool, guard.Slot, guard.Wait = guard.ID+"-guard", guard.Key+"-guard", "", "", time.Second
			decide(t, s, guard)
			twin := *guard
			twin.ID += "-twin"
			decide(t, s, &twin)
			settle(t, s, settlement(guard, "", rules.Refused))
		}
		if s.MemoryUsed() == 0 {
			t.Fatal("nothing is kept")
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if used := s.MemoryUsed(); used != 0 {
			t.Errorf("%d bytes in use after everything has expired", used)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A call drops more than it makes, so that a store under load does not wait for
// the sweeper.
func TestCallsAloneKeepUp(t *testing.T) {
	s, c := open(t, Options{})
	high := int64(0)
	for i := range 20_000 {
		d := booking(i)
		d.Retain, d.KeyTTL = 2*time.Minute, 2*time.Minute
		settle(t, s, settlement(d, decide(t, s, d).Hold, rules.Booked))
		c.advance(100 * time.Millisecond) // 1,200 live at once
		high = max(high, s.MemoryUsed())
	}
	if each := high / 1200; each > 8192 {
		t.Errorf("%d bytes in use at most, %d for each of what lives", high, each)
	}
}
