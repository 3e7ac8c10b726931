package interleave

import (
	"fmt"
	"slices"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// hold is the state of the hold that a request took; finished ones are NoHold.
func (s *state) hold(r int8) decision.HoldState {
	for _, h := range s.slot.Holds {
		if h.ID == attemptID(int(r)) {
			return h.State
		}
	}
	return decision.NoHold
}

// moves are the states that a step should bring holds to; all others stay.
type moves map[int8]decision.HoldState

// compare tells what did not move as it should.
func (m moves) compare(before, after *state) (broken []string) {
	for r := range int8(maxRequests) {
		was, is := before.hold(r), after.hold(r)
		want, moves := m[r]
		if !moves {
			want = was
		}
		switch {
		case is == want:
		case want.Open() && is == decision.NoHold:
			broken = append(broken, "P4: units were given back though an attempt may be booked")
		case want == decision.NoHold && is.Open():
			broken = append(broken, "P4: units were kept though no attempt can be booked")
		default:
			broken = append(broken, fmt.Sprintf("S: a hold that was %q is %q, not %q", was, is, want))
		}
	}
	return broken
}

// settle reports what has become of a request.
func (b *Bookings) settle(r int, q request, lost bool) step[world] {
	label := b.name(r) + " is settled"
	if lost {
		label += ", and the reply is lost"
	}
	return step[world]{label: label, call: b.callSettle(r, &q), then: func(w *world, reply any, before, after *state) (string, []string, error) {
		got := reply.(store.Settled)
		said := fmt.Sprintf(": %s of %s leaves it %q, applied %t, late %t", q.outcome, holdName(q.hold), got.Hold, got.Applied, got.Late)
		w.requests[r].phase = ended
		if q.phase == told {
			if after.id != before.id {
				return said, []string{"P3: a settlement that was made twice had another effect than once"}, nil
			}
			return said, nil, nil
		}
		if lost {
			w.requests[r].phase = told
		}
		b.overtakes(r, w)
		broken := b.settleMoves(r, w, before).compare(before, after)
		b.lateBooking(r, w, before, after)
		broken = append(broken, w.requests[r].untold(got)...)
		if subject := b.Requests[r].Subject; released(before, after) && b.mayBeBooked(w, subject) > b.accounted(w, after, subject) {
			broken = append(broken, "P4: units were released while an attempt of them is, or may be, booked")
		}
		return said, broken, nil
	}}
}

// settleMoves notes a settlement, and is what it should do to the hold.
func (b *Bookings) settleMoves(r int, w *world, from *state) moves {
	q := &w.requests[r]
	h := q.hold
	if b.Requests[r].Cancels {
		return b.cancelMoves(q, w, from)
	}
	if q.outcome != rules.Unknown {
		q.open, q.lease = false, 0
	}
	was := from.hold(h)
	booked := q.outcome == rules.Booked || q.outcome == rules.Duplicate && !b.anotherBooked(h, from)
	switch {
	case was == decision.Confirmed:
		return nil
	case booked:
		return b.standIn(r, w, moves{h: decision.Confirmed})
	case !was.Open():
		return nil
	case q.outcome == rules.Unknown || b.unanswered(w, h, r) || w.doubted[h]:
		return moves{h: decision.HoldUnknown}
	}
	return moves{h: decision.NoHold}
}

// standIn notes a hold that is booked as a duplicate, and moves the one that stood in for
// a booking which is told now.
func (b *Bookings) standIn(r int, w *world, m moves) moves {
	q := &w.requests[r]
	if q.outcome == rules.Duplicate {
		w.standsIn[q.hold] = q.hold == int8(r) && !b.adopted(w, q.hold)
		return m
	}
	for other, stands := range w.standsIn {
		if stands && b.Requests[other].Subject == b.Requests[r].Subject {
			m[int8(other)] = decision.NoHold
			w.standsIn[other] = false
		}
	}
	return m
}

// standNoMore: no hold of the subject stands in for a booking any more.
func (b *Bookings) standNoMore(w *world, subject string) {
	for r := range b.Requests {
		if b.Requests[r].Subject == subject {
			w.standsIn[r] = false
		}
	}
}

// adopted: other requests went on under the hold.
func (b *Bookings) adopted(w *world, hold int8) bool {
	for r, q := range w.requests[:len(b.Requests)] {
		if int8(r) != hold && q.hold == hold && !b.Requests[r].Cancels {
			return true
		}
	}
	return false
}

// cancelMoves is what the settlement of a cancel should do to the hold that it means.
func (b *Bookings) cancelMoves(q *request, w *world, from *state) moves {
	running := q.open
	q.open, q.lease = false, 0
	if q.hold < 0 {
		return nil
	}
	if q.outcome == rules.Unknown {
		w.doubted[q.hold] = true
	}
	if q.outcome != rules.Done || from.hold(q.hold) != decision.Confirmed {
		return nil
	}
	w.standsIn[q.hold] = false
	if b.unanswered(w, q.hold, -1) || running && q.doubts {
		w.doubted[q.hold], w.ttl[q.hold] = true, b.ttl()
		return moves{q.hold: decision.HoldUnknown}
	}
	return moves{q.hold: decision.NoHold}
}

// overtakes notes who was let through before this settlement, and may be forwarded
// though their key is known to be booked: they cannot know.
func (b *Bookings) overtakes(r int, w *world) {
	if q := &w.requests[r]; !q.booked() && q.outcome != rules.Duplicate {
		return
	}
	for other := range b.Requests {
		if q := &w.requests[other]; b.sameKey(r, other) && (q.phase == repeats && q.open || q.phase == admitted || q.phase == asking) {
			q.behind = true
		}
	}
}

// booked reports whether the backend was heard to have made the request's booking.
func (q *request) booked() bool { return q.outcome == rules.Booked }

// sameKey: two requests are retries of each other.
func (b *Bookings) sameKey(r, other int) bool {
	return r != other && b.Requests[r].Key != "" && b.Requests[r].Key == b.Requests[other].Key
}

// anotherBooked: the subject of a hold has another one that is confirmed.
func (b *Bookings) anotherBooked(hold int8, at *state) bool {
	for r := range b.Requests {
		if int8(r) != hold && b.Requests[r].Subject == b.Requests[hold].Subject && at.hold(int8(r)) == decision.Confirmed {
			return true
		}
	}
	return false
}

// lateBooking notes one that is counted after its hold has gone, or was even forgotten.
func (b *Bookings) lateBooking(r int, w *world, before, after *state) {
	h := w.requests[r].hold
	if h < 0 || before.hold(h) != decision.NoHold || after.hold(h) != decision.Confirmed {
		return
	}
	w.again[h] = true
	over := max(0, after.slot.Confirmed+after.slot.Held-b.Capacity)
	w.excess, w.requests[r].over = int8(over), int8(min(over, b.Requests[r].Units))
}

// untold is what a settlement did not tell: by how much it was too many (P1).
func (q *request) untold(got store.Settled) []string {
	if got.Oversold != int64(q.over) {
		return []string{"P1: a late booking that was too many was not told"}
	}
	return nil
}

// released reports whether a hold has gone between two states.
func released(from, to *state) bool {
	for _, h := range from.slot.Holds {
		if !slices.ContainsFunc(to.slot.Holds, func(other store.Hold) bool { return other.ID == h.ID }) {
			return true
		}
	}
	return false
}

// mayBeBooked is how many bookings of a subject there are, or may yet be.
func (b *Bookings) mayBeBooked(w *world, subject string) int {
	have, may, holds := 0, 0, map[int8]bool{}
	for r, q := range w.requests[:len(b.Requests)] {
		if b.Requests[r].Subject != subject || b.Requests[r].Cancels {
			continue
		}
		switch q.job {
		case committed:
			have++
			holds[q.hold] = true
		case pending:
			may++
			holds[q.hold] = true
		}
	}
	if b.Unique {
		return min(1, have+may)
	}
	return len(holds)
}

// accounted is how many bookings of a subject the store keeps units for, or has let go
// of because a hold lapsed.
func (b *Bookings) accounted(w *world, at *state, subject string) (n int) {
	for r := range b.Requests {
		if b.Requests[r].Subject == subject && (at.hold(int8(r)) != decision.NoHold || w.lapsed[r]) {
			n++
		}
	}
	return n
}
