package chaos

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// judge holds everything that is known of the storm against what is promised.
func (s *storm) judge() {
	s.t.Helper()
	calls := s.history.all()
	s.ledger = s.arena.ledger(s.history.epoch, s.first)
	terms := s.terms(calls)
	for _, fault := range slices.Concat(
		answerFaults(calls, terms),
		ledgerFaults(s.ledger, terms),
		toldFaults(calls, s.ledger),
	) {
		s.t.Error(fault)
	}
	for i := range gates {
		if lost := s.arena.status(i).Lost; lost > 0 {
			s.t.Errorf("gate %d lost %d settlements", i, lost)
		}
	}
	for _, sale := range s.sales() {
		s.judgeCounters(calls, sale)
		if sale.remain != seats-sale.booked {
			s.t.Errorf("lesson %d has %d left after %d bookings", sale.lesson, sale.remain, sale.booked)
		}
	}
	s.judgeOrder(calls, terms)
}

// judgeCounters compares what the store counts with the database, where the counters
// are all that the gates know (rest has done so where they follow truth): they may
// differ by what nobody heard the end of, and by cancels that no gate could tell the hold
// of.
func (s *storm) judgeCounters(calls []call, sale sale) {
	s.t.Helper()
	slot, found := s.slot(sale.lesson)
	if !found || s.plan.truth || slot.Capacity == nil || s.nemesis.forgot || s.nemesis.restarted {
		return
	}
	unheard := 0
	for i, c := range calls {
		if c.lesson == sale.lesson && (c.verdict() == unknown || c.verdict() == cancelled && astray(calls[:i+1])) {
			unheard++
		}
	}
	if difference := int(slot.Confirmed+slot.Held) - sale.booked; max(difference, -difference) > unheard {
		s.t.Errorf("lesson %d has %d bookings, with %d calls unanswered; its slot says %v %v", sale.lesson, sale.booked, unheard, slot, slot.Holds)
	}
}

// astray tells whether the last of these calls, a cancel, may have left its hold: without
// truth nobody tells the store which one is meant by a cancel that passes while it is away.
// Nor can a later cancel of that student there: the hold that was left is one of two. Nor
// one, by a gate that has its store, of a booking that another has not told it of yet.
func astray(calls []call) bool {
	last := calls[len(calls)-1]
	return slices.ContainsFunc(calls, func(c call) bool {
		return c.mode == "degraded" && c.lesson == last.lesson && c.student == last.student &&
			(c.verdict() == cancelled || c.verdict() == booked)
	})
}

// terms are what the combination of this storm promises.
func (s *storm) terms(calls []call) terms {
	t := terms{seats: seats, most: seats, forgetful: s.nemesis.forgot}
	degraded := slices.ContainsFunc(calls, func(c call) bool { return c.mode == "degraded" && c.decision != "store-down" })
	t.forgetful = t.forgetful || degraded
	if s.plan.constraints {
		return t
	}
	switch {
	case s.nemesis.forgot, degraded && s.plan.onStoreFailure == "pass":
		// Nobody knows what is sold, or asks: the backend is the bound.
		t.most, t.twice = math.MaxInt, true
	case degraded && s.plan.onStoreFailure == "local":
		// Each gate may sell its share of what it last knew to be left, in each
		// outage, and knows only its own students.
		most := float64(share * seats) // of one gate in one outage
		t.most += gates * max(1, len(s.nemesis.troubles)) * int(most)
		t.twice = true
	}
	return t
}

// judgeOrder asks porcupine whether the answers have an order in which each is right.
func (s *storm) judgeOrder(calls []call, terms terms) {
	s.t.Helper()
	p := patience{hold: forever, look: forever, troubles: s.nemesis.troubles, repeats: s.plan.rejectCache}
	if !s.plan.keepUnknown {
		p.hold = holdTTL + 3*time.Second
	}
	if s.plan.truth {
		p.look, p.twice = 3*time.Second, lag+hot+twiceSlack
	}
	for _, c := range calls {
		if c.mode == "degraded" || c.decision == "store-down" {
			p.troubles = append(p.troubles, window{c.began, c.ended + aftermath})
		}
	}
	if s.nemesis.forgot {
		p.forgot = s.nemesis.troubles
	}
	if s.nemesis.forgot && s.nemesis.restarted {
		// Bookings are told again to a store that came back empty, by a gate that never
		// heard of their cancellation: the one that did has been restarted.
		p.troubles = append(p.troubles, window{0, forever})
	}
	operations, err := p.operations(calls)
	if err != nil {
		s.t.Fatal(err)
	}
	model := slotModel(terms)
	for _, lesson := range byLesson(operations) {
		began := time.Now()
		result, info := porcupine.CheckOperationsVerbose(model, lesson, time.Minute)
		switch result {
		case porcupine.Illegal:
			s.t.Errorf("lesson %d: no order of these answers is right:%s", lesson[0].Input.(ask).lesson, stuck(terms, lesson, info))
		case porcupine.Unknown:
			s.t.Logf("lesson %d: undecided after %v", lesson[0].Input.(ask).lesson, time.Since(began).Round(time.Second))
		}
	}
}

// stuck tells how far an order could be found, what it left of the seats, and which
// answer then had no place: the minimal trace is every change before it.
func stuck(t terms, lesson []porcupine.Operation, info porcupine.LinearizationInfo) string {
	var longest []porcupine.Operation
	for _, partial := range info.PartialLinearizationsOperations()[0] {
		if len(partial) > len(longest) {
			longest = partial
		}
	}
	var state shelf
	placed := map[*answer]bool{}
	names := map[int]string{}
	var b strings.Builder
	for _, operation := range longest {
		asked, told := operation.Input.(ask), operation.Output.(*answer)
		placed[told] = true
		before := state.seats
		t.step(&state, asked, told)
		if c, isCall := operation.Metadata.(call); isCall {
			names[asked.student] = c.student
			if state.seats != before {
				fmt.Fprintf(&b, "\n  %v", c)
			}
		}
	}
	fmt.Fprint(&b, "\nbooked then:")
	for student, n := range state.seats {
		if n > 0 {
			fmt.Fprintf(&b, " %s×%d", names[student], n)
		}
	}
	var first porcupine.Operation
	for _, operation := range lesson {
		if !placed[operation.Output.(*answer)] && (first.Output == nil || operation.Return < first.Return) {
			first = operation
		}
	}
	fmt.Fprintf(&b, "\nno place for:\n  %v [%s]", first.Metadata, describe(first.Input.(ask), first.Output.(*answer)))
	return b.String()
}

// write puts every call and the database's history into a file.
func (s *storm) write() (path string, err error) {
	path = filepath.Join(s.t.ArtifactDir(), fmt.Sprintf("seed-%d.txt", s.plan.seed))
	text := fmt.Sprintf("%v\n\ncalls:%s\n\ndatabase:%s\n", s.plan, say(s.history.all()), say(s.ledger))
	return path, os.WriteFile(path, []byte(text), 0o600)
}
