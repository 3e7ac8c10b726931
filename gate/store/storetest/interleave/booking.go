package interleave

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// Request is one request of a case. Requests with one key are retries of each other.
type Request struct {
	Cancels bool
	Key     string // "" none
	Subject string
	Units   int64
}

// Bookings is a case of one slot, requests that book and cancel, and a backend with or
// without constraints (models m1 and m2).
type Bookings struct {
	Name     string
	Requests []Request // up to 5; each gate has every other one
	Capacity int64

	Unique     bool // the backend lets a subject book once
	Checks     bool // it refuses what it has no units for
	Refuses    bool // it refuses bookings as it likes
	Idempotent bool // it says yes to a cancel of nothing

	OnePerSubject bool
	Reject        bool // an unknown outcome is not tried again
	KeepUnknown   bool

	Dies   bool // gates die, request by request
	Lost   bool // replies of the store are lost, and its calls made again
	Copies bool // copies of store calls come late
	Late   bool // settlements wait, in a journal, for as long as they like

	StoreRefusals bool // refusals are kept and replayed
	Steps         bool // calls take several steps (model m5); the rig is Stepped

	Lease, TTL int8 // how many ticks after its decide an attempt, or a hold, is over; 1 and 2 where 0
	// Exact: the backend is never oversold, and no subject booked twice, not even where
	// a hold has lapsed.
	Exact bool

	wire     bool
	progress *progress
}

func (b *Bookings) String() string { return b.Name }

// Explore is part of Case.
func (b *Bookings) Explore(rigs []Rig) (Result, error) {
	c := *b
	c.wire, c.progress = rigs[0].Wire(), newProgress()
	return explore(rigs, &c)
}

const (
	pool = "lessons"
	slot = "lesson-1"

	maxRequests = 5
	forGood     = 1000 * time.Hour
)

// phase is how far a request has come.
type phase uint8

const (
	idle     phase = iota
	repeats        // its decide was done, but the reply was lost
	admitted       // it may be forwarded
	sent           // its gate waits for the backend
	asking         // its decide has taken some of its steps
	settling       // its settlement has
	heard          // its outcome is to be settled
	told           // it was, but the reply was lost
	ended
	dead // its gate has died
)

// request is what has become of one request.
type request struct {
	phase   phase
	job     job
	outcome rules.Outcome
	hold    int8  // whose hold it goes under, by request; -1 none
	lease   int8  // ticks until its attempt is over
	asked   int8  // ticks since its decide, and since its settlement, for as long as copies
	settled int8  // may come
	seen    int8  // the release counter it was told
	over    int8  // units that its booking, too late, took beyond capacity
	step    int16 // of a call that takes several
	past    int16 // what the steps of its decide were told
	probe   bool
	open    bool // its attempt is unanswered, as far as the store can know
	doubts  bool // a cancel whose hold had attempts unanswered when it was decided
	late    bool // a copy of its decide, which was refused, is on its way
	behind  bool // another attempt of its key was booked since it was let through
}

// world is what is known of requests, holds and backend.
type world struct {
	requests [maxRequests]request
	ttl      [maxRequests]int8 // of the hold that each took: ticks until it lapses
	lapsed   [maxRequests]bool // it has
	again    [maxRequests]bool // and was booked after that
	standsIn [maxRequests]bool // it was booked as a duplicate, of what nobody has told of
	doubted  [maxRequests]bool // a cancel of it may have been done
	excess   int8              // units that late bookings took beyond capacity
}

func (b *Bookings) lease() int8 { return max(b.Lease, 1) }
func (b *Bookings) ttl() int8   { return max(b.TTL, b.lease()+1) }

// ticks is the time that is over within the given number of them.
func ticks(n int8) time.Duration { return time.Duration(n)*Tick - half }

func attemptID(r int) string { return fmt.Sprintf("attempt-%d-of-the-case", r) }

// holder is the request that took a hold, -1 if none did.
func (b *Bookings) holder(id string) int8 {
	for r := range b.Requests {
		if attemptID(r) == id {
			return int8(r)
		}
	}
	return -1
}

func (b *Bookings) decide(r int) *store.Decide {
	q := b.Requests[r]
	d := &store.Decide{
		ID: attemptID(r), Rule: "book", Group: "book", Pool: pool, Slot: slot, Subject: q.Subject, Units: q.Units,
		Capacity: b.Capacity, HoldTTL: ticks(b.ttl()), Lease: ticks(b.lease()), Retain: forGood,
		OnePerSubject: b.OnePerSubject, KeepUnknown: b.KeepUnknown, RetryUnknown: !b.Reject,
		Key: q.Key, KeyTTL: forGood, Scope: "alice",
	}
	if q.Cancels {
		d.Action, d.Rule, d.Group = store.Cancel, "cancel", "cancel"
	}
	d.Fingerprint = sha256.Sum256(fmt.Appendf(nil, "%d %q %q %q %d", d.Action, d.Pool, d.Slot, d.Subject, d.Units))
	return d
}

