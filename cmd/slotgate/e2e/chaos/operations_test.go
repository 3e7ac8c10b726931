package chaos

import (
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// window is a stretch of a storm.
type window struct{ from, to time.Duration }

func (w window) meets(from, to time.Duration) bool { return w.from <= to && from <= w.to }

// patience is how long a gate may go by what it last knew.
type patience struct {
	// hold is how long an unanswered booking may keep a seat, forever where only an
	// operator gives it back.
	hold time.Duration
	// look is how long a cancellation that nobody told the gate of may go unnoticed.
	look time.Duration
	// twice is for how long a look may count a seat twice, as it was taken while the look
	// was made: in the database and among what the database may not show yet (design 5).
	// 0: nobody looks.
	twice time.Duration
	// repeats is for how long a gate may say that a lesson is sold out after another gate
	// has seen a seat come free (reject_cache): it hears of that, but perhaps a bit later.
	repeats time.Duration
	// troubles are when the store, or what lies before it, did not work. What was
	// settled then may be known to nobody until the end of the storm.
	troubles []window
	// forgot are when the store may have lost what it had: each gate tells it again what it
	// settled lately, for itself. Where one told it of a booking, it stands until the other
	// has told it of its cancellation.
	forgot []window
}

// belief is a time in which the gate may take a student for one who has a seat.
type belief struct {
	window
	student int
	booked  bool          // it may take it for a booking, not only for a hold
	twice   time.Duration // until when the seat may count twice
}

// beliefs lists when the gate may have thought of seats as taken that are not booked.
func (p patience) beliefs(calls []call, student func(call) int) (list []belief) {
	for _, c := range calls {
		b := belief{window: window{c.began, c.ended}, student: student(c), booked: c.action == cancel}
		switch v := c.verdict(); {
		case c.unsent, c.action == cancel && (v == silent || v == absent):
			continue
		case c.action == book && (v == replayed || v == settled || v == duplicate || v == soldOut):
			continue
		case slices.ContainsFunc(p.troubles, func(w window) bool { return w.meets(c.began, c.ended) }):
			b.to = forever
		case v == unknown && c.action == book:
			b.to = after(c.ended, p.hold)
		case v == unknown:
			b.to = after(c.ended, p.look)
		}
		if p.twice > 0 { // a hold that stays is counted beside the booking that the database may show
			b.twice = max(c.ended+p.twice, b.to)
		}
		list = append(list, b)
		if c.action == cancel {
			for _, w := range p.forgot {
				if c.ended < w.to {
					list = append(list, belief{window: w, student: b.student, booked: true})
				}
			}
		}
	}
	return list
}

func after(t, d time.Duration) time.Duration {
	if d == forever {
		return forever
	}
	return t + d
}

// operations are the calls of all lessons as the model checks them.
func (p patience) operations(calls []call) ([]porcupine.Operation, error) {
	var operations []porcupine.Operation
	for _, lesson := range lessonsOf(calls) {
		own := slices.DeleteFunc(slices.Clone(calls), func(c call) bool { return c.lesson != lesson })
		ops, err := p.lessonOperations(lesson, own)
		if err != nil {
			return nil, fmt.Errorf("lesson %d: %w", lesson, err)
		}
		operations = append(operations, ops...)
	}
	return operations, nil
}

func lessonsOf(calls []call) (lessons []int) {
	for _, c := range calls {
		if !slices.Contains(lessons, c.lesson) {
			lessons = append(lessons, c.lesson)
		}
	}
	slices.Sort(lessons)
	return lessons
}

func (p patience) lessonOperations(lesson int, calls []call) (operations []porcupine.Operation, err error) {
	students, keys := numbering{}, numbering{}
	for _, c := range calls {
		students.of(c.student)
		keys.of(c.key)
	}
	if len(students) > maxStudents || len(keys) > maxKeys {
		return nil, fmt.Errorf("%d students and %d keys are more than the model has room for", len(students), len(keys))
	}
	var last time.Duration
	beliefs := p.beliefs(calls, func(c call) int { return students.of(c.student) })
	for _, c := range calls {
		last = max(last, c.ended)
		told := &answer{verdict: c.verdict()}
		student := students.of(c.student)
		from, end := c.began, c.ended
		switch told.verdict {
		case silent:
			continue
		case unknown:
			end = forever
		case soldOut:
			from = max(0, c.began-p.repeats)
			told.held = holders(beliefs, window{from, c.ended})
		case duplicate, settled:
			told.remembered = c.principal != c.student || slices.ContainsFunc(beliefs, func(b belief) bool {
				return b.booked && b.student == student && b.meets(c.began, c.ended)
			})
		}
		operations = append(operations, porcupine.Operation{
			ClientId: c.client, Call: int64(from), Return: int64(end),
			Input: ask{lesson, c.action, student, keys.of(c.key)}, Output: told, Metadata: c,
		})
	}
	return append(operations, porcupine.Operation{
		Call: int64(last) + 1, Return: int64(forever),
		Input: ask{lesson: lesson}, Output: &answer{verdict: closing},
	}), nil
}

// holders are what the gate may have counted as held, at each moment of the window at
// which somebody began to.
func holders(beliefs []belief, of window) (held []crowd) {
	moments := []time.Duration{of.from}
	for _, b := range beliefs {
		if of.from < b.from && b.from <= of.to {
			moments = append(moments, b.from)
		}
	}
	for _, moment := range moments {
		var at crowd
		for _, b := range beliefs {
			if b.meets(moment, moment) {
				at.who |= 1 << b.student
			}
			if b.from <= moment && moment <= b.twice {
				at.twice++
			}
		}
		if !slices.Contains(held, at) {
			held = append(held, at)
		}
	}
	return held
}

// numbering gives names numbers from 0.
type numbering map[string]int

func (n numbering) of(name string) int {
	number, found := n[name]
	if !found {
		number = len(n)
		n[name] = number
	}
	return number
}
