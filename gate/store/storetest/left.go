package storetest

import (
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// leftTests are about the units that a decide says are left.
var leftTests = []test{
	{"an admit tells what it left, an adoption and a repeated grant too", func(f *fixture) {
		d := request(withKey("k"), retrying, withCapacity(5), withUnits(2))
		f.left(decision.Admitted, d, 3)
		f.left(decision.Admitted, d, 3)
		f.settle(d, grantOf(d), rules.Unknown)
		f.left(decision.Admitted, again(d), 3)
		f.left(decision.Admitted, again(d, withKey("")), 1)
		f.left(decision.SoldOut, again(d, withKey("")), 1)
	}},
	{"whatever refuses after a look at the slot tells it too", func(f *fixture) {
		once := func(d *store.Decide) { d.SlotLimit, d.SubjectLimit = perMinute(1), perMinute(9) }
		d := request(withCapacity(5), withSubject("s"), withKey("k"))
		got := f.admit(d)
		f.left(decision.Twin, again(d), 4)
		f.left(decision.Mismatch, again(d, otherBody), 4)
		f.left(decision.SubjectBusy, again(d, withKey(""), onePerSubject), 4)
		f.left(decision.OverCapacity, again(d, withKey(""), withUnits(6)), 4)
		f.left(decision.NoRoom, again(d, withKey(""), func(d *store.Decide) { d.MaxInflight = 1 }), 4)
		f.left(decision.NoRoom, again(d, withKey(""), func(d *store.Decide) { d.Line = true }), 4)
		f.left(decision.NotOpen, again(d, withKey(""), func(d *store.Decide) { d.OpensAt = f.soon() }), 4)
		f.settle(d, got, rules.Booked)
		f.left(decision.Replay, again(d), 4)
		f.left(decision.KeyDone, again(d, withScope("bob")), 4)
		f.left(decision.SubjectHolds, again(d, withKey(""), onePerSubject), 4)
		f.left(decision.SubjectFull, again(d, withKey(""), func(d *store.Decide) { d.MaxPerSubject = 1; d.Units = 2 }), 4)
		f.left(decision.Admitted, again(d, withKey(""), once), 3)
		f.left(decision.LimitedSlot, again(d, withKey(""), once), 3)
		f.change(d, store.SlotChange{Closed: ptr(true)})
		f.left(decision.Closed, again(d, withKey("")), 3)
	}},
	{"a limited subject, an unknown outcome and a full mark tell it too", func(f *fixture) {
		d := request(withCapacity(5), withSubject("s"), withKey("k"), func(d *store.Decide) { d.SubjectLimit = perMinute(1) })
		f.settle(d, f.admit(d), rules.Unknown)
		f.left(decision.OutcomeUnknown, again(d), 4)
		f.left(decision.LimitedSubject, again(d, withKey("")), 4)
		free := func(d *store.Decide) { d.Key, d.SubjectLimit = "", store.Limit{} }
		f.finish(rules.SoldOut, again(d, free))
		f.left(decision.SoldOut, again(d, free), 4)
	}},
	{"a lapse in the same call counts", func(f *fixture) {
		d := request(withCapacity(5))
		f.left(decision.Admitted, again(d), 4)
		f.Advance(holdTTL + moment)
		f.left(decision.Admitted, again(d), 4)
	}},
	{"a slot's own capacity counts, and a debt is nothing left", func(f *fixture) {
		d := request(withCapacity(5))
		f.change(d, store.SlotChange{Capacity: ptr(int64(3))})
		f.left(decision.Admitted, again(d, withUnits(2)), 1)
		f.touch(d, "gate-a", force(again(d, withUnits(4))))
		f.left(decision.SoldOut, again(d), 0)
		f.change(d, store.SlotChange{Capacity: ptr(int64(0))})
		f.left(decision.SoldOut, again(d), 0)
	}},
	{"a touched slot tells what its counters say", func(f *fixture) {
		d := request(withCapacity(5))
		f.touch(d, "gate-a", force(again(d)))
		f.left(decision.Admitted, again(d), 3)
	}},
	{"it is not known where the capacity is learned", func(f *fixture) {
		d := request(learned, withKey("k"))
		f.left(decision.Admitted, d, -1)
		f.left(decision.Twin, again(d), -1)
		f.settle(d, grantOf(d), rules.Booked)
		f.left(decision.Replay, again(d), -1)
		f.finish(rules.SoldOut, again(d, withKey("")))
		f.left(decision.SoldOut, again(d, withKey("")), -1)
		set := request(func(d *store.Decide) { d.Slot = "lesson-2" })
		f.change(set, store.SlotChange{Capacity: ptr(store.Learned)})
		f.left(decision.Admitted, set, -1)
	}},
	{"a guard has no units to tell of", func(f *fixture) {
		d := guard(withKey("k"))
		f.left(decision.Admitted, d, -1)
		f.left(decision.Twin, again(d), -1)
		f.settle(d, store.Decided{}, rules.Done)
		f.left(decision.Replay, again(d), -1)
	}},
	{"an answer that was left and an id that is gone take no look", func(f *fixture) {
		d := request(withKey("k"))
		got := f.admit(d)
		twin := again(d, waiting)
		twin.Await = f.expect(decision.Twin, twin).Owner
		f.settle(d, got, rules.Refused)
		f.left(decision.Answered, twin, -1)
		f.left(decision.Gone, d, -1)
		booked := request()
		f.finish(rules.Booked, booked)
		f.left(decision.Gone, booked, -1)
	}},
}

// left decides and fails unless the verdict comes with so many units left.
func (f *fixture) left(want decision.Verdict, d *store.Decide, units int64) {
	f.Helper()
	if got := f.expect(want, d); got.Left != units {
		f.Fatalf("%s with %d units left, want %d", want, got.Left, units)
	}
}

// soon is an hour after now, by the clock of the store as a hold of it shows.
func (f *fixture) soon() time.Time {
	d := request(func(d *store.Decide) { d.Slot = "a clock" })
	f.admit(d)
	return f.slot(d).Holds[0].TakenAt.Add(time.Hour)
}