func (b *Bookings) settlement(r int, q *request) *store.Settle {
	d := b.decide(r)
	s := &store.Settle{
		ID: d.ID, Action: d.Action, Pool: d.Pool, Slot: d.Slot, Subject: d.Subject, Units: d.Units,
		Capacity: d.Capacity, HoldTTL: d.HoldTTL, Retain: d.Retain, KeepUnknown: d.KeepUnknown,
		ReleaseSeq: int64(q.seen), Probe: q.probe, Outcome: q.outcome,
		Group: d.Group, Key: d.Key, KeyTTL: d.KeyTTL, Scope: d.Scope, Fingerprint: d.Fingerprint,
		Keep: b.keeps(q.outcome), Answer: []byte("answer of " + d.ID),
	}
	if q.hold >= 0 {
		s.Hold = attemptID(int(q.hold))
	}
	return s
}

func (b *Bookings) keeps(o rules.Outcome) bool {
	return o == rules.Booked || o == rules.Duplicate || o == rules.Done || b.StoreRefusals && o == rules.Refused
}

func (b *Bookings) query() store.SlotQuery {
	return store.SlotQuery{Pool: pool, Slot: slot, Capacity: b.Capacity, HoldTTL: ticks(b.ttl()), Retain: forGood, KeepUnknown: b.KeepUnknown}
}

// keys has a call of each request, so that the n-th state of a key is the n-th request's.
func (b *Bookings) keys() []*store.Decide {
	var calls []*store.Decide
	for r := range b.Requests {
		calls = append(calls, b.decide(r))
	}
	return calls
}

func (b *Bookings) start() (w world) {
	for r := range w.requests {
		w.requests[r].hold = -1
	}
	return w
}

// steps lists what can happen next.
func (b *Bookings) steps(w world, at *state) (steps []step[world]) {
	for r := range b.Requests {
		steps = append(steps, b.requestSteps(r, w.requests[r], at)...)
		steps = append(steps, b.backendSteps(r, &w)...)
	}
	if b.mayPass(&w, at) {
		steps = append(steps, b.tick())
	}
	return steps
}

func (b *Bookings) name(r int) string {
	q := b.Requests[r]
	what := "book"
	if q.Cancels {
		what = "cancel"
	}
	key := ""
	if q.Key != "" {
		key = ", key " + q.Key
	}
	return fmt.Sprintf("%s %d (%s%s)", what, r, q.Subject, key)
}

// requestSteps is what one request, its gate and the network can do.
func (b *Bookings) requestSteps(r int, q request, at *state) (steps []step[world]) {
	name := b.name(r)
	local := func(label string, do func(q *request)) {
		steps = append(steps, step[world]{label: name + " " + label, local: func(w *world) []string {
			do(&w.requests[r])
			return nil
		}})
	}
	switch {
	case b.Steps && (q.phase == idle || q.phase == asking):
		return append(steps, b.askNext(r, q)...)
	case b.Steps && (q.phase == heard || q.phase == settling):
		return append(steps, b.settleNext(r, q)...)
	}
	switch q.phase {
	case idle:
		steps = append(steps, b.ask(r, name+" asks", First, false))
		if b.Lost {
			steps = append(steps, b.ask(r, name+" asks, and the reply is lost", First, true))
		}
		if b.Copies && b.wire {
			steps = append(steps, b.askTwice(r, name+" asks twice, the first time still on its way"))
		}
	case repeats:
		steps = append(steps, b.ask(r, name+" asks again", Second, false))
	case admitted:
		steps = append(steps, step[world]{label: name + " is forwarded", local: func(w *world) []string {
			w.requests[r].phase, w.requests[r].job = sent, pending
			return b.forwarded(r, w, at)
		}})
		local("cannot be sent", func(q *request) { q.phase, q.outcome, q.behind = heard, rules.NeverSent, false })
	case sent:
		if q.job != pending {
			local("gets the answer", func(q *request) { q.phase, q.outcome = heard, q.job.heard() })
		}
		local("waits no longer", func(q *request) { q.phase, q.outcome = heard, rules.Unknown })
	case heard, told:
		steps = append(steps, b.settle(r, q, false))
		if b.Lost && q.phase == heard {
			steps = append(steps, b.settle(r, q, true))
		}
	}
	if b.Dies && q.phase >= repeats && q.phase <= told {
		local("loses its gate", func(q *request) { q.phase, q.behind = dead, false })
	}
	if b.Steps {
		return append(steps, b.copiesOfSteps(r, q)...)
	}
	if b.Copies && q.asked <= copyTicks && (q.hold >= 0 && q.phase > repeats || q.late) {
		steps = append(steps, copyOf(name+": a late copy of its decide", b.callDecide(r, First)))
	}
	if b.Copies && q.settled <= copyTicks && q.phase == ended && q.outcome != rules.NoOutcome {
		steps = append(steps, copyOf(name+": a late copy of its settlement", b.callSettle(r, &q)))
	}
	return steps
}

