package storetest

import (
	"bytes"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// guard is a request that takes no units: dedupe and limits only.
func guard(change ...func(*store.Decide)) *store.Decide {
	return request(append([]func(*store.Decide){func(d *store.Decide) {
		d.Rule, d.Group = "guard", "guard"
		d.Pool, d.Slot, d.Units, d.Capacity = "", "", 0, 0
	}}, change...)...)
}

var guardTests = []test{
	{"without a key each is admitted, without a hold", func(f *fixture) {
		for range 3 {
			d := guard()
			if got := f.admit(d); got.Hold != "" {
				f.Fatalf("a guard took hold %q", got.Hold)
			}
			f.report(settlement(d, store.Decided{}, rules.Done))
		}
	}},
	{"a running key has twins, which get the owner's answer", func(f *fixture) {
		d := guard(withKey("k"))
		got := f.admit(d)
		twin := again(d, waiting)
		twin.Await = f.expect(decision.Twin, twin).Owner
		f.expect(decision.Mismatch, again(d, func(d *store.Decide) { d.Fingerprint = fingerprint(d, "other") }))
		f.settle(d, got, rules.Refused)
		if answered := f.expect(decision.Answered, twin); !bytes.Equal(answered.Answer, answerOf(d.ID)) {
			f.Fatalf("answered %q", answered.Answer)
		}
	}},
	{"a done key is replayed, to its scope only", func(f *fixture) {
		d := guard(withKey("k"))
		f.finish(rules.Done, d)
		if replay := f.expect(decision.Replay, again(d)); !bytes.Equal(replay.Answer, answerOf(d.ID)) {
			f.Fatalf("replayed %q", replay.Answer)
		}
		f.expect(decision.KeyDone, again(d, withScope("bob")))
	}},
	{"an outcome that is not kept frees the key", func(f *fixture) {
		d := guard(withKey("k"))
		f.finish(rules.Refused, d)
		f.finish(rules.NeverSent, again(d))
		f.admit(again(d))
	}},
	{"an unknown outcome keeps the key", func(f *fixture) {
		d := guard(withKey("k"))
		got := f.admit(d)
		f.settle(d, got, rules.Unknown)
		if f.report(settlement(d, got, rules.Unknown)).Applied {
			f.Fatal("the copy was applied")
		}
		f.expect(decision.OutcomeUnknown, again(d))
		f.expect(decision.OutcomeUnknown, again(d, retrying, withScope("bob")))
		retry := again(d, retrying)
		if got := f.admit(retry); got.Hold != "" {
			f.Fatalf("a guard took hold %q", got.Hold)
		}
		f.expect(decision.Twin, again(d))
		f.settle(retry, store.Decided{}, rules.Done)
		f.expect(decision.Replay, again(d))
	}},
	{"a guard past its lease is unknown", func(f *fixture) {
		d := guard(withKey("k"))
		f.admit(d)
		f.Advance(lease + moment)
		f.expect(decision.OutcomeUnknown, again(d))
		f.admit(again(d, retrying))
	}},
	{"H4: a repeated decide is the recorded grant, a late copy is gone", func(f *fixture) {
		d := guard(withKey("k"))
		got := f.admit(d)
		f.admit(d)
		f.settle(d, got, rules.Refused)
		f.expect(decision.Gone, d)
		f.admit(again(d))
	}},
	{"P3: a late copy of a settlement does not touch the next owner", func(f *fixture) {
		d := guard(withKey("k"))
		got := f.admit(d)
		f.settle(d, got, rules.Refused)
		next := again(d)
		f.admit(next)
		if s := f.report(settlement(d, got, rules.Refused)); s.Applied {
			f.Fatalf("settled %+v", s)
		}
		if twin := f.expect(decision.Twin, again(d)); twin.Owner != next.ID {
			f.Fatalf("owner %q, want %q", twin.Owner, next.ID)
		}
	}},
	{"P2: a guard that was done completes its key, whatever becomes of the retry that owns it", func(f *fixture) {
		for _, when := range []string{"before", "after"} {
			d := guard(withKey(when), retrying)
			got := f.admit(d)
			f.settle(d, got, rules.Unknown)
			retry := again(d)
			f.admit(retry)
			if when == "after" {
				f.settle(retry, store.Decided{}, rules.Unknown)
			}
			f.settle(d, got, rules.Done)
			f.replays(again(d), d.ID)
			f.report(settlement(retry, store.Decided{}, rules.NeverSent))
			f.replays(again(d), d.ID)
		}
	}},
	{"P5: a guard completes no key that another request has taken since", func(f *fixture) {
		for name, change := range map[string]func(*store.Decide){"body": otherBody, "scope": withScope("bob")} {
			d := guard(withKey(name), retrying)
			got := f.admit(d)
			f.settle(d, got, rules.Unknown)
			f.finish(rules.Refused, again(d))
			other := again(d, change)
			f.admit(other)
			f.report(settlement(d, got, rules.Done))
			if twin := f.expect(decision.Twin, again(other)); twin.Owner != other.ID {
				f.Fatalf("another %s: owner %q, want %q", name, twin.Owner, other.ID)
			}
		}
	}},
	{"limits apply", func(f *fixture) {
		d := guard(withSubject("s"), func(d *store.Decide) { d.SubjectLimit = perMinute(2) })
		f.admit(again(d))
		f.admit(again(d))
		f.expect(decision.LimitedSubject, again(d))
	}},
}
