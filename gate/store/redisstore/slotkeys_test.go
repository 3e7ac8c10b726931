package redisstore

import (
	"fmt"
	"sync"
	"testing"

	"github.com/slotgate/slotgate/luascripts"
)

// Whoever asks first or again, in whatever company, gets the names of its own slot.
func TestTheNamesOfSlotsThatAreRemembered(t *testing.T) {
	const slots = 3 * knownSlots
	keys := luascripts.Keys{Prefix: "test"}
	var known slotNames
	var asking sync.WaitGroup
	for caller := range 4 {
		asking.Go(func() {
			for n := range 2 * slots {
				pool, slot := fmt.Sprint("pool-", caller%2), fmt.Sprint("slot-", n%slots/2)
				want := slotKeys{keys.Slot(pool, slot), keys.Index(pool), keys.Outbox(pool), keys.Looks(pool)}
				if got := known.get(keys, pool, slot); *got != want {
					t.Errorf("%+v, want %+v", got, want)
					return
				}
			}
		})
	}
	asking.Wait()
	if n := len(known.known); n > knownSlots {
		t.Errorf("%d slots are remembered, want %d at most", n, knownSlots)
	}
}
