package booking

import (
	"maps"
	"sync"
)

// Stats counts what the API has done since it was opened or reset.
type Stats struct {
	Requests struct {
		Book     int64 `json:"book"`
		Cancel   int64 `json:"cancel"`
		Pay      int64 `json:"pay"`
		Lesson   int64 `json:"lesson"`   // reads of a lesson
		Bookings int64 `json:"bookings"` // reads of who has booked it
		Other    int64 `json:"other"`    // no route
	} `json:"requests"` // as they arrive
	Answers       map[string]int64 `json:"answers"` // "ok" or the name of the failure; as they are given
	Bookings      int64            `json:"bookings"`
	Cancellations int64            `json:"cancellations"`
	Statements    int64            `json:"statements"` // SQL, without BEGIN, COMMIT and ROLLBACK
	LockWaits     int64            `json:"lock_waits"` // for a row, or for the one writer on SQLite
	Conflicts     struct {
		Constraint    int64 `json:"constraint"`    // refused by CHECK or UNIQUE
		Version       int64 `json:"version"`       // optimistic writes that came too late
		Serialization int64 `json:"serialization"` // serialization failures and deadlocks
	} `json:"conflicts"`
	InFlight struct {
		Now          int `json:"now"`            // bookings at work
		Max          int `json:"max"`            // most at once
		MaxPerLesson int `json:"max_per_lesson"` // most at once for any one lesson
	} `json:"in_flight"`
}

// recorder collects Stats. Safe for concurrent use.
type recorder struct {
	mu        sync.Mutex
	stats     Stats
	perLesson map[int64]int // bookings at work; no entry for none
}

func newRecorder() *recorder {
	r := &recorder{perLesson: make(map[int64]int)}
	r.stats.Answers = make(map[string]int64)
	return r
}

// snapshot returns a copy that shares nothing.
func (r *recorder) snapshot() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.Answers = maps.Clone(s.Answers)
	return s
}

// reset starts from zero, except that bookings at work stay at work.
func (r *recorder) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.stats.InFlight.Now
	r.stats = Stats{Answers: make(map[string]int64)}
	r.stats.InFlight.Now, r.stats.InFlight.Max = now, now
	for _, n := range r.perLesson {
		r.stats.InFlight.MaxPerLesson = max(r.stats.InFlight.MaxPerLesson, n)
	}
}

// count changes the counters in one step.
func (r *recorder) count(change func(*Stats)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.stats)
}

func (r *recorder) statement()             { r.count(func(s *Stats) { s.Statements++ }) }
func (r *recorder) lockWait()              { r.count(func(s *Stats) { s.LockWaits++ }) }
func (r *recorder) constraintConflict()    { r.count(func(s *Stats) { s.Conflicts.Constraint++ }) }
func (r *recorder) versionConflict()       { r.count(func(s *Stats) { s.Conflicts.Version++ }) }
func (r *recorder) serializationConflict() { r.count(func(s *Stats) { s.Conflicts.Serialization++ }) }

// begin notes that a booking of a lesson is at work until done is called.
func (r *recorder) begin(lesson int64) (done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	flight := &r.stats.InFlight
	r.perLesson[lesson]++
	flight.Now++
	flight.Max = max(flight.Max, flight.Now)
	flight.MaxPerLesson = max(flight.MaxPerLesson, r.perLesson[lesson])
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.stats.InFlight.Now--
		if r.perLesson[lesson]--; r.perLesson[lesson] == 0 {
			delete(r.perLesson, lesson)
		}
	}
}
