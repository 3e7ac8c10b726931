package interleave

import (
	"context"
	"fmt"
	"regexp"
	"sync"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

// progress numbers how far calls of several steps may have come: what their steps were
// told, numbers that are times or depend on them apart.
type progress struct {
	mu    sync.Mutex
	told  [][]any
	known map[string]int16
}

func newProgress() *progress {
	return &progress{told: [][]any{nil}, known: map[string]int16{"": 0}}
}

var timely = regexp.MustCompile(`\d{3,}`)

// after is the number of what was told up to one and then.
func (p *progress) after(step int16, told []any) int16 {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := append(append([]any{}, p.told[step]...), told...)
	name := timely.ReplaceAllString(fmt.Sprintf("%q", all), "N")
	n, known := p.known[name]
	if !known {
		n = int16(len(p.told))
		p.known[name] = n
		p.told = append(p.told, all)
	}
	return n
}

func (p *progress) upTo(step int16) []any {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.told[step]
}

// stepped is what a step of a call led to.
type stepped struct {
	reply any
	told  []any
	done  bool
}

func (b *Bookings) stepOf(name string, r int, q request, number int, make func(store.Store) (any, error)) call {
	return call{fmt.Sprint(name, r, " ", q.hold, q.outcome, q.seen, " after ", q.step), func(p *play) (any, error) {
		reply, told, done, err := p.Rig.(Stepped).Step(r%gates, number, b.progress.upTo(q.step), make)
		return stepped{reply, told, done}, err
	}}
}

// askNext is the next step of a request's decide.
func (b *Bookings) askNext(r int, q request) []step[world] {
	next := b.stepOf("decide ", r, q, r, func(s store.Store) (any, error) { return s.Decide(context.Background(), b.decide(r)) })
	label := fmt.Sprintf("%s asks", b.name(r))
	steps := []step[world]{{label: label, call: next, then: func(w *world, reply any, before, after *state) (string, []string, error) {
		got := reply.(stepped)
		if !got.done {
			w.requests[r].phase, w.requests[r].lease = asking, b.lease()
			w.requests[r].step = b.progress.after(q.step, got.told)
			return ", and is told so far " + timely.ReplaceAllString(fmt.Sprint(got.told), "N"), nil, nil
		}
		decided := got.reply.(store.Decided)
		said := fmt.Sprintf(": %s, %s", decided.Verdict, holdName(b.holder(decided.Hold)))
		w.requests[r].step = 0
		if waits(decided.Verdict) {
			w.requests[r].behind = false
			if w.requests[r].phase, w.requests[r].lease = idle, 0; q.phase == idle {
				return said, nil, errNothing
			}
			return said, nil, nil
		}
		w.requests[r].lease = 0
		b.decided(r, w, decided)
		if b.Copies && decided.Verdict == decision.Admitted {
			w.requests[r].past = b.progress.after(q.step, got.told)
		}
		return said, b.admittedLate(r, decided, before), nil
	}}}
	return append(steps, b.diesBetween(r, q.phase == asking)...)
}

// copiesOfSteps are late copies of the steps of the decide of a request that was
// admitted. That of its first, the claim, may take over a key whose owner has died, which
// is waited out as a lease that nobody uses.
func (b *Bookings) copiesOfSteps(r int, q request) (steps []step[world]) {
	if !b.Copies || q.past == 0 || q.asked > copyTicks {
		return nil
	}
	for n := 1; n < len(b.progress.upTo(q.past)); n++ {
		again := call{fmt.Sprint("copy ", r, " ", q.past, " ", n), func(p *play) (any, error) {
			_, _, _, err := p.Rig.(Stepped).Step(r%gates, r, b.progress.upTo(q.past)[:n], func(s store.Store) (any, error) {
				return s.Decide(context.Background(), b.decide(r))
			})
			return nil, err
		}}
		steps = append(steps, copyOf(fmt.Sprintf("%s: a late copy of step %d of its decide", b.name(r), n+1), again))
	}
	return steps
}

// settleNext is the next step of its settlement.
func (b *Bookings) settleNext(r int, q request) []step[world] {
	next := b.stepOf("settle ", r, q, r, func(s store.Store) (any, error) { return s.Settle(context.Background(), b.settlement(r, &q)) })
	label := fmt.Sprintf("%s is settled as %s", b.name(r), q.outcome)
	steps := []step[world]{{label: label, call: next, then: func(w *world, reply any, before, after *state) (string, []string, error) {
		got := reply.(stepped)
		var broken []string
		if subject := b.Requests[r].Subject; released(before, after) && b.mayBeBooked(w, subject) > b.accounted(w, after, subject) {
			broken = append(broken, "P4: units were released while an attempt of them is, or may be, booked")
		}
		b.overtakes(r, w)
		b.lateBooking(r, w, before, after)
		if !got.done {
			w.requests[r].phase, w.requests[r].step = settling, b.progress.after(q.step, got.told)
			return ", and is told so far " + timely.ReplaceAllString(fmt.Sprint(got.told), "N"), broken, nil
		}
		b.settleMoves(r, w, before)
		broken = append(broken, w.requests[r].untold(got.reply.(store.Settled))...)
		w.requests[r].phase, w.requests[r].step = ended, 0
		return fmt.Sprintf(": its hold is %q", got.reply.(store.Settled).Hold), broken, nil
	}}}
	return append(steps, b.diesBetween(r, true)...)
}

// diesBetween is a gate that dies between two steps.
func (b *Bookings) diesBetween(r int, may bool) []step[world] {
	if !b.Dies || !may {
		return nil
	}
	return []step[world]{{label: b.name(r) + " loses its gate", local: func(w *world) []string {
		w.requests[r].phase, w.requests[r].step = dead, 0
		return nil
	}}}
}

// lapses notes holds that have gone with a tick.
func (b *Bookings) lapses(w *world, before, after *state) {
	for r := range b.Requests {
		w.ttl[r] = max(0, w.ttl[r]-1)
		if before.hold(int8(r)).Open() && after.hold(int8(r)) == decision.NoHold {
			w.lapsed[r] = true
		}
	}
}
