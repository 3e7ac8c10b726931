package storetest

import (
	"context"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/slotgate/slotgate/gate/store"
)

// sighting is a look between its three steps.
type sighting struct {
	r       *store.Reading
	read    bool
	outside int64 // what had been booked outside when it was read
}

type reading struct {
	at            time.Duration
	left, outside int64
}

func (w *world) look() {
	if len(w.looks) >= 2 {
		return
	}
	l := &store.Look{
		Query: query(&w.config), ID: newID(), Lag: 2 * w.lag, Lease: modelWait,
		Force: rapid.Bool().Draw(w.T, "force"),
	}
	got, err := w.gate().Look(context.Background(), l)
	if err != nil {
		w.Fatalf("look: %v", err)
	}
	w.Logf("look %s: %+v", l.ID, got)
	if got.Busy == 0 {
		w.looks = append(w.looks, &sighting{r: &store.Reading{Look: l, Looked: got, Total: store.Learned, Hot: w.config.Hot, Refresh: w.config.Refresh}})
	}
}

// see notes what truth shows now, for a source that lags behind it.
func (w *world) see() {
	w.reads = append(w.reads, reading{w.now, w.left, w.outside})
}

// read asks the source, which shows what stood in truth at most lag ago.
func (w *world) read() {
	for _, s := range w.looks {
		if s.read {
			continue
		}
		var fit []reading
		for _, r := range w.reads {
			if w.now-r.at <= w.lag && (w.lag > 0 || r == w.reads[len(w.reads)-1]) {
				fit = append(fit, r)
			}
		}
		from := latest(w.T, fit, "state of truth")
		if rapid.SampledFrom([]bool{false, false, false, false, w.checks}).Draw(w.T, "fails") {
			w.Logf("%s: the source fails", s.r.Look.ID)
		} else {
			says(s.r, from.left)
		}
		s.read, s.outside = true, from.outside
		w.Logf("%s reads %d", s.r.Look.ID, from.left)
		return
	}
}

func (w *world) apply() {
	var fit []*sighting
	for _, s := range w.looks {
		if s.read {
			fit = append(fit, s)
		}
	}
	if len(fit) == 0 {
		return
	}
	s := latest(w.T, fit, "look")
	w.looks = slices.DeleteFunc(w.looks, func(o *sighting) bool { return o == s })
	got := w.deliver(s.r)
	w.done = append(w.done, s.r)
	if got.Applied && s.r.Found {
		w.unseen = w.outside - s.outside
	}
}

// deliver hands the store a reading.
func (w *world) deliver(r *store.Reading) store.Applied {
	got, err := w.gate().Apply(context.Background(), r)
	if err != nil {
		w.Fatalf("apply: %v", err)
	}
	w.Logf("apply %s: %+v", r.Look.ID, got)
	return got
}