// copyTicks is how many ticks store.CopyWindow spans.
const copyTicks = int8(store.CopyWindow / Tick)

// copyOf delivers a call once more. That must change nothing (P3).
func copyOf(label string, c call) step[world] {
	return step[world]{label: label, call: c, then: func(_ *world, _ any, before, after *state) (string, []string, error) {
		if after.id != before.id {
			return "", []string{"P3: a copy of a call had an effect"}, nil
		}
		return "", nil, errNothing
	}}
}

func (b *Bookings) callDecide(r int, copy Copy) call {
	return call{fmt.Sprint("decide ", r, copy), func(p *play) (any, error) {
		return p.Decide(r%gates, b.decide(r), r, copy)
	}}
}

func (b *Bookings) callSettle(r int, q *request) call {
	s := b.settlement(r, q)
	return call{fmt.Sprint("settle ", r, s.Hold, s.Outcome, s.ReleaseSeq, s.Probe), func(p *play) (any, error) {
		return p.Gate(r%gates).Settle(context.Background(), s)
	}}
}

// ask makes a request's decide.
func (b *Bookings) ask(r int, label string, copy Copy, lost bool) step[world] {
	return step[world]{label: label, call: b.callDecide(r, copy), then: func(w *world, reply any, before, after *state) (string, []string, error) {
		was, got := w.requests[r], reply.(store.Decided)
		said := fmt.Sprintf(": %s, %s", got.Verdict, holdName(b.holder(got.Hold)))
		if waits(got.Verdict) && !was.open || lost && after.id == before.id {
			return said, nil, errNothing
		}
		b.decided(r, w, got)
		if lost {
			w.requests[r].phase = repeats
		}
		if was.phase == repeats && was.open {
			w.requests[r].doubts = was.doubts // what it means was chosen the first time
			if got.Verdict != decision.Admitted || w.requests[r].hold != was.hold || after.id != before.id {
				return said, []string{"P3: a decide that was made twice had another effect than once"}, nil
			}
			return said, nil, nil
		}
		want := moves{}
		if got.Verdict == decision.Admitted && !b.Requests[r].Cancels {
			want[b.holder(got.Hold)] = decision.Held
		}
		return said, append(want.compare(before, after), b.admittedLate(r, got, before)...), nil
	}}
}

// admittedLate tells what the store knew already when it admitted a request (P2).
func (b *Bookings) admittedLate(r int, got store.Decided, before *state) (broken []string) {
	if got.Verdict != decision.Admitted || b.Requests[r].Cancels {
		return nil
	}
	if before.Keys[r].Done {
		broken = append(broken, "P2: admitted after an outcome that was kept")
	}
	if before.hold(b.holder(got.Hold)) == decision.Confirmed {
		broken = append(broken, "P2: admitted under a hold that is confirmed")
	}
	return broken
}

// askTwice is a decide whose first attempt is delayed on its way, so that the second
// is answered before. Only a refusal of it is a place of its own: a grant is recorded
// whichever attempt it was.
func (b *Bookings) askTwice(r int, label string) step[world] {
	return step[world]{label: label, call: b.callDecide(r, Second), then: func(w *world, reply any, _, _ *state) (string, []string, error) {
		got := reply.(store.Decided)
		if waits(got.Verdict) || got.Verdict == decision.Admitted {
			return "", nil, errNothing
		}
		b.decided(r, w, got)
		w.requests[r].late = true
		return fmt.Sprintf(": %s", got.Verdict), nil, nil
	}}
}

// waits: the request asks again when something has changed.
func waits(v decision.Verdict) bool {
	return v == decision.Twin || v == decision.SubjectBusy || v == decision.NoRoom
}

// decided notes a verdict that does not wait.
func (b *Bookings) decided(r int, w *world, got store.Decided) {
	q := &w.requests[r]
	q.asked = 0
	q.hold, q.phase = b.holder(got.Hold), ended
	if got.Verdict != decision.Admitted {
		q.behind = false
		return
	}
	q.phase, q.open, q.lease = admitted, true, b.lease()
	q.seen, q.probe = int8(got.ReleaseSeq), got.Probe
	if b.Requests[r].Cancels {
		q.doubts = q.hold >= 0 && b.unanswered(w, q.hold, -1)
	} else if q.hold >= 0 {
		w.ttl[q.hold] = b.ttl()
		if q.hold == int8(r) {
			b.standNoMore(w, b.Requests[r].Subject)
		}
	}
}

// unanswered reports whether the store waits for an answer of an attempt of a hold,
// other than one.
func (b *Bookings) unanswered(w *world, hold int8, but int) bool {
	for r, q := range w.requests {
		if r != but && q.open && q.hold == hold && !b.Requests[r].Cancels {
			return true
		}
	}
	return false
}

// holdName is how traces call the hold that a request took.
func holdName(r int8) string {
	if r < 0 {
		return "no hold"
	}
	return fmt.Sprintf("hold %d", r)
}
