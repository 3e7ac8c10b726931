package storetest

import (
	"bytes"
	"fmt"
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
	{"P2: a booked attempt completes its key, whatever becomes of the retry that owns it", func(f *fixture) {
		made := []rules.Outcome{rules.Booked, rules.Duplicate}
		for _, retried := range []rules.Outcome{rules.NeverSent, rules.Refused, rules.Unknown, rules.Booked, rules.Duplicate} {
			for _, outcome := range made {
				for _, when := range []string{"before", "after"} {
					if when == "after" && !retried.Definite() {
						continue // the retry's own answer came first
					}
					name := fmt.Sprint(outcome, " ", when, " ", retried)
					first := request(withKey(name), retrying, func(d *store.Decide) { d.Slot = name })
					got := f.admit(first)
					f.settle(first, got, rules.Unknown)
					retry := again(first)
					adopted := f.admit(retry)
					if when == "after" {
						f.settle(retry, adopted, retried)
					}
					f.settle(first, got, outcome)
					f.replays(again(first), first.ID)
					if when == "before" {
						f.settle(retry, adopted, retried)
					}
					f.replays(again(first), first.ID)
					f.units(first, 1, 0)
				}
			}
		}
	}},
	{"P2: an attempt that is over completes a key that its retry has not settled in time", func(f *fixture) {
		first := request(withKey("k"), retrying)
		got := f.admit(first)
		f.Advance(lease + moment)
		f.admit(again(first))
		f.Advance(lease + moment) // the retry's gate died
		f.settle(first, got, rules.Booked)
		f.replays(again(first), first.ID)
	}},
	{"an attempt completes no key that stands for another hold by now", func(f *fixture) {
		first := request(withKey("k"), retrying)
		got := f.admit(first)
		f.settle(first, got, rules.Unknown)
		f.Advance(holdTTL + moment)
		retry := again(first)
		f.admit(retry) // H22
		f.settle(first, got, rules.Booked)
		if twin := f.expect(decision.Twin, again(first)); twin.Owner != retry.ID {
			f.Fatalf("twin of %s, want %s", twin.Owner, retry.ID)
		}
	}},
	{"an outcome that is not kept completes no key, whoever owns it", func(f *fixture) {
		first := request(withKey("k"), retrying)
		got := f.admit(first)
		f.settle(first, got, rules.Unknown)
		retry := again(first)
		f.admit(retry)
		s := settlement(first, got, rules.Booked)
		s.Keep = false
		f.report(s)
		if twin := f.expect(decision.Twin, again(first)); twin.Owner != retry.ID {
			f.Fatalf("twin of %s, want %s", twin.Owner, retry.ID)
		}
	}},
	{"H21: an adopter that finds its hold confirmed completes the key without a body", func(f *fixture) {
		first := request(withKey("k"), retrying)
		got := f.admit(first)
		f.Advance(lease + moment)
		second := again(first)
		adopted := f.admit(second)
		s := settlement(first, got, rules.Booked)
		s.Keep = false // and so the key is the second's still
		f.report(s)
		f.Advance(lease + moment) // which died
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
	{"H21: a hold that went on for its subject under another key is that key's, too", func(f *fixture) {
		first := request(withKey("k"), withSubject("s"), retrying, onePerSubject)
		got := f.admit(first)
		f.Advance(lease + moment)
		second := again(first, withKey("its own"))
		adopted := f.admit(second)
		if !adopted.Adopted || adopted.Hold != got.Hold {
			f.Fatalf("went on under %+v, want %s", adopted, got.Hold)
		}
		f.settle(first, got, rules.Booked) // the other key is not touched
		f.Advance(lease + moment)          // its owner died
		for range 2 {
			if replay := f.expect(decision.Replay, again(second)); len(replay.Answer) != 0 {
				f.Fatalf("replayed %q, want an answer without body", replay.Answer)
			}
		}
		f.settle(second, adopted, rules.Duplicate)
		f.units(first, 1, 0)
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
	{"only the owner releases the key", func(f *fixture) {
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
