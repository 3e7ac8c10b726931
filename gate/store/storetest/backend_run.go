package storetest

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

const (
	backendRuns     = 300 // unless -rapid.checks says otherwise
	backendSoakRuns = 5000
	backendOps      = 100
)

// RunBackend holds a store whose counters follow truth to its promise: whatever the
// order in which requests are admitted, booked, refused, left unanswered, retried,
// cancelled, lapse, are booked and cancelled behind the gate's back, and looks are
// begun, read and applied, two at once, what is available never exceeds what truth
// has left beside all that is held (A1 to A3), nothing is oversold, and at rest one
// look makes it exact.
func RunBackend(t *testing.T, open func(t *testing.T) *Harness) {
	h := open(t)
	drawHistories(t, cmp.Or(h.Histories, backendRuns), backendSoakRuns)
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt, h)
		for range backendOps {
			w.step()
			w.check()
		}
		w.rest()
	})
}

// world is a store and the backend behind it.
type world struct {
	*rapid.T
	*Harness
	backend
	config store.Decide
	lag    time.Duration
	now    time.Duration
	calls  int

	sent   []*forward
	late   []*store.Settle  // copies of settlements
	looks  []*sighting      // under way
	done   []*store.Reading // copies of applies
	reads  []reading        // what truth has shown, for sources that lag
	unseen int64            // units booked outside that no applied look has read
	// Holds that a cancel left unknown. No request goes on under them: what may become
	// of them is at the backend.
	inDoubt map[string]bool
}

// forward is a request that was admitted and what the backend makes of it.
type forward struct {
	d       *store.Decide
	got     store.Decided
	job     *job
	settled bool
}

func newWorld(t *rapid.T, h *Harness) *world {
	w := &world{T: t, Harness: h, inDoubt: map[string]bool{}}
	w.bookings, w.removed = map[string]int64{}, map[string]string{}
	w.left = rapid.Int64Range(1, 4).Draw(t, "units")
	w.checks = rapid.Bool().Draw(t, "checks")
	w.lag = rapid.SampledFrom([]time.Duration{0, 0, tick}).Draw(t, "lag")
	pool := "pool of " + newID()
	w.config = store.Decide{
		Rule: "book", Group: "book", Pool: pool, Slot: "x", Capacity: store.Learned, Truth: store.TruthRemaining,
		Hot: 1000 * time.Hour, Refresh: 1000 * time.Hour, HoldTTL: modelHoldTTL, Retain: 1000 * time.Hour,
		Lease: modelLease, KeyTTL: 1000 * time.Hour, Scope: "alice", RetryUnknown: true,
		OnePerSubject: rapid.Bool().Draw(t, "one_per_subject"),
		KeepUnknown:   rapid.SampledFrom([]bool{false, false, true}).Draw(t, "keep_unknown"),
	}
	w.vague = w.config.OnePerSubject
	w.see()
	return w
}

func (w *world) gate() store.Store {
	w.calls++
	if w.calls%2 == 0 {
		return w.Other
	}
	return w.Store
}

