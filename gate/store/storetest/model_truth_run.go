package storetest

import (
	"context"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

const (
	modelHot     = 27 * time.Second
	modelLag     = 25 * time.Second
	modelPending = 38 * time.Second
)

// cancelOf draws a cancel or a confirm: of a subject, or of a hold that there is or
// was.
func (r *history) cancelOf() {
	d := r.request()
	d.Action = rapid.SampledFrom([]store.Action{store.Cancel, store.Cancel, store.Confirm}).Draw(r.T, "action")
	d.Line, d.Wait = false, 0
	if d.Key != "" {
		d.Key = "cancel " + d.Key
	}
	var known []*modelHold // that no store has forgotten
	for _, h := range r.model.holds {
		if !h.gone() || r.model.now-h.goneAt <= modelCopies {
			known = append(known, h)
		}
	}
	if len(known) > 0 && rapid.Bool().Draw(r.T, "by target") {
		h := latest(r.T, known, "target")
		d.Target, d.Slot = h.id, h.slot
		d.Subject = rapid.SampledFrom([]string{"", h.subject}).Draw(r.T, "target's subject")
	} else {
		d.Unreferenced = rapid.SampledFrom([]bool{false, false, false, true}).Draw(r.T, "unreferenced")
	}
	d.Fingerprint = fingerprint(d, "cancel")
	r.decide(d)
}

// cancelAgain delivers a late copy of a cancel's decide.
func (r *history) cancelAgain() {
	var fit []*modelDecide
	for _, c := range r.cancels {
		if r.model.now-c.at <= modelCopies {
			fit = append(fit, c)
		}
	}
	if len(fit) > 0 {
		r.decide(latest(r.T, fit, "cancel").d)
	}
}

// settleCancel reports how a cancel or confirm ended, now and then once more, and
// now and then after its lease. It and the hold it means are still remembered.
func (r *history) settleCancel() {
	var fit []*modelDecide
	for _, c := range r.cancels {
		h, a := r.model.hold(c.got.Hold), r.model.cancel(c.d.Slot, c.d.ID)
		fits := c.got.Verdict == decision.Admitted && (h == nil || !h.gone() || r.model.now-h.goneAt <= modelCopies)
		if fits && r.model.now-c.at <= modelLease+store.CopyWindow-tick && (!a.settled || r.model.now-c.settledAt <= modelCopies) {
			fit = append(fit, c)
		}
	}
	if len(fit) == 0 {
		return
	}
	c := latest(r.T, fit, "cancel")
	if !r.model.cancel(c.d.Slot, c.d.ID).settled {
		c.settledAt = r.model.now
	}
	r.settle(settlement(c.d, c.got, rapid.SampledFrom([]rules.Outcome{rules.Done, rules.Done, rules.Unknown, rules.Refused, rules.NeverSent}).Draw(r.T, "outcome")))
}

// look begins a look; it may be Busy.
func (r *history) look() *modelLook {
	l := &store.Look{
		Query: r.query(rapid.SampledFrom([]string{"x", "x", "y"}).Draw(r.T, "slot")), ID: newID(),
		Lag:   rapid.SampledFrom([]time.Duration{0, modelLag}).Draw(r.T, "lag"),
		Lease: modelLease, Force: rapid.Bool().Draw(r.T, "force"),
	}
	want, begun := r.model.look(l)
	got, err := r.gate().Look(context.Background(), l)
	if err != nil {
		r.Fatalf("look: %v", err)
	}
	r.Logf("look %s at %s: %+v", l.ID, l.Query.Slot, got)
	if begun == nil {
		if got.Busy <= 0 || got.Busy > want.Busy || got.At != 0 {
			r.Fatalf("looked %+v, want busy for %v", got, want.Busy)
		}
		return nil
	}
	compared := got
	compared.Born, compared.At = 0, 0
	if compared != want || got.At <= 0 || (got.Born != 0) != got.Known {
		r.Fatalf("looked %+v, want %+v", got, want)
	}
	begun.reading = &store.Reading{Look: l, Looked: got, Total: store.Learned, Hot: modelHot, Refresh: modelHoldTTL}
	return begun
}

// sync is a whole look.
func (r *history) sync() {
	if l := r.look(); l != nil {
		r.read(l)
		r.apply(l)
	}
}

// read draws what the source says.
func (r *history) read(l *modelLook) {
	switch rapid.SampledFrom([]string{"found", "found", "found", "found", "failed", "missing"}).Draw(r.T, "source") {
	case "found":
		says(l.reading, rapid.Int64Range(-1, 5).Draw(r.T, "value"))
	case "missing":
		l.reading.Missing = true
	}
	l.reading.Fence = rapid.SampledFrom([]int64{0, 0, 1, 2}).Draw(r.T, "fence")
}

func (r *history) apply(l *modelLook) {
	want := r.model.apply(l)
	got, err := r.gate().Apply(context.Background(), l.reading)
	if err != nil {
		r.Fatalf("apply: %v", err)
	}
	r.Logf("apply %s: found %t, missing %t, value %d, fence %d: %+v", l.reading.Look.ID, l.reading.Found, l.reading.Missing, l.reading.Value, l.reading.Fence, got)
	if got != want {
		r.Fatalf("applied %+v, want %+v", got, want)
	}
}

// applyLate ends a look that was begun a while ago, or delivers a copy of its apply.
func (r *history) applyLate() {
	if len(r.looks) == 0 {
		return
	}
	l := latest(r.T, r.looks, "look")
	if !l.reading.Found && !l.reading.Missing {
		r.read(l)
	}
	r.apply(l)
	if rapid.Bool().Draw(r.T, "for good") {
		r.looks = slices.DeleteFunc(r.looks, func(o *modelLook) bool { return o == l })
	}
}
