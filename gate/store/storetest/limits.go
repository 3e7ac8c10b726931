package storetest

import (
	"net/netip"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// perMinute is one event a minute, so that no test's own duration refills it.
func perMinute(burst int) store.Limit { return store.Limit{Count: 1, Per: time.Minute, Burst: burst} }

// limitTests are decide's steps 5 and 10.
var limitTests = []test{
	{"a decide that is made again is charged once, with a key or without", func(f *fixture) {
		for _, key := range []string{"", "k"} {
			limited := func(d *store.Decide) {
				d.SubjectLimit, d.Subject, d.Slot, d.Capacity = perMinute(2), "s"+key, "slot "+key, 9
			}
			d := request(withKey(key), limited)
			f.admit(d)
			f.admit(d)
			f.admit(request(limited))
			f.expect(decision.LimitedSubject, request(limited))
		}
	}},
	{"subject: a burst, then one more with every refill", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(99), func(d *store.Decide) { d.SubjectLimit = perMinute(3) })
		for i := range 3 {
			f.limit(f.admit(again(d)), "subject", d.SubjectLimit, 2-i, time.Duration(i+1)*time.Minute)
		}
		got := f.expect(decision.LimitedSubject, again(d))
		f.limit(got, "subject", d.SubjectLimit, 0, 3*time.Minute)
		f.between("retry after", got.RetryAfter, time.Minute-moment, time.Minute)
		f.Advance(time.Minute + moment)
		f.limit(f.admit(again(d)), "subject", d.SubjectLimit, 0, 3*time.Minute-moment)
		f.expect(decision.LimitedSubject, again(d))
		f.Advance(10 * time.Minute)
		f.limit(f.admit(again(d)), "subject", d.SubjectLimit, 2, time.Minute)
	}},
	{"a limit of many in a period refills one by one", func(f *fixture) {
		limit := store.Limit{Count: 6, Per: 2 * time.Minute, Burst: 2} // one in 20 s
		d := request(withSubject("s"), withCapacity(99), func(d *store.Decide) { d.SubjectLimit = limit })
		f.admit(again(d))
		f.admit(again(d))
		got := f.expect(decision.LimitedSubject, again(d))
		f.between("retry after", got.RetryAfter, 20*time.Second-moment, 20*time.Second)
		f.Advance(20*time.Second - moment)
		f.expect(decision.LimitedSubject, again(d))
		f.Advance(2 * moment)
		f.admit(again(d))
		f.expect(decision.LimitedSubject, again(d))
	}},
	{"subjects and rules have buckets of their own", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(99), func(d *store.Decide) { d.SubjectLimit = perMinute(1) })
		f.admit(again(d))
		f.expect(decision.LimitedSubject, again(d))
		f.admit(again(d, withSubject("t")))
		f.admit(again(d, func(d *store.Decide) { d.Rule = "other" }))
		f.expect(decision.LimitedSubject, again(d, func(d *store.Decide) { d.Slot = "lesson-2" }))
	}},
	{"client: by address", func(f *fixture) {
		from := func(addr string) func(*store.Decide) {
			return func(d *store.Decide) { d.Client = netip.MustParseAddr(addr) }
		}
		d := request(withCapacity(99), func(d *store.Decide) { d.ClientLimit = perMinute(1) })
		f.limit(f.admit(again(d, from("192.0.2.1"))), "client", d.ClientLimit, 0, time.Minute)
		got := f.expect(decision.LimitedClient, again(d, from("192.0.2.1")))
		f.limit(got, "client", d.ClientLimit, 0, time.Minute)
		f.admit(again(d, from("192.0.2.2")))
		f.admit(again(d, from("2001:db8::1")))
		f.expect(decision.LimitedClient, again(d, from("2001:db8::1")))
	}},
	{"subject and client limits are charged also when a later check refuses", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(1), func(d *store.Decide) {
			d.SubjectLimit, d.ClientLimit = perMinute(3), perMinute(3)
			d.Client = netip.MustParseAddr("192.0.2.1")
		})
		f.admit(again(d))
		got := f.expect(decision.SoldOut, again(d))
		f.limit(got, "subject", d.SubjectLimit, 1, 2*time.Minute)
		f.limit(got, "client", d.ClientLimit, 1, 2*time.Minute)
		f.expect(decision.SoldOut, again(d))
		f.expect(decision.LimitedSubject, again(d))
		f.expect(decision.LimitedClient, again(d, withSubject("t")))
	}},
	{"the subject limit is charged when the client limit refuses", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(99), func(d *store.Decide) {
			d.SubjectLimit, d.ClientLimit = perMinute(2), perMinute(1)
			d.Client = netip.MustParseAddr("192.0.2.1")
		})
		f.admit(again(d))
		f.expect(decision.LimitedClient, again(d))
		f.expect(decision.LimitedSubject, again(d, func(d *store.Decide) { d.Client = netip.MustParseAddr("192.0.2.2") }))
	}},
	{"a refused call is not charged by the limit that refused it", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(99), func(d *store.Decide) { d.SubjectLimit = perMinute(1) })
		f.admit(again(d))
		for range 20 {
			f.expect(decision.LimitedSubject, again(d))
		}
		f.Advance(time.Minute + moment)
		f.admit(again(d))
	}},
	{"a later call of a charged request is not charged again", func(f *fixture) {
		d := request(withSubject("s"), withCapacity(99), func(d *store.Decide) {
			d.SubjectLimit = perMinute(1)
			d.MaxInflight = 1
		})
		running := request(withCapacity(99))
		got := f.admit(running)
		f.expect(decision.NoRoom, d)
		d.Charged = true
		f.expect(decision.NoRoom, d)
		f.settle(running, got, rules.Booked)
		f.admit(d)
		f.expect(decision.LimitedSubject, again(d, func(d *store.Decide) { d.Charged = false; d.MaxInflight = 0 }))
	}},
	{"replays, twins and all that the key answers are never charged", func(f *fixture) {
		d := request(withKey("k"), withSubject("s"), withCapacity(99), retrying, func(d *store.Decide) {
			d.SubjectLimit, d.ClientLimit = perMinute(2), perMinute(2)
			d.Client = netip.MustParseAddr("192.0.2.1")
		})
		got := f.admit(d)
		f.admit(d) // its own grant again
		for range 5 {
			f.expect(decision.Twin, again(d))
			f.expect(decision.Mismatch, again(d, func(d *store.Decide) { d.Fingerprint = fingerprint(d, "other") }))
		}
		f.settle(d, got, rules.Unknown)
		for range 5 {
			f.expect(decision.OutcomeUnknown, again(d, withScope("bob")))
		}
		retry := again(d)
		f.settle(retry, f.admit(retry), rules.Booked) // goes on under the same hold
		for range 5 {
			f.expect(decision.Replay, again(d))
			f.expect(decision.KeyDone, again(d, withScope("bob")))
		}
		f.limit(f.admit(again(d, withKey(""))), "subject", d.SubjectLimit, 0, 2*time.Minute)
	}},
	{"the slot limit is charged only by an admit", func(f *fixture) {
		d := request(withCapacity(9), func(d *store.Decide) { d.SlotLimit = perMinute(2); d.MaxInflight = 1 })
		first := again(d)
		got := f.admit(first)
		f.limit(got, "slot", d.SlotLimit, 1, time.Minute)
		for range 5 {
			f.limit(f.expect(decision.NoRoom, again(d)), "slot", d.SlotLimit, 1, time.Minute)
		}
		f.settle(first, got, rules.Booked)
		second := again(d)
		f.settle(second, f.admit(second), rules.Booked)
		refused := f.expect(decision.LimitedSlot, again(d))
		f.limit(refused, "slot", d.SlotLimit, 0, 2*time.Minute)
		f.between("retry after", refused.RetryAfter, time.Minute-moment, time.Minute)
		f.Advance(time.Minute + moment)
		f.admit(again(d))
	}},
	{"the slot limit is not charged by a sold-out request", func(f *fixture) {
		d := request(withCapacity(1), func(d *store.Decide) { d.SlotLimit = perMinute(2) })
		f.admit(again(d))
		for range 5 {
			f.expect(decision.SoldOut, again(d))
		}
		f.limit(f.admit(again(d, withCapacity(2))), "slot", d.SlotLimit, 0, 2*time.Minute)
	}},
	{"each slot has its own bucket", func(f *fixture) {
		d := request(withCapacity(9), func(d *store.Decide) { d.SlotLimit = perMinute(1) })
		f.admit(again(d))
		f.expect(decision.LimitedSlot, again(d))
		f.admit(again(d, func(d *store.Decide) { d.Slot = "lesson-2" }))
	}},
}

// limit fails unless got names the limit with so many events left, full again
// after about reset.
func (f *fixture) limit(got store.Decided, name string, limit store.Limit, remaining int, reset time.Duration) {
	f.Helper()
	for _, l := range got.Limits {
		if l.Name != name {
			continue
		}
		if l.Limit != limit || l.Remaining != remaining {
			f.Fatalf("limit %+v, want %+v with %d remaining", l, limit, remaining)
		}
		f.between(name+" limit's reset", l.Reset, reset-moment, reset)
		return
	}
	f.Fatalf("no state of the %s limit in %+v", name, got.Limits)
}
