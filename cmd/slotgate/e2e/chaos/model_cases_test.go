package chaos

import (
	"fmt"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// scene builds a history by hand: each line is a call of one lesson, in milliseconds.
type scene []call

func (s *scene) add(began, ended int, action action, student string, v verdict, changes ...func(*call)) {
	c := call{
		client: len(*s), action: action, lesson: 1, student: student, principal: student,
		began: time.Duration(began) * time.Millisecond, ended: time.Duration(ended) * time.Millisecond,
	}
	if action == book {
		c.key = fmt.Sprintf("key-%d", len(*s))
	}
	c.says(v)
	for _, change := range changes {
		change(&c)
	}
	*s = append(*s, c)
}

// says makes the answer one that is read as v.
func (c *call) says(v verdict) {
	c.status, c.decision = 409, "admitted"
	switch v {
	case booked:
		c.status, c.outcome, c.booking = 201, "booked", 7
	case replayed:
		c.status, c.decision, c.outcome = 201, "replayed", "booked"
	case settled:
		c.status, c.decision, c.outcome = 200, "replayed", "booked"
	case duplicate:
		c.decision = "duplicate"
	case taken:
		c.outcome = "duplicate"
	case soldOut:
		c.decision = "sold-out"
	case full:
		c.outcome = "sold_out"
	case cancelled:
		c.status, c.outcome = 200, "done"
	case absent:
		c.status, c.outcome = 404, "refused"
	case silent:
		c.decision = "store-down"
	case unknown:
		c.status, c.decision = 0, ""
	}
}

func key(key string) func(*call) { return func(c *call) { c.key = key } }

func principal(name string) func(*call) { return func(c *call) { c.principal = name } }

func lesson(n int) func(*call) { return func(c *call) { c.lesson = n } }

func check(t *testing.T, terms terms, p patience, calls []call) porcupine.CheckResult {
	t.Helper()
	for _, c := range calls {
		if v := c.verdict(); c.status == 0 && v != unknown {
			t.Fatalf("%v is read as %s", c, v)
		}
	}
	operations, err := p.operations(calls)
	if err != nil {
		t.Fatal(err)
	}
	return porcupine.CheckOperationsTimeout(slotModel(terms), operations, time.Minute)
}

// one is a lesson of one seat that is never sold twice, and short of patience.
var (
	one   = terms{seats: 1, most: 1}
	brief = patience{hold: time.Second, look: time.Second}
)

func TestModelAllows(t *testing.T) {
	for name, try := range map[string]struct {
		terms terms
		scene func(*scene)
	}{
		"one seat, two who want it": {one, func(s *scene) {
			s.add(0, 10, book, "ann", booked)
			s.add(5, 6, book, "bob", soldOut)
			s.add(20, 30, book, "bob", soldOut)
		}},
		"a retry that was booked before": {one, func(s *scene) {
			s.add(0, 10, book, "ann", booked, key("a"))
			s.add(20, 30, book, "ann", replayed, key("a"))
			s.add(40, 50, book, "ann", duplicate)
		}},
		"a replay outlives the booking": {one, func(s *scene) {
			s.add(0, 10, book, "ann", booked, key("a"))
			s.add(20, 30, cancel, "ann", cancelled)
			s.add(40, 50, book, "bob", booked)
			s.add(60, 70, book, "ann", replayed, key("a"))
		}},
		"a seat held by one who was refused": {one, func(s *scene) {
			s.add(0, 30, book, "ann", silent)
			s.add(10, 20, book, "bob", soldOut)
			s.add(40, 50, book, "bob", booked)
		}},
		"an unanswered booking that was done, and told of by a retry": {one, func(s *scene) {
			s.add(0, 10, book, "ann", unknown, key("a"))
			s.add(20, 30, book, "bob", full)
			s.add(40, 50, book, "ann", replayed, key("a"))
		}},
		"an unanswered booking that was not done": {one, func(s *scene) {
			s.add(0, 10, book, "ann", unknown)
			s.add(20, 30, book, "bob", booked)
		}},
		"an unanswered booking that was done late": {one, func(s *scene) {
			s.add(0, 10, book, "ann", unknown)
			s.add(20, 30, book, "bob", booked)
			s.add(40, 50, cancel, "bob", cancelled)
			s.add(60, 70, book, "bob", full)
		}},
		"an unanswered booking keeps its seat for a while": {one, func(s *scene) {
			s.add(0, 10, book, "ann", unknown)
			s.add(900, 910, book, "bob", soldOut)
			s.add(1900, 1910, book, "bob", booked)
		}},
		"an unanswered cancel that was done": {one, func(s *scene) {
			s.add(0, 10, book, "ann", booked)
			s.add(20, 30, cancel, "ann", unknown)
			s.add(40, 50, book, "bob", booked)
		}},
		"an unanswered cancel that nobody told the gate of": {one, func(s *scene) {
			s.add(0, 10, book, "ann", booked)
			s.add(20, 30, cancel, "ann", unknown)
			s.add(40, 50, cancel, "ann", absent)
			s.add(60, 70, book, "bob", soldOut)
			s.add(80, 90, book, "ann", duplicate)
		}},
		"an unanswered booking whose hold another key went on under": {one, func(s *scene) {
			s.add(0, 10, book, "ann", unknown, key("a"))
			s.add(20, 30, book, "ann", booked, key("b"))
			s.add(40, 50, book, "ann", settled, key("a"))
			s.add(60, 70, cancel, "ann", cancelled)
			s.add(80, 90, book, "bob", booked)
			s.add(100, 110, book, "ann", settled, key("a"))
		}},
		"the key of another is done": {one, func(s *scene) {
			s.add(0, 10, book, "ann", booked, key("a"))
			s.add(20, 30, cancel, "ann", cancelled)
			s.add(40, 50, book, "ann", duplicate, key("a"), principal("eve"))
		}},
		"two at once under a bound of two": {terms{seats: 1, most: 2}, func(s *scene) {
			s.add(0, 10, book, "ann", booked)
			s.add(0, 10, book, "bob", booked)
		}},
		"lessons do not count for each other": {one, func(s *scene) {
			s.add(0, 10, book, "ann", booked)
			s.add(20, 30, book, "ann", booked, lesson(2))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var s scene
			try.scene(&s)
			if got := check(t, try.terms, brief, s); got != porcupine.Ok {
				t.Errorf("%s", got)
			}
		})
	}
}

func TestModelForbids(t *testing.T) {
	for name, try := range map[string]struct {
		terms terms
		scene func(*scene)
	}{
		"oversold by one": {terms{seats: 2, most: 2}, func(s *scene) {
			s.add(0, 10, book, "ann", booked)
			s.add(0, 10, book, "bob", booked)
			s.add(0, 10, book, "cat", booked)
		}},
		"oversold by one, with an unknown outcome": {one, func(s *scene) {
			s.add(0, 10, book, "ann", unknown, key("a"))
			s.add(20, 30, book, "bob", booked)
			s.add(40, 50, book, "ann", replayed, key("a"))
		}},
		"oversold beyond the bound": {terms{seats: 1, most: 2}, func(s *scene) {
			s.add(0, 10, book, "ann", booked)
			s.add(0, 10, book, "bob", booked)
			s.add(20, 30, book, "cat", booked)
		}},
		"the same student twice": {terms{seats: 2, most: 2}, func(s *scene) {
			s.add(0, 10, book, "ann", booked)
			s.add(20, 30, book, "ann", booked)
		}},
		"a replay of nothing": {one, func(s *scene) {
			s.add(0, 10, book, "ann", replayed, key("a"))
		}},
		"a replay before its booking": {one, func(s *scene) {
			s.add(0, 10, book, "ann", replayed, key("a"))
			s.add(20, 30, book, "ann", booked, key("a"))
		}},
		"a replay of the booking of another key": {one, func(s *scene) {
			s.add(0, 10, book, "ann", booked, key("a"))
			s.add(20, 30, book, "ann", replayed, key("b"))
		}},
		"settled without any booking": {one, func(s *scene) {
			s.add(0, 10, book, "ann", silent, key("a"))
			s.add(20, 30, book, "ann", settled, key("a"))
		}},
		"sold out while a seat is free for long": {terms{seats: 2, most: 2}, func(s *scene) {
			s.add(0, 10, book, "ann", booked)
			s.add(20, 5000, book, "bob", soldOut)
		}},
		"sold out long after an unanswered booking": {one, func(s *scene) {
			s.add(0, 10, book, "ann", unknown)
			s.add(2000, 2010, book, "bob", booked)
			s.add(2020, 2030, cancel, "bob", cancelled)
			s.add(2040, 2050, book, "cat", soldOut)
			s.add(2060, 2070, cancel, "ann", absent)
			s.add(2080, 2090, book, "ann", booked)
		}},
		"sold out after the cancel was answered": {one, func(s *scene) {
			s.add(0, 10, book, "ann", booked)
			s.add(20, 30, cancel, "ann", cancelled)
			s.add(40, 50, book, "bob", soldOut)
		}},
		"one holder counted twice": {terms{seats: 2, most: 2}, func(s *scene) {
			s.add(0, 10, book, "ann", booked)
			s.add(20, 60, book, "ann", taken)
			s.add(30, 40, book, "bob", soldOut)
		}},
		"holders at different moments": {terms{seats: 2, most: 2}, func(s *scene) {
			s.add(0, 10, book, "ann", silent)
			s.add(20, 30, book, "bob", silent)
			s.add(5, 25, book, "cat", soldOut)
		}},
		"duplicate of nothing": {one, func(s *scene) {
			s.add(0, 10, book, "ann", duplicate)
		}},
		"the backend full with a seat free": {one, func(s *scene) {
			s.add(0, 100, book, "ann", silent)
			s.add(10, 20, book, "bob", full)
		}},
		"cancelled twice": {one, func(s *scene) {
			s.add(0, 10, book, "ann", booked)
			s.add(20, 30, cancel, "ann", cancelled)
			s.add(20, 30, cancel, "ann", cancelled)
		}},
		"nothing to cancel of what is booked": {one, func(s *scene) {
			s.add(0, 10, book, "ann", booked)
			s.add(20, 30, cancel, "ann", absent)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var s scene
			try.scene(&s)
			if got := check(t, try.terms, brief, s); got != porcupine.Illegal {
				t.Errorf("%s", got)
			}
		})
	}
}

// TestTroubleExcuses: what was settled while the store was away may be unknown to the
// gates, but makes no seat.
func TestTroubleExcuses(t *testing.T) {
	p := brief
	p.troubles = []window{{15 * time.Millisecond, 35 * time.Millisecond}}
	var s scene
	s.add(0, 10, book, "ann", booked)
	s.add(20, 30, cancel, "ann", cancelled)
	s.add(40, 50, book, "bob", soldOut)
	if got := check(t, one, p, s); got != porcupine.Ok {
		t.Errorf("a cancel in trouble: %s", got)
	}
	s.add(60, 70, book, "cat", booked)
	s.add(60, 70, book, "dan", booked)
	if got := check(t, one, p, s); got != porcupine.Illegal {
		t.Errorf("oversold in trouble: %s", got)
	}
}

// TestALookMayCountASeatTwice: for as long as it takes to look again, the gate may say
// sold out too early, but no longer.
func TestALookMayCountASeatTwice(t *testing.T) {
	p := brief
	p.twice = 500 * time.Millisecond
	two := terms{seats: 2, most: 2}
	var s scene
	s.add(0, 10, book, "ann", booked)
	s.add(400, 410, book, "bob", soldOut)
	if got := check(t, two, p, s); got != porcupine.Ok {
		t.Errorf("before the next look: %s", got)
	}
	s.add(600, 610, book, "bob", soldOut)
	if got := check(t, two, p, s); got != porcupine.Illegal {
		t.Errorf("after it: %s", got)
	}
	s = scene{}
	s.add(0, 10, book, "ann", unknown)
	s.add(600, 610, book, "bob", soldOut)
	if got := check(t, two, p, s); got != porcupine.Ok {
		t.Errorf("while an unanswered hold stands beside its booking: %s", got)
	}
	s.add(1200, 1210, book, "bob", soldOut)
	if got := check(t, two, p, s); got != porcupine.Illegal {
		t.Errorf("when that hold has lapsed: %s", got)
	}
}

// TestACancelledBookingIsToldAgain: after a store forgot, one gate tells it of a booking and
// another, a moment later, of its cancellation.
func TestACancelledBookingIsToldAgain(t *testing.T) {
	p := patience{hold: time.Second, look: time.Second}
	forgot := p
	forgot.forgot = []window{{100 * time.Millisecond, 200 * time.Millisecond}}
	for name, refused := range map[string]func(s *scene, at int){
		"the student has it":    func(s *scene, at int) { s.add(at, at+10, book, "ann", duplicate) },
		"nothing is left of it": func(s *scene, at int) { s.add(at, at+10, book, "bob", soldOut) },
	} {
		var s scene
		s.add(0, 10, book, "ann", booked)
		s.add(20, 30, cancel, "ann", cancelled)
		refused(&s, 150)
		if got := check(t, one, forgot, s); got != porcupine.Ok {
			t.Errorf("%s, while the gates tell the store again: %s", name, got)
		}
		if got := check(t, one, p, s); got != porcupine.Illegal {
			t.Errorf("%s, of a store that forgot nothing: %s", name, got)
		}
		refused(&s, 300)
		if got := check(t, one, forgot, s); got != porcupine.Illegal {
			t.Errorf("%s, when they are done: %s", name, got)
		}
	}
}

// TestManyUnknowns: a history with more unknown outcomes than a storm should have is
// still judged, for what is right and for what is not.
func TestManyUnknowns(t *testing.T) {
	of := terms{seats: 5, most: 5}
	var s scene
	for i := range 60 {
		student := fmt.Sprint("s", i%20)
		switch {
		case i%5 == 0:
			s.add(i*10, i*10+5, book, student, unknown)
		case i%5 == 4:
			s.add(i*10, i*10+5, cancel, student, unknown)
		default:
			s.add(i*10, i*10+15, book, student, soldOut)
		}
	}
	keep := patience{hold: forever, look: forever}
	s[1].says(silent) // nobody has anything yet
	s[2].says(silent)
	s[3].says(silent)
	for i := range s {
		if s[i].verdict() == soldOut && i < 25 {
			s[i].says(silent)
		}
	}
	began := time.Now()
	if got := check(t, of, keep, s); got != porcupine.Ok {
		t.Errorf("%s", got)
	}
	s.add(700, 710, book, "u1", booked)
	for i := range 6 {
		s.add(720+i, 760, book, fmt.Sprint("v", i), booked)
	}
	if got := check(t, of, keep, s); got != porcupine.Illegal {
		t.Errorf("oversold: %s", got)
	}
	t.Logf("judged in %v", time.Since(began).Round(time.Millisecond))
}

// TestARejectMayBeRepeated: for reject_cache one gate may say sold out after another has
// cancelled, but no longer.
func TestARejectMayBeRepeated(t *testing.T) {
	p := brief
	p.repeats = 250 * time.Millisecond
	var s scene
	s.add(0, 10, book, "ann", booked)
	s.add(20, 30, cancel, "ann", cancelled)
	s.add(270, 280, book, "bob", soldOut)
	if got := check(t, one, p, s); got != porcupine.Ok {
		t.Errorf("within its time: %s", got)
	}
	s.add(290, 300, book, "bob", soldOut)
	if got := check(t, one, p, s); got != porcupine.Illegal {
		t.Errorf("after it: %s", got)
	}
	s = scene{}
	s.add(0, 10, book, "ann", booked)
	s.add(20, 30, cancel, "ann", cancelled)
	s.add(40, 50, book, "bob", booked)
	s.add(60, 70, cancel, "bob", cancelled)
	s.add(400, 410, book, "cat", soldOut)
	if got := check(t, one, p, s); got != porcupine.Illegal {
		t.Errorf("long after it: %s", got)
	}
}
