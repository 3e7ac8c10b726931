package interleave

import (
	"context"
	"fmt"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

// Outages is a case of one slot whose pool has truth, and of a store that gates lose,
// or that comes back with other data (model m4). Truth is a backend that books, or
// refuses, whatever comes. Its requests have neither key nor subject.
type Outages struct {
	Name     string
	Requests int // up to 4; each gate has every other one
	Capacity int64

	// Away: one gate loses the store for a while, and passes its requests by.
	Away bool
	// Emptied, Behind: another server takes the store's place, which has nothing, or what
	// a replica had that was behind.
	Emptied, Behind bool
	// Silent gates do not tell a store that came back what they have open.
	Silent bool
}

const maxOutage = 4

// flight is what has become of one request.
type flight struct {
	stage stage
	job   job
	due   int8 // ticks until the backend has done it, or never will
	seen  int8
}

type stage uint8

const (
	unasked   stage = iota
	granted         // forwarded under a hold
	passed          // passed by the store
	settled         // or refused
	justEnded       // settled lately: it would be told again
)

// look is how far the look at truth is.
type look uint8

const (
	noLook look = iota
	begun
	read
)

// outage is what is known of requests, gates and truth.
type outage struct {
	flights [maxOutage]flight
	away    [gates]bool
	passing [gates]bool // passed requests by while it was away
	marked  [gates]bool // has marked the slot, and not ended the mark
	tells   [gates]bool // has yet to tell the store that came back what it has open

	look  look
	value int8 // that it read

	lost    bool  // a gate has lost the store once
	replica int32 // the state that a replica is left behind in, -1 it is not
	failed  int8  // ticks for which no load may follow a change of servers; -1 none has been
}

func (o *Outages) String() string { return o.Name }

// Explore is part of Case.
func (o *Outages) Explore(rigs []Rig) (Result, error) { return explore(rigs, o) }

// outageTTL is how many ticks after its decide a hold is over.
const outageTTL = 2

func (o *Outages) query() store.SlotQuery {
	return store.SlotQuery{Pool: pool, Slot: slot, Capacity: store.Learned, Truth: store.TruthRemaining, HoldTTL: ticks(outageTTL), Retain: forGood}
}

func (o *Outages) keys() []*store.Decide { return nil }

func (o *Outages) start() outage { return outage{replica: -1, failed: -1} }

func (o *Outages) decide(r int) *store.Decide {
	return &store.Decide{
		ID: attemptID(r), Rule: "book", Pool: pool, Slot: slot, Units: 1,
		Capacity: store.Learned, Truth: store.TruthRemaining, Hot: forGood, Refresh: forGood,
		HoldTTL: ticks(outageTTL), Lease: ticks(outageTTL), Retain: forGood,
	}
}

func (o *Outages) settlement(r int, f flight) *store.Settle {
	return &store.Settle{
		ID: attemptID(r), Hold: attemptID(r), Pool: pool, Slot: slot, Units: 1,
		Capacity: store.Learned, Truth: store.TruthRemaining, HoldTTL: ticks(outageTTL), Retain: forGood,
		ReleaseSeq: int64(f.seen), Outcome: f.job.heard(),
	}
}

// remaining is what truth says is left.
func (o *Outages) remaining(w *outage) int64 {
	left := o.Capacity
	for _, f := range w.flights {
		if f.job == committed {
			left--
		}
	}
	return left
}

// threatened is how many units requests at the backend may yet take.
func (o *Outages) threatened(w *outage) (units int64) {
	for _, f := range w.flights {
		if f.job == pending {
			units++
		}
	}
	return units
}

// counts reports whether the slot admits on its counters.
func counts(at *state) bool { return at.slot.Slot != "" && at.slot.Verified && !at.slot.Dirty }

func (o *Outages) steps(w outage, at *state) (steps []step[outage]) {
	for r := range o.Requests {
		steps = append(steps, o.flightSteps(r, &w)...)
	}
	for g := range gates {
		steps = append(steps, o.gateSteps(g, &w)...)
	}
	steps = append(steps, o.lookSteps(&w, at)...)
	steps = append(steps, o.failures(&w, at)...)
	if o.mayPass(&w, at) {
		steps = append(steps, o.tick())
	}
	return steps
}

// flightSteps is what can become of one request.
func (o *Outages) flightSteps(r int, w *outage) (steps []step[outage]) {
	f, g := w.flights[r], r%gates
	name := fmt.Sprintf("request %d at gate %d", r, g)
	if f.job == pending {
		for _, j := range []job{committed, refused} {
			steps = append(steps, step[outage]{label: fmt.Sprintf("backend: %s %s", j, name), local: func(w *outage) []string {
				w.flights[r].job = j
				return nil
			}})
		}
	}
	switch {
	case f.stage == unasked && w.away[g]:
		steps = append(steps, step[outage]{label: name + " is passed by the store", local: func(w *outage) []string {
			w.flights[r] = flight{stage: passed, job: pending, due: outageTTL}
			w.passing[g] = true
			return nil
		}})
	case f.stage == unasked && !w.passing[g]:
		steps = append(steps, o.ask(r, name))
	case (f.stage == granted || f.stage == passed) && f.job != pending && !w.away[g]:
		steps = append(steps, o.settle(r, name, f))
	}
	return steps
}

// ask makes a request's decide. What it admits on counters, truth must have (P7).
func (o *Outages) ask(r int, name string) step[outage] {
	decide := call{fmt.Sprint("decide ", r), func(p *play) (any, error) { return p.Decide(r%gates, o.decide(r), r, First) }}
	return step[outage]{label: name + " asks", call: decide, then: func(w *outage, reply any, before, _ *state) (string, []string, error) {
		got := reply.(store.Decided)
		said := fmt.Sprintf(": %s, %d left", got.Verdict, got.Left)
		switch got.Verdict {
		case decision.Load, decision.NoRoom:
			return said, nil, errNothing
		case decision.Admitted:
		default:
			w.flights[r].stage = settled
			return said, nil, nil
		}
		var broken []string
		if free := o.remaining(w) - o.threatened(w); counts(before) && w.away == [gates]bool{} && free < 1 {
			broken = append(broken, "P7: admitted on counters what truth does not have")
		}
		w.flights[r] = flight{stage: granted, job: pending, due: outageTTL, seen: int8(got.ReleaseSeq)}
		return said, broken, nil
	}}
}

func (o *Outages) settle(r int, name string, f flight) step[outage] {
	report := call{fmt.Sprint("settle ", r, f.job, f.seen), func(p *play) (any, error) {
		return p.Gate(r%gates).Settle(context.Background(), o.settlement(r, f))
	}}
	return step[outage]{label: name + " is settled", call: report, then: func(w *outage, reply any, _, _ *state) (string, []string, error) {
		got := reply.(store.Settled)
		w.flights[r].stage = settled
		if w.failed < 0 && (o.Behind || o.Emptied) {
			w.flights[r].stage = justEnded
		}
		return fmt.Sprintf(": %s leaves its hold %q, applied %t", f.job.heard(), got.Hold, got.Applied), nil, nil
	}}
}

// mayPass is as for bookings.
func (o *Outages) mayPass(w *outage, at *state) bool {
	ends := at.slot.Held > 0 || w.failed > 0
	for r, f := range w.flights {
		open := f.job == pending || (f.stage == granted || f.stage == passed) && !w.away[r%gates]
		if open && f.due == 1 {
			return false
		}
		ends = ends || f.due > 0
	}
	return ends
}

func (o *Outages) tick() step[outage] {
	pass := call{"tick", func(p *play) (any, error) { p.Advance(Tick); return nil, nil }}
	return step[outage]{label: "time passes", call: pass, then: func(w *outage, _ any, _, _ *state) (string, []string, error) {
		for r := range w.flights {
			f := &w.flights[r]
			f.due = max(0, f.due-1)
			if f.stage == justEnded && f.due == 0 {
				f.stage = settled
			}
		}
		if w.failed > 0 {
			w.failed--
		}
		return "", nil, nil
	}}
}

func (o *Outages) broken(outage, *state) []string { return nil }

// rest: where all is done and the counters stand, they promise no more than truth has.
func (o *Outages) rest(w outage, at *state) []string {
	for _, f := range w.flights[:o.Requests] {
		if f.stage != settled && f.stage != justEnded || f.job == pending {
			return nil
		}
	}
	if w.away != [gates]bool{} || w.look != noLook || !counts(at) {
		return nil
	}
	if left, known := at.slot.Available(); known && left > max(0, o.remaining(&w)) {
		return []string{"A2: at rest there is more in the store than in truth"}
	}
	return nil
}
