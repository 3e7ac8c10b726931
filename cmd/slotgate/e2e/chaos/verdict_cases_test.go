package chaos

import (
	"strings"
	"testing"
	"time"
)

// told makes a booked answer one about a booking.
func told(booking int64, body string) func(*call) {
	return func(c *call) { c.booking, c.body, c.told, c.mode = booking, body, c.student, "normal" }
}

func TestAnswersThatAreWrong(t *testing.T) {
	for name, try := range map[string]struct {
		want  string // part of the fault; "" none
		scene func(*scene)
	}{
		"a replay to whom it was told": {"", func(s *scene) {
			s.add(0, 10, book, "ann", booked, key("a"), told(7, "seven"))
			s.add(20, 30, book, "ann", replayed, key("a"), told(7, "seven"))
		}},
		"a replay of what was lost on its way": {"", func(s *scene) {
			s.add(0, 10, book, "ann", unknown, key("a"))
			s.add(20, 30, book, "ann", replayed, key("a"), told(7, "seven"))
		}},
		"a replay to somebody else": {"its caller was never told", func(s *scene) {
			s.add(0, 10, book, "ann", booked, key("a"), told(7, "seven"))
			s.add(20, 30, book, "ann", replayed, key("a"), told(7, "seven"), principal("eve"))
		}},
		"a replay of another key's booking": {"its caller was never told", func(s *scene) {
			s.add(0, 10, book, "ann", booked, key("a"), told(7, "seven"))
			s.add(20, 30, book, "ann", booked, key("b"), told(8, "eight"))
			s.add(40, 50, book, "ann", replayed, key("b"), told(7, "seven"))
		}},
		"a replay that is not what was told": {"not what was told", func(s *scene) {
			s.add(0, 10, book, "ann", booked, key("a"), told(7, "seven"))
			s.add(20, 30, book, "ann", replayed, key("a"), told(7, "seven!"))
		}},
		"one key booked twice": {"one key booked twice", func(s *scene) {
			s.add(0, 10, book, "ann", booked, key("a"), told(7, "seven"))
			s.add(20, 30, book, "ann", booked, key("a"), told(8, "eight"))
		}},
		"the booking of another student": {"the booking of another student", func(s *scene) {
			s.add(0, 10, book, "ann", booked, told(7, "seven"), func(c *call) { c.told = "bob" })
		}},
		"a 500 of the gate": {"no such answer", func(s *scene) {
			s.add(0, 10, book, "ann", silent, func(c *call) { c.status, c.mode = 500, "normal" })
		}},
		"a 500 of the backend": {"", func(s *scene) {
			s.add(0, 10, book, "ann", silent, func(c *call) { c.status, c.mode, c.outcome = 500, "normal", "unknown" })
		}},
		"somebody's session": {"the session of", func(s *scene) {
			s.add(0, 10, book, "ann", booked, told(7, "seven"), session("x"))
			s.add(0, 10, book, "bob", booked, told(8, "eight"), session("x"))
		}},
		"a session in a replay": {"a replay with somebody's session", func(s *scene) {
			s.add(0, 10, book, "ann", booked, key("a"), told(7, "seven"))
			s.add(20, 30, book, "ann", replayed, key("a"), told(7, "seven"), session("x"))
		}},
		"an answer without Gate-Mode": {"without Gate-Decision or Gate-Mode", func(s *scene) {
			s.add(0, 10, book, "ann", booked)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var s scene
			try.scene(&s)
			expectFault(t, answerFaults(s, one), try.want)
		})
	}
}

func session(text string) func(*call) { return func(c *call) { c.session = text } }

// expectFault checks that there are faults exactly if one is wanted, and that it is among
// them.
func expectFault(t *testing.T, faults []string, want string) {
	t.Helper()
	all := strings.Join(faults, "\n")
	if (want == "") != (len(faults) == 0) || !strings.Contains(all, want) {
		t.Errorf("want a fault with %q, got:\n%s", want, all)
	}
}

func TestBookingsThatShouldNotBe(t *testing.T) {
	ann := entry{at: 5 * time.Millisecond, change: 1, booking: 7, lesson: 1, student: "ann"}
	bob := entry{at: 6 * time.Millisecond, change: 1, booking: 8, lesson: 1, student: "bob"}
	gone := entry{at: 7 * time.Millisecond, change: -1, booking: 7, lesson: 1, student: "ann"}
	again := entry{at: 8 * time.Millisecond, change: 1, booking: 9, lesson: 1, student: "ann"}
	two := terms{seats: 2, most: 2}
	for name, try := range map[string]struct {
		want   string
		terms  terms
		ledger []entry
	}{
		"as many as there are seats":     {"", two, []entry{ann, bob}},
		"one more":                       {"oversold", one, []entry{ann, bob}},
		"one after the other":            {"", one, []entry{ann, gone, bob}},
		"a student twice":                {"a student twice", two, []entry{ann, again}},
		"a student again":                {"", two, []entry{ann, gone, again}},
		"a student twice, where allowed": {"", terms{seats: 2, most: 2, twice: true}, []entry{ann, again}},
	} {
		t.Run(name, func(t *testing.T) { expectFault(t, ledgerFaults(try.ledger, try.terms), try.want) })
	}

	var s scene
	s.add(0, 10, book, "ann", booked, told(7, "seven"))
	expectFault(t, toldFaults(s, []entry{ann}), "")
	expectFault(t, toldFaults(s, nil), "the database does not have")
	expectFault(t, toldFaults(s, []entry{ann, bob}), "nobody was told of")
	s.add(0, 10, book, "bob", unknown)
	expectFault(t, toldFaults(s, []entry{ann, bob}), "")
}
