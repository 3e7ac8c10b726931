package memstore

import (
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

// ofRoom: step 11.
func (q *question) ofRoom() bool {
	room, alone := q.room()
	running := q.slot.inflight(q.now)
	if !alone && (room == 0 || running < room) {
		return q.d.Line && q.say(decision.NoRoom, 0)
	}
	if running == 0 {
		return q.say(decision.NoRoom, 0)
	}
	return q.say(decision.NoRoom, time.Duration(q.slot.running[0].at-q.now))
}

// room is how many of the slot may be at the backend at once, 0 any number. While
// counters that follow truth are not to be believed it is one, and none beside a
// request without an answer where those are kept, for which it is one also while truth
// cannot be read: see "Truth" in gate/store.
func (q *question) room() (room int, alone bool) {
	room = q.d.MaxInflight
	_, known := q.slot.left(q.of)
	if known && !q.slot.doubted(q.of) && !q.isDirty() {
		return room, false
	}
	most := store.LearnedInflight
	if q.d.Truth == store.TruthRemaining && (q.isDirty() || q.d.KeepUnknown) {
		most, alone = 1, q.d.KeepUnknown && (q.isDirty() || !known) && q.slot.awaits()
	}
	if room == 0 || room > most {
		room = most
	}
	return room, alone
}
