package chaos

import (
	"fmt"
	"hash/maphash"
	"math/bits"
	"strings"

	"github.com/anishathalye/porcupine"
)

// maxStudents and maxKeys bound what one lesson's history may hold, so that a state is
// a small comparable value.
const (
	maxStudents = 32
	maxKeys     = 256
)

// shelf is a lesson as the model sees it: who has how many of its seats, and which keys
// have booked.
type shelf struct {
	seats [maxStudents]uint8
	done  [maxKeys / 64]uint64
	// closed: the storm is over. What has not been done by then never was.
	closed bool
}

func (s *shelf) total() (n int) {
	for _, seats := range s.seats {
		n += int(seats)
	}
	return n
}

// crowd is who may be holding seats that are not booked.
type crowd struct {
	who   uint32 // students, a bit each
	twice int    // seats that may have been counted twice
}

// with counts the seats that are booked or that one of the crowd may be holding: a
// student holds one at most.
func (s *shelf) with(c crowd) int {
	n := bits.OnesCount32(c.who) + c.twice
	for student, seats := range s.seats {
		if n += int(seats); seats > 0 && c.who&(1<<student) != 0 {
			n--
		}
	}
	return n
}

func (s *shelf) isDone(key int) bool { return s.done[key/64]&(1<<(key%64)) != 0 }

// ask is what an operation of the model is about, numbered within the lesson.
type ask struct {
	lesson       int
	action       action
	student, key int
}

// answer is what it was told, with whatever else would justify a refusal.
type answer struct {
	verdict verdict
	// held is what may have been held beside what was booked, for each moment of the
	// call.
	held []crowd
	// remembered: the gate may not know yet that the student's booking is cancelled,
	// or speaks of the key.
	remembered bool
}

// terms are what may be expected of a lesson in one storm.
type terms struct {
	seats int  // of the lesson
	most  int  // bookings of it that may stand at once; more than seats where that is declared
	twice bool // a student may be booked more than once
	// forgetful: the store lost what it knew, or was not asked for a while.
	forgetful bool
}

// slotModel is a lesson as a bounded counter of bookings by student:
//
//	booked     takes a seat of a student who had none, while there is one
//	replayed   follows the booking of its key
//	settled    follows it too, or the student's booking by another key under the same
//	           hold (step 6 of decide)
//	duplicate  the student has a seat
//	sold out   every seat is booked or held at one moment of the call
//	cancelled  gives the student's seat back; absent finds none
//
// An unknown outcome is an operation without end: it takes effect at some moment after
// its call, or never, which is the same as after the close that ends each history. (That
// it must take effect before keeps the number of orders to try small.) Lessons are
// independent of each other.
func slotModel(t terms) porcupine.Model {
	return porcupine.Model{
		Partition: byLesson,
		Init:      func() any { return shelf{} },
		Step: func(state, input, output any) (bool, any) {
			s := state.(shelf)
			ok := t.step(&s, input.(ask), output.(*answer))
			return ok, s
		},
		Hash:              func(state any) uint64 { return maphash.Comparable(hashSeed, state.(shelf)) },
		DescribeOperation: func(input, output any) string { return describe(input.(ask), output.(*answer)) },
		DescribeState: func(state any) string {
			s := state.(shelf)
			return fmt.Sprintf("%d booked", s.total())
		},
	}
}

var hashSeed = maphash.MakeSeed()

// step changes s as the operation does, and reports whether its answer is right.
func (t terms) step(s *shelf, a ask, told *answer) bool {
	free := s.total() < t.most && (t.twice || s.seats[a.student] == 0)
	has, had := s.seats[a.student] > 0, s.isDone(a.key)
	switch told.verdict {
	case booked:
		s.book(a)
		return free
	case closing:
		s.closed = true
		return true
	case unknown:
		switch {
		case s.closed:
			return true
		case a.action == book:
			s.book(a)
			return free
		}
		return s.cancel(a)
	case replayed:
		return had
	case settled:
		s.finish(a)
		return had || has || told.remembered
	case duplicate:
		return has || told.remembered
	case taken:
		return has
	case soldOut:
		for _, held := range told.held {
			if s.with(held) >= t.seats {
				return true
			}
		}
		return false
	case full:
		return s.total() >= t.seats
	case cancelled:
		return s.cancel(a)
	case absent:
		return !has
	}
	panic("no step for " + string(told.verdict))
}

func (s *shelf) book(a ask) {
	s.seats[a.student]++
	s.finish(a)
}

func (s *shelf) finish(a ask) { s.done[a.key/64] |= 1 << (a.key % 64) }

func (s *shelf) cancel(a ask) (found bool) {
	if found = s.seats[a.student] > 0; found {
		s.seats[a.student]--
	}
	return found
}

func byLesson(history []porcupine.Operation) [][]porcupine.Operation {
	var lessons [][]porcupine.Operation
	index := map[int]int{}
	for _, operation := range history {
		lesson := operation.Input.(ask).lesson
		i, found := index[lesson]
		if !found {
			i = len(lessons)
			index[lesson] = i
			lessons = append(lessons, nil)
		}
		lessons[i] = append(lessons[i], operation)
	}
	return lessons
}

func describe(a ask, told *answer) string {
	text := fmt.Sprintf("%s student #%d key #%d → %s", a.action, a.student, a.key, told.verdict)
	if told.verdict == soldOut {
		var most int
		for _, held := range told.held {
			most = max(most, bits.OnesCount32(held.who)+held.twice)
		}
		text += fmt.Sprintf(" (at most %d held)", most)
	}
	return strings.TrimSpace(text)
}
