package storetest

import (
	"bytes"
	"strings"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// keyTests follow a key's record through decide's step 4.
var keyTests = []test{
	{"done: the stored answer is replayed byte for byte", func(f *fixture) {
		d := request(withKey("k"))
		got := f.admit(d)
		s := settlement(d, got, rules.Booked)
		s.Answer = []byte("\x00\xff\r\n{}: " + strings.Repeat("é", 1000))
		f.report(s)
		for range 3 {
			replay := f.expect(decision.Replay, again(d))
			if !bytes.Equal(replay.Answer, s.Answer) {
				f.Fatalf("replayed %q", replay.Answer)
			}
		}
		f.units(d, 1, 0)
	}},
	{"done: another scope gets no answer", func(f *fixture) {
		d := request(withKey("k"))
		f.finish(rules.Booked, d)
		for _, scope := range []string{"bob", ""} {
			got := f.expect(decision.KeyDone, again(d, withScope(scope)))
			if got.Answer != nil {
				f.Fatalf("scope %q was given %q", scope, got.Answer)
			}
		}
	}},
	{"done: without a scope only a strong key is replayed", func(f *fixture) {
		d := request(withKey("k"), withScope(""))
		f.finish(rules.Booked, d)
		f.expect(decision.KeyDone, again(d))
		f.expect(decision.Replay, again(d, func(d *store.Decide) { d.BareReplay = true }))
		f.expect(decision.KeyDone, again(d, func(d *store.Decide) { d.BareReplay = true; d.Scope = "bob" }))
	}},
	{"H19: another fingerprint is a mismatch in every state", func(f *fixture) {
		d := request(withKey("k"), retrying)
		other := func(d *store.Decide) { d.Fingerprint = fingerprint(d, "other") }
		got := f.admit(d)
		f.expect(decision.Mismatch, again(d, other)) // running
		f.settle(d, got, rules.Unknown)
		f.expect(decision.Mismatch, again(d, other)) // unknown
		f.settle(d, got, rules.Booked)
		f.expect(decision.Mismatch, again(d, other)) // done
		f.expect(decision.Mismatch, again(d, other, withScope("bob")))
	}},
	{"H19: a key used for another slot is a mismatch", func(f *fixture) {
		d := request(withKey("k"), retrying)
		f.settle(d, f.admit(d), rules.Unknown)
		elsewhere := request(withKey("k"), retrying, func(d *store.Decide) { d.Slot = "lesson-2" })
		f.expect(decision.Mismatch, elsewhere)
		f.unseen(elsewhere)
	}},
	{"running past its lease counts as unknown", func(f *fixture) {
		d := request(withKey("k"))
		f.admit(d)
		f.expect(decision.Twin, again(d))
		f.Advance(lease + moment)
		f.expect(decision.OutcomeUnknown, again(d))
	}},
	{"unknown: without retry, or with another scope, the outcome stays unknown", func(f *fixture) {
		d := request(withKey("k"))
		f.settle(d, f.admit(d), rules.Unknown)
		f.expect(decision.OutcomeUnknown, again(d))
		f.expect(decision.OutcomeUnknown, again(d, retrying, withScope("bob")))
		f.expect(decision.OutcomeUnknown, again(d, retrying, withScope("")))
		f.units(d, 0, 1)
	}},
	{"H7: under reject an unknown key stays unknown after its hold lapsed", func(f *fixture) {
		d := request(withKey("k"))
		f.settle(d, f.admit(d), rules.Unknown)
		f.Advance(holdTTL + moment)
		f.units(d, 0, 0)
		f.expect(decision.OutcomeUnknown, again(d))
		f.Advance(keyTTL - holdTTL - 4*moment)
		f.expect(decision.OutcomeUnknown, again(d))
	}},
	{"H21: an adopter that finds its hold confirmed completes the key without a body", func(f *fixture) {
		first := request(withKey("k"), retrying)
		got := f.admit(first)
		f.Advance(lease + moment)
		second := again(first)
		adopted := f.admit(second)
		f.settle(first, got, rules.Booked) // no longer the owner: the key is not touched
		f.Advance(lease + moment)          // the owner died
		f.state(first, got.Hold, decision.Confirmed)
		for range 2 {
			replay := f.expect(decision.Replay, again(first))
			if len(replay.Answer) != 0 {
				f.Fatalf("replayed %q, want an answer without body", replay.Answer)
			}
		}
		f.settle(second, adopted, rules.Duplicate)
		f.units(first, 1, 0)
		if replay := f.expect(decision.Replay, again(first)); len(replay.Answer) != 0 {
			f.Fatalf("the replay changed to %q", replay.Answer)
		}
	}},
	{"H22: a key whose hold lapsed gets a new hold under the new id", func(f *fixture) {
		d := request(withKey("k"), retrying)
		got := f.admit(d)
		f.settle(d, got, rules.Unknown)
		f.Advance(holdTTL + moment)
		retry := again(d)
		fresh := f.admit(retry)
		if fresh.Adopted || fresh.Hold != retry.ID {
			f.Fatalf("took hold %s (adopted %t), want a new one, %s", fresh.Hold, fresh.Adopted, retry.ID)
		}
		f.units(d, 0, 1)
		f.expect(decision.Gone, d)
	}},
	{"H22: the new hold of an unknown key passes all later checks", func(f *fixture) {
		d := request(withKey("k"), retrying, withCapacity(1))
		f.settle(d, f.admit(d), rules.Unknown)
		f.Advance(holdTTL + moment)
		f.finish(rules.Booked, request(withCapacity(1)))
		f.expect(decision.SoldOut, again(d))
		f.expect(decision.OutcomeUnknown, again(d, func(d *store.Decide) { d.RetryUnknown = false }))
	}},
	{"a released hold's unknown key takes a new hold", func(f *fixture) {
		d := request(withKey("k"), retrying)
		got := f.admit(d)
		f.settle(d, got, rules.Unknown)
		f.release(d, got.Hold, decision.HoldUnknown)
		retry := again(d)
		if fresh := f.admit(retry); fresh.Hold != retry.ID {
			f.Fatalf("took hold %s, want %s", fresh.Hold, retry.ID)
		}
	}},
	{"none: an outcome that is not kept frees the key", func(f *fixture) {
		for _, outcome := range []rules.Outcome{rules.Refused, rules.SoldOut, rules.Busy, rules.NeverSent} {
			d := request(withKey("k-"+outcome.String()), func(d *store.Decide) { d.Slot = outcome.String() })
			f.finish(outcome, d)
			f.change(d, store.SlotChange{Closed: ptr(false)}) // ends the mark of sold_out
			f.admit(again(d, func(d *store.Decide) { d.Fingerprint = fingerprint(d, "other") }))
		}
	}},
	{"done: a refusal that is kept is replayed", func(f *fixture) {
		d := request(withKey("k"))
		got := f.admit(d)
		s := settlement(d, got, rules.Refused)
		s.Keep = true
		f.report(s)
		if replay := f.expect(decision.Replay, again(d)); !bytes.Equal(replay.Answer, s.Answer) {
			f.Fatalf("replayed %q", replay.Answer)
		}
		f.units(d, 0, 0)
	}},
	{"only the owner completes the key", func(f *fixture) {
		first := request(withKey("k"), retrying)
		got := f.admit(first)
		f.Advance(lease + moment)
		second := again(first)
		f.admit(second)
		f.settle(first, got, rules.Refused)
		if twin := f.expect(decision.Twin, again(first)); twin.Owner != second.ID {
			f.Fatalf("twin of %s, want %s", twin.Owner, second.ID)
		}
	}},
	{"a settlement makes a lost key record anew", func(f *fixture) {
		d := request(withKey("k"))
		s := settlement(d, store.Decided{Hold: d.ID}, rules.Booked)
		f.report(s)
		if replay := f.expect(decision.Replay, again(d)); !bytes.Equal(replay.Answer, s.Answer) {
			f.Fatalf("replayed %q", replay.Answer)
		}
		f.expect(decision.KeyDone, again(d, withScope("bob")))
		f.expect(decision.Mismatch, again(d, func(d *store.Decide) { d.Fingerprint = fingerprint(d, "other") }))
	}},
	{"a key is forgotten after its ttl", func(f *fixture) {
		done, unknown := request(withKey("done"), withCapacity(9)), request(withKey("unknown"), withCapacity(9))
		f.finish(rules.Booked, done)
		f.settle(unknown, f.admit(unknown), rules.Unknown)
		f.Advance(keyTTL - moment)
		f.expect(decision.Replay, again(done))
		f.expect(decision.OutcomeUnknown, again(unknown))
		f.Advance(2 * moment)
		f.admit(again(done))
		f.admit(again(unknown))
	}},
	{"a kept answer stands for its whole ttl", func(f *fixture) {
		d := request(withKey("k"), retrying)
		f.settle(d, f.admit(d), rules.Unknown)
		f.Advance(keyTTL - 2*moment)
		f.finish(rules.Booked, again(d))
		f.Advance(keyTTL - moment)
		f.expect(decision.Replay, again(d))
		f.Advance(2 * moment)
		f.admit(again(d))
	}},
	{"group and partition keep equal keys apart", func(f *fixture) {
		d := request(withKey("k"), withCapacity(9))
		f.finish(rules.Booked, d)
		f.admit(again(d, func(d *store.Decide) { d.Group = "other" }))
		f.admit(again(d, func(d *store.Decide) { d.Partition = "other" }))
		f.expect(decision.Replay, again(d))
	}},
}

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
