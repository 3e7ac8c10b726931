package storetest

import (
	"maps"
	"slices"
	"time"

	"github.com/slotgate/slotgate/rules"
)

// backend is a booking API with a slot of its own data, as in the checked model
// (m3b): it lets a subject book once, but looks at nothing else when it commits
// unless it checks. What it was asked it does when it likes, or never.
type backend struct {
	checks   bool  // refuses what it has no units for
	vague    bool  // lets bookings go that no hold is named for; of a subject with several nobody could tell whose it was
	left     int64 // of truth; the gate's looks read it
	bookings map[string]int64
	removed  map[string]string // by subject, the hold that the cancel of its last booking meant; "" none
	jobs     []*job

	outside int64 // units booked behind the gate's back, ever
}

// job is a request at the backend: it is pending until it is answered, or dropped.
type job struct {
	subject  string
	units    int64
	cancels  bool
	hold     string        // that a cancel means
	deadline time.Duration // a booking commits before, or never (A1)
	answer   rules.Outcome // NoOutcome: pending
	dropped  bool
}

func (j *job) pending() bool { return j.answer == rules.NoOutcome && !j.dropped }

// send hands the backend a request.
func (b *backend) send(j *job) { b.jobs = append(b.jobs, j) }

// run lets the backend get to a request; refuse is its own will to refuse.
func (b *backend) run(j *job, refuse bool) {
	_, booked := b.bookings[j.subject]
	switch {
	case refuse, j.cancels && j.hold == "" && !b.vague:
		j.answer = rules.Refused
	case j.cancels && booked:
		b.cancel(j.subject, j.hold)
		j.answer = rules.Done
	case j.cancels && b.removedBy(j.subject, j.hold):
		// A look may have found the unit already: to say yes would free it again. A
		// backend that does is believed until the next look (gate/store).
		j.answer = rules.Refused
	case j.cancels:
		j.answer = rules.Done // it says yes to a cancel of nothing, too
	case booked:
		j.answer = rules.Duplicate
	case b.checks && b.left < j.units:
		j.answer = rules.SoldOut
	default:
		b.bookings[j.subject] = j.units
		delete(b.removed, j.subject)
		b.left -= j.units
		j.answer = rules.Booked
	}
}

// booked lists the subjects that have a booking.
func (b *backend) booked() []string { return slices.Sorted(maps.Keys(b.bookings)) }

// removedBy reports whether the subject's booking went by another cancel than one
// that meant this hold: the store does not know that it is this hold's.
func (b *backend) removedBy(subject, hold string) bool {
	by, removed := b.removed[subject]
	return removed && (by == "" || by != hold)
}

func (b *backend) cancel(subject, hold string) {
	b.removed[subject] = hold
	b.left += b.bookings[subject]
	delete(b.bookings, subject)
}

// bookOutside takes a unit behind the gate's back, if there is one.
func (b *backend) bookOutside() bool {
	if b.left <= 0 {
		return false
	}
	b.left--
	b.outside++
	return true
}

// expire drops bookings that would have been committed before now, if ever.
func (b *backend) expire(now time.Duration) {
	for _, j := range b.jobs {
		if j.pending() && !j.cancels && j.deadline <= now {
			j.dropped = true
		}
	}
}

// threatens is the units that subjects may yet take: of the open holds and of the
// requests at the backend, each subject once, those without a booking.
func (b *backend) threatens(open map[string]int64) (units int64) {
	may := map[string]int64{}
	for subject, n := range open {
		may[subject] = n
	}
	for _, j := range b.jobs {
		if j.pending() && !j.cancels {
			may[j.subject] = max(may[j.subject], j.units)
		}
	}
	for subject, n := range may {
		if _, booked := b.bookings[subject]; !booked {
			units += n
		}
	}
	return units
}
