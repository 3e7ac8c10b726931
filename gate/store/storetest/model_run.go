package storetest

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

const (
	modelRuns     = 200 // unless -rapid.checks says otherwise
	modelSoakRuns = 3000
	modelOps      = 100

	// Time goes in steps of tick, and no deadline of the model is nearer than three
	// seconds to a multiple of it, so that a store on real time may drift so far.
	tick         = 11 * time.Second
	modelLease   = 15 * time.Second
	modelHoldTTL = 60 * time.Second
	modelWait    = 25 * time.Second
	// modelCopies is how old a call may be of which a copy still arrives.
	modelCopies = 2 * tick
)

// RunModel compares a store with the reference model over random histories: each
// verdict and settlement, and after each step the slots with their holds. It opens
// one store; each history has a pool and rule of its own.
func RunModel(t *testing.T, open func(t *testing.T) *Harness) { runModel(t, open, false) }

// RunTruthModel does so with cancels, confirms and pending bookings, and in half of
// the pools with counters that follow truth.
func RunTruthModel(t *testing.T, open func(t *testing.T) *Harness) { runModel(t, open, true) }

func runModel(t *testing.T, open func(t *testing.T) *Harness, truth bool) {
	h := open(t)
	drawHistories(t, cmp.Or(h.Histories, modelRuns), modelSoakRuns)
	rapid.Check(t, func(rt *rapid.T) {
		r := newHistory(rt, h, truth)
		for range modelOps {
			r.step()
		}
	})
}

// drawHistories has rapid draw so many: the same in every run, so that a change is
// blamed only for what it breaks; under SLOTGATE_SOAK more, and new ones.
func drawHistories(t *testing.T, runs, soakRuns int) {
	if os.Getenv("SLOTGATE_SOAK") != "" {
		setDefault(t, "rapid.checks", strconv.Itoa(soakRuns))
		return
	}
	setDefault(t, "rapid.checks", strconv.Itoa(runs))
	setDefault(t, "rapid.seed", "1")
}

// setDefault sets a flag for the test unless the command line has.
func setDefault(t *testing.T, name, value string) {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	f := flag.Lookup(name)
	if given || f == nil {
		return
	}
	before := f.Value.String()
	t.Cleanup(func() { _ = f.Value.Set(before) })
	if err := f.Value.Set(value); err != nil {
		t.Fatal(err)
	}
}

// history is one random run of calls on a store and on the model.
type history struct {
	*rapid.T
	*Harness
	model      *model
	calls      int
	pool       string
	config     store.Decide // what the pool and rule of this history configure
	truth      bool         // cancels, confirms and pending bookings, and perhaps truth
	pendingTTL time.Duration
	decides    []*modelDecide
	settles    []modelSettle
	touches    []modelTouch
	cancels    []*modelDecide
	looks      []*modelLook
}

type modelDecide struct {
	d   *store.Decide
	got store.Decided
	at  time.Duration

	settledAt time.Duration // of a cancel
}

type modelSettle struct {
	s  *store.Settle
	at time.Duration
}

type modelTouch struct {
	t  *store.Touch
	at time.Duration
}

func newHistory(t *rapid.T, h *Harness, truth bool) *history {
	r := &history{T: t, Harness: h, truth: truth, model: newModel(), pool: "pool of " + newID()}
	r.config = store.Decide{
		Rule: r.pool, Group: r.pool, Pool: r.pool,
		Capacity:      rapid.SampledFrom([]int64{2, store.Learned, 1, 3, 5}).Draw(t, "capacity"),
		HoldTTL:       modelHoldTTL,
		Retain:        1000 * time.Hour,
		OnePerSubject: rapid.Bool().Draw(t, "one_per_subject"),
		MaxPerSubject: rapid.SampledFrom([]int64{0, 0, 2}).Draw(t, "max_per_subject"),
		MaxInflight:   rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "max_inflight"),
		KeepUnknown:   rapid.SampledFrom([]bool{false, false, true}).Draw(t, "keep_unknown"),
		Lease:         modelLease,
		KeyTTL:        1000 * time.Hour,
	}
	if truth && rapid.Bool().Draw(t, "of truth") {
		r.config.Capacity, r.config.Truth, r.config.Hot, r.config.Refresh = store.Learned, store.TruthRemaining, modelHot, modelHoldTTL
		r.model.truth = store.TruthRemaining
	}
	if truth {
		r.pendingTTL = rapid.SampledFrom([]time.Duration{0, 0, modelPending}).Draw(t, "pending_ttl")
	}
	if rapid.SampledFrom([]bool{false, false, true}).Draw(t, "limits") {
		r.config.SubjectLimit = store.Limit{Count: 1, Per: 2 * tick, Burst: 4}
		r.config.SlotLimit = store.Limit{Count: 1, Per: tick, Burst: 3}
	}
	return r
}

