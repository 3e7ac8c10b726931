package storetest

import (
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// subjectTests are decide's steps 6 and 7.
var subjectTests = []test{
	{"without one_per_subject a second booking is an ordinary one", func(f *fixture) {
		f.finish(rules.Booked, request(withSubject("s")))
		f.admit(request(withSubject("s")))
	}},
	{"one_per_subject: a running attempt makes the subject busy", func(f *fixture) {
		d := request(withSubject("s"), onePerSubject)
		f.admit(d)
		if got := f.expect(decision.SubjectBusy, again(d)); got.Owner != d.ID {
			f.Fatalf("owner %q, want %q", got.Owner, d.ID)
		}
		f.admit(again(d, withSubject("other")))
	}},
	{"one_per_subject: a confirmed hold is held", func(f *fixture) {
		d := request(withSubject("s"), onePerSubject)
		f.finish(rules.Booked, d)
		f.expect(decision.SubjectHolds, again(d))
		f.admit(again(d, func(d *store.Decide) { d.Slot = "lesson-2" }))
	}},
	{"one_per_subject: a refused subject may try again", func(f *fixture) {
		d := request(withSubject("s"), onePerSubject)
		f.finish(rules.Refused, d)
		f.admit(again(d))
	}},
	{"one_per_subject: an unanswered hold is an unknown outcome", func(f *fixture) {
		d := request(withSubject("s"), onePerSubject)
		f.settle(d, f.admit(d), rules.Unknown)
		f.expect(decision.OutcomeUnknown, again(d))
		f.units(d, 0, 1)
	}},
	{"one_per_subject: a hold past its lease is unanswered", func(f *fixture) {
		d := request(withSubject("s"), onePerSubject)
		f.admit(d)
		f.Advance(lease + moment)
		f.expect(decision.OutcomeUnknown, again(d))
	}},
	{"one_per_subject: an attempt runs on though an operator released its hold", func(f *fixture) {
		d := request(withSubject("s"), onePerSubject)
		f.admit(d)
		f.release(d, d.ID, decision.Held)
		f.expect(decision.SubjectBusy, again(d))
		f.Advance(lease + moment)
		f.admit(again(d))
	}},
	{"one_per_subject: under retry the equal request goes on under the hold", func(f *fixture) {
		first := request(withSubject("s"), onePerSubject, retrying, withKey("a"))
		f.settle(first, f.admit(first), rules.Unknown)
		second := again(first, withKey("b"))
		got := f.admit(second)
		if !got.Adopted || got.Hold != first.ID {
			f.Fatalf("adopted %t, hold %s; want %s", got.Adopted, got.Hold, first.ID)
		}
		f.state(first, first.ID, decision.Held)
		f.expect(decision.Twin, again(second))
		f.settle(second, got, rules.Booked)
		f.units(first, 1, 0)
		f.expect(decision.Replay, again(second))
	}},
	{"one_per_subject: another scope, fingerprint or units do not go on", func(f *fixture) {
		d := request(withSubject("s"), onePerSubject, retrying)
		f.settle(d, f.admit(d), rules.Unknown)
		f.expect(decision.OutcomeUnknown, again(d, withScope("bob")))
		f.expect(decision.OutcomeUnknown, again(d, func(d *store.Decide) { d.Fingerprint = fingerprint(d, "other") }))
		f.expect(decision.OutcomeUnknown, again(d, withUnits(2)))
		f.units(d, 0, 1)
	}},
	{"one_per_subject: a request without a subject is not counted", func(f *fixture) {
		f.admit(request(onePerSubject))
		f.admit(request(onePerSubject))
	}},
	{"max_per_subject counts open and confirmed units in the whole pool", func(f *fixture) {
		in := func(slot string) func(*store.Decide) {
			return func(d *store.Decide) { d.Slot = slot; d.MaxPerSubject = 3; d.Subject = "s"; d.Capacity = 9 }
		}
		f.finish(rules.Booked, request(in("a")))
		held := request(in("b"), withUnits(2))
		got := f.admit(held)
		f.expect(decision.SubjectFull, request(in("c")))
		f.admit(request(in("c"), withSubject("other")))
		f.settle(held, got, rules.Refused)
		f.expect(decision.SubjectFull, request(in("c"), withUnits(3)))
		f.admit(request(in("c"), withUnits(2)))
	}},
	{"max_per_subject: another pool counts apart", func(f *fixture) {
		most := func(d *store.Decide) { d.MaxPerSubject = 1; d.Subject = "s" }
		f.finish(rules.Booked, request(most))
		f.admit(request(most, func(d *store.Decide) { d.Pool = "seats" }))
		f.expect(decision.SubjectFull, request(most))
	}},
	{"max_per_subject: a lapse gives the subject its units back", func(f *fixture) {
		most := func(d *store.Decide) { d.MaxPerSubject = 1; d.Subject = "s" }
		f.admit(request(most))
		f.expect(decision.SubjectFull, request(most))
		f.Advance(holdTTL + moment)
		f.admit(request(most))
	}},
	{"max_per_subject: a hold that is kept counts as long as it is", func(f *fixture) {
		most := func(d *store.Decide) { d.MaxPerSubject = 1; d.Subject = "s"; d.KeepUnknown = true }
		f.admit(request(most)) // its gate died
		f.Advance(holdTTL + moment)
		f.expect(decision.SubjectFull, request(most, func(d *store.Decide) { d.Slot = "lesson-2" }))
	}},
	{"max_per_subject: a request that the slot refuses counts nothing", func(f *fixture) {
		most := func(d *store.Decide) { d.MaxPerSubject = 1; d.Subject = "s"; d.Capacity = 1 }
		f.admit(request(most, withSubject("another")))
		f.expect(decision.SoldOut, request(most))
		f.admit(request(most, func(d *store.Decide) { d.Slot = "lesson-2" }))
	}},
	{"max_per_subject: an operator's release gives the subject its units back", func(f *fixture) {
		d := request(func(d *store.Decide) { d.MaxPerSubject = 1; d.Subject = "s" })
		f.finish(rules.Booked, d)
		f.release(d, d.ID, decision.Confirmed)
		f.admit(again(d))
	}},
	{"max_per_subject: late and unseen bookings count", func(f *fixture) {
		most := func(d *store.Decide) { d.MaxPerSubject = 2; d.Subject = "s" }
		late := request(most)
		got := f.admit(late)
		f.Advance(holdTTL + moment)
		f.units(late, 0, 0)
		f.settle(late, got, rules.Booked)
		unseen := request(most)
		f.report(settlement(unseen, store.Decided{Hold: unseen.ID}, rules.Booked))
		f.expect(decision.SubjectFull, request(most, func(d *store.Decide) { d.Slot = "lesson-2" }))
	}},
}
