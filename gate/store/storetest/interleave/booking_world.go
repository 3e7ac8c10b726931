package interleave

import (
	"fmt"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

// forwarded checks what may be true when a request is sent to the backend (P2).
func (b *Bookings) forwarded(r int, w *world, at *state) (broken []string) {
	q := &w.requests[r]
	kept := at.Keys[r].Done
	for other, o := range w.requests[:len(b.Requests)] {
		if !b.sameKey(r, other) {
			continue
		}
		if o.phase == sent {
			broken = append(broken, "P2: two forwards of one key are awaited at once")
		}
		kept = kept || (o.phase == told || o.phase == ended) && o.booked() && !w.lapsed[o.hold]
	}
	if kept && !q.behind {
		broken = append(broken, "P2: forwarded after an outcome that was kept")
	}
	if q.hold >= 0 && !b.Requests[r].Cancels && !q.behind && at.hold(q.hold) == decision.Confirmed {
		broken = append(broken, "P2: forwarded under a hold that is confirmed")
	}
	q.behind = false
	return broken
}

// backendSteps is what the backend can do with a request.
func (b *Bookings) backendSteps(r int, w *world) (steps []step[world]) {
	if w.requests[r].job != pending {
		return nil
	}
	does := func(j job) {
		steps = append(steps, step[world]{label: fmt.Sprintf("backend: %s %s", j, b.name(r)), local: func(w *world) []string {
			w.requests[r].job = j
			if j == done {
				for other := range b.Requests {
					if q := &w.requests[other]; q.job == committed && b.Requests[other].Subject == b.Requests[r].Subject {
						q.job = cancelled
					}
				}
			}
			return nil
		}})
	}
	mine, units := b.bookings(w, b.Requests[r].Subject)
	if b.Requests[r].Cancels {
		switch {
		case mine > 0:
			does(done)
		case b.Idempotent:
			does(doneBefore)
		default:
			does(refused)
		}
		return steps
	}
	full := units+b.Requests[r].Units > b.Capacity
	if mine > 0 {
		does(duplicate)
	}
	if full {
		does(soldOut)
	}
	if b.Refuses {
		does(refused)
	}
	if !(b.Unique && mine > 0) && !(b.Checks && full) {
		does(committed)
	}
	return steps
}

// bookings counts those of one subject, and the units of all.
func (b *Bookings) bookings(w *world, subject string) (mine int, units int64) {
	for r, q := range w.requests[:len(b.Requests)] {
		if q.job == committed {
			units += b.Requests[r].Units
			if b.Requests[r].Subject == subject {
				mine++
			}
		}
	}
	return mine, units
}

// mayPass reports whether a tick may pass, and something ends with it or one later. A
// gate gives up in time (A2), and what the backend does, it does before the hold
// lapses (A1).
func (b *Bookings) mayPass(w *world, at *state) bool {
	ends := at.slot.Full > 0
	for r, q := range w.requests[:len(b.Requests)] {
		waits := q.phase >= repeats && q.phase <= sent || q.phase == asking || (q.phase == settling || q.phase == heard) && !b.Late
		if waits && q.lease == 1 || q.phase == told && q.settled == copyTicks {
			return false
		}
		if q.job == pending && !b.Requests[r].Cancels && w.ttl[q.hold] == 1 && at.hold(q.hold).Open() {
			return false
		}
		ends = ends || q.lease > 0 || w.ttl[r] > 0 && at.hold(int8(r)).Open()
	}
	return ends
}

// tick lets time pass.
func (b *Bookings) tick() step[world] {
	pass := call{"tick", func(p *play) (any, error) { p.Advance(Tick); return nil, nil }}
	return step[world]{label: "time passes", call: pass, then: func(w *world, _ any, before, after *state) (string, []string, error) {
		for r := range b.Requests {
			b.age(w, r)
		}
		if b.Steps {
			b.lapses(w, before, after)
			return "", nil, nil
		}
		want := moves{}
		for r := range b.Requests {
			if w.ttl[r]--; w.ttl[r] > 0 {
				continue
			}
			w.ttl[r] = 0
			if !before.hold(int8(r)).Open() {
				continue
			}
			want[int8(r)] = decision.NoHold
			if b.KeepUnknown {
				want[int8(r)] = decision.HoldUnknown
			} else {
				w.lapsed[r] = true
			}
		}
		return "", want.compare(before, after), nil
	}}
}

// age makes a request a tick older.
func (b *Bookings) age(w *world, r int) {
	q := &w.requests[r]
	q.lease = max(0, q.lease-1)
	if q.lease == 0 && q.open && b.Requests[r].Cancels && q.hold >= 0 {
		w.doubted[q.hold] = true
	}
	if b.Copies && (q.hold >= 0 || q.late) && q.asked <= copyTicks {
		q.asked++
	}
	if (b.Copies || q.phase == told) && q.phase >= told && q.settled <= copyTicks {
		q.settled++
	}
}

// broken is what must never be so.
func (b *Bookings) broken(w world, at *state) (broken []string) {
	taken := at.slot.Confirmed + at.slot.Held
	if taken > b.Capacity+int64(w.excess) {
		broken = append(broken, "P1: more is confirmed and held than there is")
	}
	var confirmed, held int64
	for _, h := range at.slot.Holds {
		if h.State == decision.Confirmed {
			confirmed += h.Units
		} else {
			held += h.Units
		}
	}
	if confirmed != at.slot.Confirmed || held != at.slot.Held {
		broken = append(broken, "P1: the counters do not add up to the holds")
	}
	if !b.Exact && w.lapsed != [maxRequests]bool{} {
		return broken // its booking may come yet, or has been made
	}
	if _, units := b.bookings(&w, ""); units > b.Capacity {
		broken = append(broken, "T1: the backend is oversold")
	}
	for _, q := range b.Requests {
		if mine, _ := b.bookings(&w, q.Subject); mine > 1 && !b.severalEach() {
			broken = append(broken, "T2: the backend has a subject twice")
		}
	}
	return broken
}

// severalEach: a subject may book the slot several times.
func (b *Bookings) severalEach() bool { return !b.Unique && !b.OnePerSubject && !b.Exact }

// knows reports whether a retry of a key would be told that it is booked: from its
// answer, or from the hold (H21).
func (b *Bookings) knows(at *state, key KeyState) bool {
	return key.Done || key.Hold != "" && at.hold(b.holder(key.Hold)) == decision.Confirmed
}

// rest is what must not be so when everything has come to an end.
func (b *Bookings) rest(w world, at *state) (broken []string) {
	unheard := false // a cancel that was done, and nobody knows
	for _, q := range w.requests[:len(b.Requests)] {
		if q.phase != ended && q.phase != dead || q.job == pending {
			return nil
		}
		// One that came before its booking was settled meant none.
		unheard = unheard || q.job == done && (q.phase == dead || q.outcome != rules.Done || b.Late && q.hold < 0)
	}
	if at.slot.Held > 0 && !b.KeepUnknown {
		return nil
	}
	confirmed, retried := map[string]int{}, map[string]bool{}
	for r := range b.Requests {
		if at.hold(int8(r)) == decision.Confirmed {
			confirmed[b.Requests[r].Subject]++
			retried[b.Requests[r].Subject] = retried[b.Requests[r].Subject] || b.adopted(&w, int8(r))
		}
	}
	for r, q := range w.requests[:len(b.Requests)] {
		subject := b.Requests[r].Subject
		mine, _ := b.bookings(&w, subject)
		if q.job == committed && confirmed[subject] == 0 && !w.lapsed[q.hold] && !at.hold(q.hold).Open() {
			broken = append(broken, "A1: at rest a booking of truth is not in the store")
		}
		// A duplicate that a retry was told may be of its own first attempt, without an answer.
		one := b.OnePerSubject || b.Unique && !retried[subject]
		if confirmed[subject] > mine && !unheard && one && !b.Late {
			broken = append(broken, "A2: at rest the store has a booking that is not in truth")
		}
		// One whose hold has lapsed leaves the key to a retry that has a hold of its own.
		if q.job == committed && q.phase == ended && q.booked() && !w.lapsed[q.hold] && b.Requests[r].Key != "" && !b.knows(at, at.Keys[r]) {
			broken = append(broken, "A3: at rest a booking was answered, and its key does not know")
		}
	}
	for r := range b.Requests {
		key := at.Keys[r]
		if !key.Done || key.Hold == "" || confirmed[b.Requests[r].Subject] > 0 {
			continue
		}
		if h := b.holder(key.Hold); w.lapsed[h] && !w.again[h] && !w.doubted[h] {
			broken = append(broken, "A4: at rest a key is done whose hold has lapsed")
		}
	}
	return broken
}