// step lets one thing happen.
func (w *world) step() {
	switch op := rapid.SampledFrom([]string{ // rapid draws from the front more often
		"request", "finish", "cancel", "lose a cancel", "look", "read", "apply", "leave and retry", "run", "settle", "finish", "cancel",
		"look", "read", "apply", "request", "advance", "leave", "retry", "outside", "console", "copy", "copy apply",
	}).Draw(w.T, "op"); op {
	case "request":
		w.request(rapid.IntRange(1, 4).Draw(w.T, "subject"))
	case "retry":
		if f := w.draw(func(f *forward) bool { return f.d.Action == store.Book && !f.settledWith(rules.Booked) }); f != nil {
			w.decide(again(f.d))
		}
	case "cancel":
		w.cancelOf()
	case "lose a cancel": // it is done, and its answer is late or never read
		if f := w.cancelOf(); f != nil {
			w.answer(f)
			if rapid.Bool().Draw(w.T, "left") {
				w.settle(f, rules.Unknown)
			}
		}
	case "run":
		if f := w.draw(func(f *forward) bool { return f.job.pending() }); f != nil {
			w.answer(f)
		}
	case "finish":
		if f := w.draw(func(f *forward) bool { return f.job.pending() && !f.settled }); f != nil {
			w.answer(f)
			w.settle(f, f.job.answer)
		}
	case "leave and retry":
		if f := w.draw(func(f *forward) bool { return f.d.Action == store.Book && f.job.pending() && !f.settled }); f != nil {
			w.settle(f, rules.Unknown)
			w.decide(again(f.d))
		}
	case "settle":
		if f := w.draw(func(f *forward) bool { return !f.settled && f.job.answer != rules.NoOutcome }); f != nil {
			w.settle(f, f.job.answer)
		}
	case "leave": // the gate gives up waiting
		if f := w.draw(func(f *forward) bool { return !f.settled }); f != nil {
			w.settle(f, rules.Unknown)
		}
	case "outside":
		if w.bookOutside() {
			w.unseen++
			w.Logf("booked outside, %d left", w.left)
		}
	case "console":
		w.console()
	case "look":
		w.look()
	case "read":
		w.read()
	case "apply":
		w.apply()
	case "copy":
		if len(w.late) > 0 {
			w.report(latest(w.T, w.late, "settlement"))
		}
	case "copy apply":
		if len(w.done) > 0 {
			if got := w.deliver(latest(w.T, w.done, "reading")); got.Applied {
				w.Fatalf("a copy of an apply was applied: %+v", got)
			}
		}
	case "advance":
		w.advance(time.Duration(rapid.SampledFrom([]int{1, 1, 2, 6}).Draw(w.T, "ticks")) * tick)
	}
	w.see()
}