// step does one call, or lets time pass, and compares. Right after time has passed
// the slots are not read, so that a decide meets its due holds itself.
func (r *history) step() {
	ops := []string{ // rapid draws from the front more often
		"decide", "settle", "advance", "retry", "copy", "settle", "await", "settle again",
		"decide", "settle", "advance", "operator", "unseen", "touch", "resume", "touch again", "read", "decide", "settle",
	}
	if r.truth {
		ops = append(ops, "cancel", "settle cancel", "cancel again")
	}
	if r.config.Truth != store.NoTruth {
		ops = append([]string{"sync", "decide", "settle", "cancel", "settle cancel", "look", "apply"}, ops...)
	}
	switch op := rapid.SampledFrom(ops).Draw(r.T, "op"); op {
	case "decide":
		r.decide(r.request())
	case "retry":
		c := r.recent(func(c *modelDecide) bool { return c.got.Verdict == decision.Admitted })
		if c != nil {
			r.decide(again(c.d, retrying))
		}
	case "copy":
		if c := r.recent(func(c *modelDecide) bool { return true }); c != nil {
			r.decide(c.d)
		}
	case "await":
		c := r.recent(func(c *modelDecide) bool { return c.got.Verdict == decision.Twin && c.d.Wait > 0 })
		if c != nil {
			d := *c.d
			d.Await = c.got.Owner
			r.decide(&d)
		}
	case "settle":
		r.settleAttempt()
	case "settle again":
		r.settleAgain()
	case "unseen":
		r.settleUnseen()
	case "cancel":
		r.cancelOf()
	case "cancel again":
		r.cancelAgain()
	case "settle cancel":
		r.settleCancel()
	case "sync":
		r.sync()
	case "look":
		if l := r.look(); l != nil {
			r.looks = append(r.looks, l)
		}
	case "apply":
		r.applyLate()
	case "touch":
		r.touch()
	case "touch again":
		r.touchAgain()
	case "resume":
		r.resume()
	case "operator":
		r.operate()
	case "advance":
		d := time.Duration(rapid.SampledFrom([]int{1, 2, 6, 6}).Draw(r.T, "ticks")) * tick
		r.Logf("advance %v", d)
		r.model.now += d
		r.Advance(d)
		return
	}
	r.compareSlots()
}

func (r *history) gate() store.Store {
	r.calls++
	if r.calls%2 == 0 {
		return r.Other
	}
	return r.Store
}

// request draws a new request. Its texts are few, so that requests meet.
func (r *history) request() *store.Decide {
	d := r.config
	d.ID = newID()
	d.Slot = rapid.SampledFrom([]string{"x", "x", "y"}).Draw(r.T, "slot")
	d.Subject = rapid.SampledFrom([]string{"", "s", "s", "t"}).Draw(r.T, "subject")
	d.Units = rapid.SampledFrom([]int64{1, 1, 1, 2}).Draw(r.T, "units")
	own := fmt.Sprint(d.Slot, d.Subject, d.Units)
	d.Key = rapid.SampledFrom([]string{"", "one " + own, "another " + own, "of all"}).Draw(r.T, "key")
	d.Scope = rapid.SampledFrom([]string{"alice", "alice", "alice", "bob", ""}).Draw(r.T, "scope")
	d.BareReplay = rapid.Bool().Draw(r.T, "bare replay")
	d.RetryUnknown = rapid.SampledFrom([]bool{true, true, false}).Draw(r.T, "retry")
	d.Wait = rapid.SampledFrom([]time.Duration{0, modelWait}).Draw(r.T, "wait")
	d.Charged = rapid.SampledFrom([]bool{false, false, false, true}).Draw(r.T, "charged")
	d.Blind = rapid.SampledFrom([]bool{false, false, true}).Draw(r.T, "blind")
	d.Line = rapid.SampledFrom([]bool{false, false, false, false, false, true}).Draw(r.T, "line")
	if rapid.Bool().Draw(r.T, "like another") && len(r.decides) > 0 {
		o := latest(r.T, r.decides, "request").d
		d.Slot, d.Subject, d.Units, d.Key, d.Scope = o.Slot, o.Subject, o.Units, o.Key, o.Scope
	}
	d.Repeat = rapid.SampledFrom([]time.Duration{0, modelWait}).Draw(r.T, "repeat")
	d.Fingerprint = fingerprint(&d, rapid.SampledFrom([]string{"", "", "", "", "other"}).Draw(r.T, "body"))
	return &d
}

