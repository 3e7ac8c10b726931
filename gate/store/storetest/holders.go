package storetest

import (
	"fmt"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// repeating asks whom a SoldOut may be repeated to.
func repeating(d *store.Decide) { d.Repeat = 30 * time.Second }

// offered is a SoldOut of d's slot, by somebody whom nobody knows, that may be repeated.
func (f *fixture) offered(d *store.Decide) store.Holders {
	f.Helper()
	got := f.expect(decision.SoldOut, again(d, withSubject("stranger"), withKey("strange"), repeating))
	if got.Holders == nil {
		f.Fatal("it may be repeated to nobody")
	}
	return got.Holders
}

// kept is a SoldOut that may be repeated to nobody.
func (f *fixture) kept(d *store.Decide) {
	f.Helper()
	if got := f.expect(decision.SoldOut, again(d, withSubject("stranger"), withKey("strange"), repeating)); got.Holders != nil {
		f.Fatal("it may be repeated")
	}
}

// knows checks each subject and each key apart from the other.
func (f *fixture) knows(h store.Holders, want bool, subject, key string) {
	f.Helper()
	if subject != "" && h.Know(request(withSubject(subject), withKey("no-such-key"))) != want {
		f.Errorf("it knows the subject %q: %v, want %v", subject, !want, want)
	}
	if key != "" && h.Know(request(withSubject("no such subject"), withKey(key))) != want {
		f.Errorf("it knows the key %q: %v, want %v", key, !want, want)
	}
}

// holderTests are about whom a slot knows that is sold out: what a gate tells others
// without asking must be what the store would tell them.
var holderTests = []test{
	{"holds are known by subject and by key, whatever became of them", func(f *fixture) {
		one := func(name string) *store.Decide {
			return request(withCapacity(4), withSubject(name), withKey("key of "+name))
		}
		f.finish(rules.Booked, one("booked"))
		f.finish(rules.Duplicate, one("duplicate"))
		f.finish(rules.Unknown, one("unknown"))
		f.admit(one("held"))
		h := f.offered(one("held"))
		for _, name := range []string{"booked", "duplicate", "unknown", "held"} {
			f.knows(h, true, name, "key of "+name)
		}
		f.knows(h, false, "stranger", "strange")
		f.knows(h, false, "", "")
	}},
	{"it is offered only to who asks, and while nothing is left", func(f *fixture) {
		d := request(withCapacity(2), withSubject("s"), withKey("k"))
		f.admit(d)
		if got := f.expect(decision.SoldOut, again(d, withSubject("t"), withKey("l"), withUnits(2), repeating)); got.Holders != nil {
			f.Error("a unit is left, and it may be repeated")
		}
		f.admit(again(d, withSubject("u"), withKey("m")))
		if got := f.expect(decision.SoldOut, again(d, withSubject("t"), withKey("l"))); got.Holders != nil {
			f.Error("nobody asked")
		}
		f.offered(d)
	}},
	{"where the backend said it, or the slot is touched, or its capacity learned, it is not offered", func(f *fixture) {
		d := request(withCapacity(1))
		f.touch(d, "gate-a", force(again(d)))
		f.kept(d)
		other := request(learned, func(d *store.Decide) { d.Slot = "lesson-2" })
		f.finish(rules.SoldOut, other)
		f.kept(other)
	}},
	{"a key outlives its hold: cancelled by an operator", func(f *fixture) {
		d := request(withCapacity(1), withSubject("s"), withKey("k"))
		f.settle(d, f.admit(d), rules.Booked)
		f.release(d, d.ID, decision.Confirmed)
		f.finish(rules.Booked, again(d, withSubject("t"), withKey("l")))
		f.replays(again(d), d.ID)
		h := f.offered(d)
		f.knows(h, true, "", "k")
		f.knows(h, true, "t", "l")
		f.knows(h, false, "s", "") // has nothing any more
	}},
	{"a key outlives its hold: lapsed", func(f *fixture) {
		d := request(withCapacity(1), withSubject("s"), withKey("k"))
		f.settle(d, f.admit(d), rules.Unknown)
		f.Advance(holdTTL + moment)
		f.finish(rules.Booked, again(d, withSubject("t"), withKey("l")))
		f.Advance(store.CopyWindow + moment)
		f.expect(decision.OutcomeUnknown, again(d))
		f.knows(f.offered(d), true, "", "k")
	}},
	{"a key outlives its hold: a refusal that is kept", func(f *fixture) {
		d := request(withCapacity(1), withSubject("s"), withKey("k"))
		refusal := settlement(d, f.admit(d), rules.Refused)
		refusal.Keep = true
		f.report(refusal)
		f.finish(rules.Booked, again(d, withSubject("t"), withKey("l")))
		f.replays(again(d), d.ID)
		f.knows(f.offered(d), true, "", "k")
	}},
	{"a key that is not kept goes with its hold", func(f *fixture) {
		d := request(withCapacity(1), withSubject("s"), withKey("k"))
		f.finish(rules.Refused, d)
		f.finish(rules.Booked, again(d, withSubject("t"), withKey("l")))
		f.knows(f.offered(d), false, "s", "k")
	}},
	{"a key outlives its hold: that of an attempt under another's", func(f *fixture) {
		d := request(withCapacity(1), withSubject("s"), withKey("k"), retrying, onePerSubject)
		f.settle(d, f.admit(d), rules.Unknown)
		second := again(d, withKey("l"))
		got := f.admit(second)
		if !got.Adopted {
			f.Fatalf("%+v", got)
		}
		f.settle(second, got, rules.Booked)
		h := f.offered(d)
		f.knows(h, true, "s", "k")
		f.knows(h, true, "s", "l")
	}},
	{"a booking that was never seen is known", func(f *fixture) {
		d := request(withCapacity(1), withSubject("s"), withKey("k"))
		f.admit(d)
		late := request(withCapacity(1), withSubject("late"), withKey("late key"))
		f.report(settlement(late, store.Decided{Hold: late.ID}, rules.Booked))
		f.knows(f.offered(d), true, "late", "late key")
	}},
	{"a request that was passed by is known", func(f *fixture) {
		d := request(withCapacity(1), withSubject("s"), withKey("k"))
		f.touch(d, "gate-a", force(d))
		f.settle(d, store.Decided{Hold: d.ID}, rules.Booked)
		f.resume(d, "gate-a")
		f.knows(f.offered(d), true, "s", "k")
	}},
	{"where too many have units it is not offered", func(f *fixture) {
		d := request(withCapacity(600))
		for i := range 600 {
			f.finish(rules.Booked, again(d, withSubject(fmt.Sprint("s", i)), withKey(fmt.Sprint("k", i))))
		}
		if got := f.expect(decision.SoldOut, again(d, withSubject("t"), repeating)); got.Holders != nil {
			for i := range 600 {
				f.knows(got.Holders, true, fmt.Sprint("s", i), fmt.Sprint("k", i))
			}
		}
	}},
	{"where too many keys outlived their holds it is not offered, or all are known", func(f *fixture) {
		d := request(withCapacity(1))
		for i := range 100 {
			one := again(d, withSubject(fmt.Sprint("s", i)), withKey(fmt.Sprint("k", i)))
			f.settle(one, f.admit(one), rules.Booked)
			f.release(one, one.ID, decision.Confirmed)
		}
		f.admit(again(d))
		if got := f.expect(decision.SoldOut, again(d, withSubject("t"), repeating)); got.Holders != nil {
			for i := range 100 {
				f.knows(got.Holders, true, "", fmt.Sprint("k", i))
			}
		}
		f.Advance(keyTTL + 2*store.CopyWindow + moment)
		f.admit(again(d))
		f.knows(f.offered(d), false, "s1", "k1")
	}},
	{"who repeats it hears of a unit that comes free, by whatever", func(f *fixture) {
		d := request(withCapacity(1), withSubject("s"), withKey("k"))
		got := f.admit(d)
		f.offered(d)
		f.wakesSlot(d, func() { f.settle(d, got, rules.Refused) })
		f.admit(again(d))
		f.offered(d)
		f.wakesSlot(d, func() { f.change(d, store.SlotChange{Capacity: ptr(int64(9))}) })
	}},
	{"who repeats it hears of a booking that was never seen", func(f *fixture) {
		d := request(withCapacity(1), withSubject("s"), withKey("k"))
		f.admit(d)
		f.offered(d)
		late := request(withCapacity(1), withSubject("late"), withKey("late key"))
		f.wakesSlot(d, func() { f.report(settlement(late, store.Decided{Hold: late.ID}, rules.Booked)) })
	}},
}