func (w *world) draw(fits func(*forward) bool) *forward {
	var fit []*forward
	for _, f := range w.sent {
		if fits(f) {
			fit = append(fit, f)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return latest(w.T, fit, "forward")
}

func (f *forward) settledWith(o rules.Outcome) bool { return f.settled && f.job.answer == o }

// request books for a subject, which always wants the same number of units: a
// duplicate is taken for the booking that this hold would have been (H1).
func (w *world) request(subject int) {
	d := w.config
	d.ID, d.Subject, d.Units = newID(), fmt.Sprintf("s%d", subject), 1
	if subject == 4 {
		d.Units = 2
	}
	d.Key = "key of " + d.ID
	d.Fingerprint = fingerprint(&d, "")
	w.decide(&d)
}

// cancelOf cancels for a subject that has a booking, or now and then for any.
func (w *world) cancelOf() *forward {
	subjects := w.booked()
	if len(subjects) == 0 || rapid.SampledFrom([]bool{false, false, false, true}).Draw(w.T, "of any") {
		subjects = []string{"s1", "s2", "s3"}
	}
	d := w.config
	d.ID, d.Subject = newID(), rapid.SampledFrom(subjects).Draw(w.T, "subject")
	d.Action, d.Rule, d.Group = store.Cancel, "cancel", "cancel"
	return w.decide(&d)
}

// answer lets the backend get to a request.
func (w *world) answer(f *forward) {
	w.run(f.job, rapid.SampledFrom([]bool{false, false, false, true}).Draw(w.T, "refuse"))
	w.Logf("backend: %s %s: %s, %d left", f.d.ID, f.d.Subject, f.job.answer, w.left)
}

// decide sends what is admitted to the backend.
func (w *world) decide(d *store.Decide) *forward {
	got, err := w.gate().Decide(context.Background(), d)
	if err != nil {
		w.Fatalf("decide: %v", err)
	}
	w.Logf("decide %s %s %d units, cancel %t: %s hold %s", d.ID, d.Subject, d.Units, d.Action == store.Cancel, got.Verdict, got.Hold)
	if got.Verdict != decision.Admitted {
		return nil
	}
	j := &job{subject: d.Subject, units: d.Units, cancels: d.Action == store.Cancel, hold: got.Hold, deadline: w.now + d.HoldTTL - w.lag}
	w.backend.send(j)
	f := &forward{d: d, got: got, job: j}
	w.sent = append(w.sent, f)
	return f
}

// settle reports what the gate has heard. An answer that it did not wait for may
// still be told later (a gate that gave up and one that probes).
func (w *world) settle(f *forward, outcome rules.Outcome) {
	f.settled = outcome != rules.Unknown || f.d.Action == store.Cancel
	s := settlement(f.d, f.got, outcome)
	w.report(s)
	w.late = append(w.late, s)
}

func (w *world) report(s *store.Settle) {
	got, err := w.gate().Settle(context.Background(), s)
	if err != nil {
		w.Fatalf("settle: %v", err)
	}
	w.Logf("settle %s of %s: %s: %+v", s.ID, s.Hold, s.Outcome, got)
	if s.Action == store.Cancel && got.Hold == decision.HoldUnknown {
		w.inDoubt[s.Hold] = true
	}
}

// console cancels a booking in the backend's own console.
func (w *world) console() {
	booked := w.booked()
	if len(booked) == 0 || !w.vague {
		return
	}
	subject := rapid.SampledFrom(booked).Draw(w.T, "booking")
	w.backend.cancel(subject, "")
	w.Logf("console: cancelled %s, %d left", subject, w.left)
}

// advance lets time pass. A request that runs out of it is never booked.
func (w *world) advance(d time.Duration) {
	w.Logf("advance %v", d)
	w.see()
	w.now += d
	w.backend.expire(w.now)
	w.Advance(d)
	w.late, w.done = nil, nil
}

// check compares what the store gives out with what truth allows.
func (w *world) check() {
	if w.left < -w.outside {
		w.Fatalf("oversold: truth has %d units left, %d were booked outside", w.left, w.outside)
	}
	available, open, known := w.available()
	if !known || available <= 0 {
		return
	}
	if allowed := w.left - w.threatens(open) + w.unseen; available > allowed {
		w.Fatalf("%d units available, truth allows %d: %d left, %d may be taken by what is held or at the backend, %d booked outside since the last look",
			available, allowed, w.left, w.threatens(open), w.unseen)
	}
}

// available is what the store would give out, and the units of open holds by
// subject.
func (w *world) available() (units int64, open map[string]int64, known bool) {
	got, err := w.gate().Slot(context.Background(), query(&w.config))
	if err != nil {
		return 0, nil, false // not seen yet
	}
	open = map[string]int64{}
	for _, h := range got.Holds {
		if h.State.Open() && !w.inDoubt[h.ID] {
			open[h.Subject] = max(open[h.Subject], h.Units)
		}
	}
	units, known = got.Available()
	return units - got.Debt, open, known
}

// rest lets everything come to an end; then one look is exact, and exactly what is
// left can be booked.
func (w *world) rest() {
	for _, f := range w.sent {
		if f.job.pending() && rapid.Bool().Draw(w.T, "runs") {
			w.run(f.job, false)
		}
		if !f.settled && f.job.answer != rules.NoOutcome {
			w.settle(f, f.job.answer)
		}
	}
	for _, s := range w.looks {
		says(s.r, w.left)
		w.deliver(s.r)
	}
	w.advance(2 * modelHoldTTL)
	if w.config.KeepUnknown {
		w.releaseUnknown()
	}
	w.looks = nil
	r := &store.Reading{Look: &store.Look{Query: query(&w.config), ID: newID(), Lag: 2 * w.lag, Lease: modelWait, Force: true}, Total: store.Learned, Hot: w.config.Hot, Refresh: w.config.Refresh}
	looked, err := w.gate().Look(context.Background(), r.Look)
	if err != nil {
		w.Fatalf("look: %v", err)
	}
	r.Looked = looked
	if got := w.deliver(says(r, w.left)); !got.Applied || got.After != w.left || got.Again {
		w.Fatalf("at rest: applied %+v, truth has %d left", got, w.left)
	}
	for range max(0, w.left) {
		d := w.config
		d.ID, d.Units = newID(), 1
		got, err := w.gate().Decide(context.Background(), &d)
		if err != nil || got.Verdict != decision.Admitted {
			w.Fatalf("at rest: decided %s, %v", got.Verdict, err)
		}
	}
	d := w.config
	d.ID, d.Units = newID(), 1
	if got, err := w.gate().Decide(context.Background(), &d); err != nil || got.Verdict != decision.SoldOut {
		w.Fatalf("at rest, with nothing left: decided %s, %v", got.Verdict, err)
	}
}

// releaseUnknown is the operator who says that what is still unknown is not booked.
func (w *world) releaseUnknown() {
	got, err := w.gate().Slot(context.Background(), query(&w.config))
	if err != nil {
		return
	}
	for _, h := range got.Holds {
		if h.State.Open() {
			if _, err := w.gate().Release(context.Background(), query(&w.config), h.ID); err != nil {
				w.Fatalf("release: %v", err)
			}
		}
	}
}
