package storetest

import (
	"bytes"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// twinTests are about requests that meet a running one with their key.
var twinTests = []test{
	{"a twin is told its owner and whether it may have the answer", func(f *fixture) {
		d := request(withKey("k"))
		f.admit(d)
		if got := f.expect(decision.Twin, again(d)); got.Owner != d.ID || !got.MayReplay {
			f.Fatalf("owner %q, may replay %t", got.Owner, got.MayReplay)
		}
		if got := f.expect(decision.Twin, again(d, withScope("bob"))); got.Owner != d.ID || got.MayReplay {
			f.Fatalf("owner %q, may replay %t for another scope", got.Owner, got.MayReplay)
		}
		f.units(d, 0, 1)
	}},
	{"a registered twin gets the owner's answer, whatever the outcome", func(f *fixture) {
		for _, outcome := range []rules.Outcome{rules.Booked, rules.Duplicate, rules.Refused, rules.SoldOut, rules.Busy, rules.Unknown, rules.NeverSent} {
			d := request(withKey("k"), func(d *store.Decide) { d.Slot = outcome.String(); d.Group = outcome.String() })
			got := f.admit(d)
			twin := again(d, waiting)
			twin.Await = f.expect(decision.Twin, twin).Owner
			f.settle(d, got, outcome)
			for range 2 { // the reply of the first may be lost
				answered := f.expect(decision.Answered, twin)
				if !answered.MayReplay || !bytes.Equal(answered.Answer, answerOf(d.ID)) {
					f.Fatalf("%s: answered %q, may replay %t", outcome, answered.Answer, answered.MayReplay)
				}
			}
		}
	}},
	{"P5: a twin of another scope learns that the answer is there, and nothing of it", func(f *fixture) {
		d := request(withKey("k"))
		got := f.admit(d)
		twin, stranger := again(d, waiting), again(d, waiting, withScope("bob"))
		f.expect(decision.Twin, twin)
		stranger.Await = f.expect(decision.Twin, stranger).Owner
		f.settle(d, got, rules.Refused)
		answered := f.expect(decision.Answered, stranger)
		if answered.MayReplay || len(answered.Answer) != 0 {
			f.Fatalf("another scope was given %q (may replay %t)", answered.Answer, answered.MayReplay)
		}
	}},
	{"without a registered twin no answer is left", func(f *fixture) {
		d := request(withKey("k"))
		got := f.admit(d)
		twin := again(d)
		twin.Await = f.expect(decision.Twin, twin).Owner
		f.settle(d, got, rules.Refused)
		f.admit(twin)
	}},
	{"an answer is left until the twins stop waiting", func(f *fixture) {
		d := request(withKey("k"))
		got := f.admit(d)
		twin := again(d, waiting)
		twin.Await = f.expect(decision.Twin, twin).Owner
		f.settle(d, got, rules.Refused)
		f.Advance(twin.Wait + moment)
		f.admit(twin)
	}},
	{"the answer goes before a newer run of the key", func(f *fixture) {
		d := request(withKey("k"))
		got := f.admit(d)
		twin := again(d, waiting)
		twin.Await = f.expect(decision.Twin, twin).Owner
		f.settle(d, got, rules.Busy)
		newer := again(d)
		f.admit(newer)
		f.expect(decision.Answered, twin)
		if late := f.expect(decision.Twin, again(d)); late.Owner != newer.ID {
			f.Fatalf("owner %q, want %q", late.Owner, newer.ID)
		}
	}},
	{"an owner that never settles leaves its twins an unknown outcome", func(f *fixture) {
		d := request(withKey("k"))
		f.admit(d)
		twin := again(d, waiting)
		twin.Await = f.expect(decision.Twin, twin).Owner
		f.Advance(lease + moment)
		f.expect(decision.OutcomeUnknown, twin)
	}},
	{"an owner that has no answer leaves none, and its twins are decided afresh", func(f *fixture) {
		for outcome, want := range map[rules.Outcome]decision.Verdict{
			rules.NeverSent: decision.Admitted, rules.Refused: decision.Admitted,
			rules.Booked: decision.Replay, rules.Unknown: decision.OutcomeUnknown,
		} {
			d := request(withKey("k-"+outcome.String()), withCapacity(9))
			got := f.admit(d)
			twin := again(d, waiting)
			twin.Await = f.expect(decision.Twin, twin).Owner
			silent := settlement(d, got, outcome)
			silent.Answer = nil
			f.report(silent)
			if decided := f.expect(want, twin); len(decided.Answer) != 0 {
				f.Fatalf("%s: answered %q", outcome, decided.Answer)
			}
		}
	}},
	{"a settlement that comes twice leaves one answer", func(f *fixture) {
		d := request(withKey("k"))
		got := f.admit(d)
		twin := again(d, waiting)
		twin.Await = f.expect(decision.Twin, twin).Owner
		f.settle(d, got, rules.Booked)
		copied := settlement(d, got, rules.Booked)
		copied.Answer = []byte("another")
		if f.report(copied).Applied {
			f.Fatal("the copy was applied")
		}
		if answered := f.expect(decision.Answered, twin); !bytes.Equal(answered.Answer, answerOf(d.ID)) {
			f.Fatalf("answered %q", answered.Answer)
		}
		if replay := f.expect(decision.Replay, again(d)); !bytes.Equal(replay.Answer, answerOf(d.ID)) {
			f.Fatalf("replayed %q", replay.Answer)
		}
	}},
}
