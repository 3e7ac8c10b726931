package main

import (
	"sync"
	"time"

	"github.com/slotgate/slotgate/gate/storm"
)

// demoPhase is where the store is in act 5.
type demoPhase int

const (
	storeThere demoPhase = iota
	storeAway
	storeBack
	demoPhases
)

// outage takes the store away in the middle of a storm, gives it back, and counts
// what happens in each phase. It is safe for concurrent use.
type outage struct {
	store *switchedStore
	after int64 // bookings before it begins

	mu     sync.Mutex
	phase  demoPhase
	end    *time.Timer
	back   time.Time // when the store came back
	normal time.Time // when the last degraded answer came
	counts outageCounts
}

// outageCounts are by phase. A request counts where its answer falls.
type outageCounts struct {
	Lasted      time.Duration
	NormalAfter time.Duration // from the store's return to the last degraded answer
	Bookings    [demoPhases]int64
	Decisions   [demoPhases]map[string]int
}

func newOutage(s *switchedStore, after int64, lasts time.Duration) *outage {
	o := &outage{store: s, after: after, counts: outageCounts{Lasted: lasts}}
	for phase := range o.counts.Decisions {
		o.counts.Decisions[phase] = map[string]int{}
	}
	return o
}

// booked is called between the commit of a booking and its answer: the booking
// that begins the outage cannot be settled any more.
func (o *outage) booked() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counts.Bookings[o.phase]++
	if o.phase == storeThere && o.counts.Bookings[storeThere] == o.after {
		o.phase = storeAway
		o.store.away.Store(true)
		o.end = time.AfterFunc(o.counts.Lasted, o.giveBack)
	}
}

func (o *outage) giveBack() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.phase = storeBack
	o.back = time.Now()
	o.store.away.Store(false)
}

func (o *outage) answered(e storm.Exchange) {
	if e.Err != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counts.Decisions[o.phase][e.Header.Get("Gate-Decision")]++
	if o.phase == storeBack && e.Header.Get("Gate-Mode") == "degraded" {
		o.normal = e.Sent.Add(e.Latency)
	}
}

// result is what was counted, once the storm is over.
func (o *outage) result() *outageCounts {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.end != nil {
		o.end.Stop()
	}
	counts := o.counts
	if o.normal.After(o.back) {
		counts.NormalAfter = o.normal.Sub(o.back)
	}
	return &counts
}