// latest draws one of several, the last ones more often.
func latest[T any](t *rapid.T, from []T, label string) T {
	return from[len(from)-1-rapid.IntRange(0, len(from)-1).Draw(t, label)]
}

// recent draws an earlier decide of which a copy may still arrive.
func (r *history) recent(fits func(*modelDecide) bool) *modelDecide {
	var fit []*modelDecide
	for _, c := range r.decides {
		if r.model.now-c.at <= modelCopies && fits(c) {
			fit = append(fit, c)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return latest(r.T, fit, "earlier")
}

func (r *history) decide(d *store.Decide) {
	r.Logf("decide %s action %d target %q %s/%s/%d key %q scope %q retry %t wait %v await %q", d.ID, d.Action, d.Target, d.Slot, d.Subject, d.Units, d.Key, d.Scope, d.RetryUnknown, d.Wait, d.Await)
	if r.config.MaxPerSubject > 0 {
		// A store may let an overdue hold of another slot stop counting in the pool
		// before anybody looks at that slot; reading them makes it certain.
		r.compareSlots()
	}
	want := r.model.decide(d)
	got, err := r.gate().Decide(context.Background(), d)
	if err != nil {
		r.Fatalf("decide: %v", err)
	}
	r.Logf("  %s hold %s", got.Verdict, got.Hold)
	if got.Verdict != want.Verdict || got.Hold != want.Hold || got.Adopted != want.Adopted || got.Lapsed != want.Lapsed {
		r.Fatalf("decided %s, hold %q (adopted %t), lapsed %d; want %s, %q (%t), %d",
			got.Verdict, got.Hold, got.Adopted, got.Lapsed, want.Verdict, want.Hold, want.Adopted, want.Lapsed)
	}
	if got.Verdict == decision.SubjectBusy && r.model.holdsUp(d, got.Owner) {
		want.Owner = got.Owner // of several any will do
	}
	if got.Owner != want.Owner || !bytes.Equal(got.Answer, want.Answer) {
		r.Fatalf("owner %q, answer %q; want %q, %q", got.Owner, got.Answer, want.Owner, want.Answer)
	}
	if (want.Verdict == decision.Twin || want.Verdict == decision.Answered) && got.MayReplay != want.MayReplay {
		r.Fatalf("may replay %t, want %t", got.MayReplay, want.MayReplay)
	}
	if want.Left = r.model.unitsLeft(d, want.Verdict); got.Left != want.Left {
		r.Fatalf("%d units left, want %d", got.Left, want.Left)
	}
	if d.Action != store.Book {
		if got.Verdict == decision.Admitted && !slices.ContainsFunc(r.cancels, func(c *modelDecide) bool { return c.d.ID == d.ID }) {
			r.cancels = append(r.cancels, &modelDecide{d: d, got: got, at: r.model.now})
		}
		return
	}
	for _, c := range r.decides {
		if c.d.ID == d.ID && c.got.Verdict == decision.Admitted {
			return // a copy's reply goes to nobody
		}
	}
	if got.Verdict == decision.Admitted && got.Probe != want.Probe {
		r.Fatalf("probe %t, want %t", got.Probe, want.Probe)
	}
	r.decides = append(r.decides, &modelDecide{d: d, got: got, at: r.model.now})
	if got.Holders != nil {
		r.repeat(d, got.Holders)
	}
}

// repeat asks for others whom a sold out could be repeated to. A key that was used on
// another slot, and what a subject has in others, the slot does not know of.
func (r *history) repeat(of *store.Decide, holders store.Holders) {
	if of.Repeat == 0 {
		r.Fatalf("it may be repeated, and nobody asked")
	}
	for range 3 {
		d := r.request()
		d.Slot, d.Units, d.Repeat = of.Slot, of.Units, 0
		d.Fingerprint = fingerprint(d, "")
		if holders.Know(d) {
			continue
		}
		r.decide(d)
		switch told := r.decides[len(r.decides)-1].got.Verdict; told {
		case decision.SoldOut, decision.LimitedSubject, decision.SubjectFull:
		case decision.Mismatch, decision.Twin, decision.KeyDone, decision.Replay, decision.OutcomeUnknown:
			if strings.Contains(d.Key, " "+d.Slot) {
				r.Fatalf("sold out would be repeated to who is told %s", told)
			}
		default:
			r.Fatalf("sold out would be repeated to who is told %s", told)
		}
	}
}

// settleAttempt reports an outcome of an attempt, now and then of one that has been
// answered. Its hold has not been gone for longer than copies live, nor has it.
func (r *history) settleAttempt() {
	overrule := rapid.SampledFrom([]bool{false, false, false, false, true}).Draw(r.T, "overrule")
	var fit []*modelDecide
	for _, c := range r.decides {
		if c.got.Verdict != decision.Admitted {
			continue
		}
		h := r.model.hold(c.got.Hold)
		fits := !h.gone() || r.model.now-h.goneAt <= modelCopies
		for _, a := range h.attempts {
			if a.id == c.d.ID && a.answered {
				fits = fits && overrule && r.model.now-a.endedAt <= modelCopies
			}
		}
		if fits {
			fit = append(fit, c)
		}
	}
	if len(fit) == 0 {
		return
	}
	c := latest(r.T, fit, "attempt")
	outcome := rapid.SampledFrom([]rules.Outcome{
		rules.Unknown, rules.Booked, rules.SoldOut, rules.Refused, rules.Unknown, rules.Duplicate, rules.NeverSent, rules.Busy,
	}).Draw(r.T, "outcome")
	s := settlement(c.d, c.got, outcome)
	if outcome == rules.Refused {
		s.Keep = rapid.Bool().Draw(r.T, "keep")
	}
	s.PendingTTL = r.pendingTTL
	s.Reference = rapid.SampledFrom([]string{"", "booking of " + s.Hold}).Draw(r.T, "reference")
	r.settle(s)
	r.settles = append(r.settles, modelSettle{s, r.model.now})
}

// settleAgain delivers a late copy of a settlement.
func (r *history) settleAgain() {
	var fit []modelSettle
	for _, s := range r.settles {
		if h := r.model.hold(s.s.Hold); r.model.now-s.at <= modelCopies && (h == nil || !h.gone() || r.model.now-h.goneAt <= modelCopies) {
			fit = append(fit, s)
		}
	}
	if len(fit) > 0 {
		r.settle(latest(r.T, fit, "settlement").s)
	}
}

func (r *history) settleUnseen() {
	d := r.request()
	outcome := rapid.SampledFrom([]rules.Outcome{rules.Booked, rules.Duplicate, rules.Refused, rules.Busy}).Draw(r.T, "outcome")
	s := settlement(d, store.Decided{Hold: d.ID}, outcome)
	s.PendingTTL = r.pendingTTL
	r.settle(s)
	if r.model.hold(d.ID) != nil {
		r.settles = append(r.settles, modelSettle{s, r.model.now})
	}
}

func (r *history) settle(s *store.Settle) {
	r.Logf("settle %s of %s: %s, keep %t", s.ID, s.Hold, s.Outcome, s.Keep)
	want := r.model.settle(s)
	got, err := r.gate().Settle(context.Background(), s)
	if err != nil {
		r.Fatalf("settle: %v", err)
	}
	if got != want {
		r.Fatalf("settled %+v, want %+v", got, want)
	}
}
