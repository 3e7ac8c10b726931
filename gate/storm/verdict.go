package storm

import "fmt"

// State is how an assertion ended.
type State string

const (
	Held      State = "held"
	Broken    State = "broken"
	Undecided State = "undecided" // the storm was stopped before it could tell
)

// Verdict is an assertion on a report and how it ended.
type Verdict struct {
	Assertion string `json:"assertion"`
	State     State  `json:"state"`
	Found     int    `json:"found"` // what was counted for it
	Note      string `json:"note,omitempty"`
}

// String is one line such as "expect 100 successes: broken, 103".
func (v Verdict) String() string {
	s := fmt.Sprintf("%s: %s, %d", v.Assertion, v.State, v.Found)
	if v.Note != "" {
		s += " (" + v.Note + ")"
	}
	return s
}

// ExpectSuccesses asserts exactly want distinct successes.
func (r *Report) ExpectSuccesses(want int) Verdict {
	v := Verdict{Assertion: fmt.Sprintf("expect %d successes", want), State: Held, Found: len(r.Successes)}
	switch {
	case v.Found > want:
		v.State = Broken
	case r.StoppedBy != "":
		v.State = Undecided
	case v.Found < want:
		v.State = Broken
	}
	return v
}

// ExpectNo5xx asserts that no answer has a status of 500 to 599. Requests
// without an answer are not counted; the note tells of them.
func (r *Report) ExpectNo5xx() Verdict {
	v := r.expectNone("expect no 5xx", r.Status5xx())
	if n := r.TransportErrors(); n > 0 {
		v.Note = fmt.Sprintf("%d transport errors are not counted", n)
	}
	return v
}

// ExpectEqualTwins asserts that no pair of twins that was answered below 500
// got different answers.
func (r *Report) ExpectEqualTwins() Verdict {
	v := r.expectNone("expect equal twins", r.Twins.Differed)
	v.Note = fmt.Sprintf("of %d pairs, %d not compared", r.Twins.Pairs, r.Twins.NotCompared)
	return v
}

// ExpectCapacity asserts that no slot has more successes than seats, where the
// report knows how many it has.
func (r *Report) ExpectCapacity() Verdict {
	over, slots := 0, 0
	for _, s := range r.Sales() {
		if s.Oversold > 0 {
			over += s.Oversold
			slots++
		}
	}
	v := r.expectNone(fmt.Sprintf("expect at most %d successes in a slot", r.Capacity), over)
	if over > 0 {
		v.Note = "in " + counted(slots, "slot")
	}
	return v
}

func (r *Report) expectNone(assertion string, found int) Verdict {
	v := Verdict{Assertion: assertion, State: Held, Found: found}
	switch {
	case found > 0:
		v.State = Broken
	case r.StoppedBy != "":
		v.State = Undecided
	}
	return v
}
