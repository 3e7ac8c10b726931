package storetest

import (
	"bytes"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// writeBackTests are about the keys of requests that went to the backend without a
// decide: claimed by a touch, or written by the settlement of a hold never seen.
var writeBackTests = []test{
	{"a forced request claims its key: twins wait for it and get its answer", func(f *fixture) {
		d := request(withKey("k"))
		f.touch(d, "gate-a", force(d))
		twin, stranger := again(d, waiting), again(d, waiting, withScope("bob"))
		if got := f.expect(decision.Twin, twin); got.Owner != d.ID || !got.MayReplay {
			f.Fatalf("owner %q, may replay %t", got.Owner, got.MayReplay)
		}
		if got := f.expect(decision.Twin, stranger); got.Owner != d.ID || got.MayReplay {
			f.Fatalf("owner %q, may replay %t for another scope", got.Owner, got.MayReplay)
		}
		f.expect(decision.Mismatch, again(d, otherBody))
		f.settle(d, grantOf(d), rules.Booked)
		twin.Await, stranger.Await = d.ID, d.ID
		if got := f.expect(decision.Answered, twin); !bytes.Equal(got.Answer, answerOf(d.ID)) {
			f.Fatalf("answered %q", got.Answer)
		}
		if got := f.expect(decision.Answered, stranger); got.MayReplay || len(got.Answer) != 0 {
			f.Fatalf("P5: another scope was given %q", got.Answer)
		}
		f.replays(again(d), d.ID)
		f.expect(decision.KeyDone, again(d, withScope("bob")))
	}},
	{"a claimed key is awaited for what is left of the lease", func(f *fixture) {
		d := request(withKey("k"))
		forced := force(d)
		forced.Lease = lease / 2
		f.touch(d, "gate-a", forced)
		f.Advance(lease/2 - moment)
		f.expect(decision.Twin, again(d))
		f.Advance(2 * moment)
		f.expect(decision.OutcomeUnknown, again(d))
		f.Advance(keyTTL - lease - moment)
		f.expect(decision.OutcomeUnknown, again(d))
		f.Advance(lease + moment)
		f.admit(again(d))
	}},
	{"a forced request claims a key whose outcome is not known", func(f *fixture) {
		for name, leave := range map[string]func(*store.Decide, store.Decided){
			"unknown":        func(d *store.Decide, got store.Decided) { f.settle(d, got, rules.Unknown) },
			"past its lease": func(*store.Decide, store.Decided) { f.Advance(lease + moment) },
		} {
			first := request(withKey(name), withCapacity(9))
			leave(first, f.admit(first))
			second := again(first)
			f.touch(second, "gate-a", force(second))
			if got := f.expect(decision.Twin, again(first)); got.Owner != second.ID {
				f.Fatalf("%s: owner %q, want %q", name, got.Owner, second.ID)
			}
			f.settle(second, grantOf(second), rules.Booked)
			f.replays(again(first), second.ID)
		}
	}},
	{"P5: a key claimed by another scope answers that scope only", func(f *fixture) {
		first := request(withKey("k"), withCapacity(9))
		f.settle(first, f.admit(first), rules.Unknown)
		second := again(first, withScope("bob"))
		f.touch(second, "gate-a", force(second))
		f.settle(second, grantOf(second), rules.Booked)
		f.replays(again(second), second.ID)
		f.expect(decision.KeyDone, again(first))
	}},
	{"a forced request leaves a key that is running, done or another request's", func(f *fixture) {
		for name, tt := range map[string]struct {
			owner func(*store.Decide, store.Decided) // what becomes of the key's owner first
			body  func(*store.Decide)
			then  decision.Verdict
		}{
			"running":                           {func(*store.Decide, store.Decided) {}, sameBody, decision.Twin},
			"done":                              {func(d *store.Decide, got store.Decided) { f.settle(d, got, rules.Booked) }, sameBody, decision.Replay},
			"running, another request's":        {func(*store.Decide, store.Decided) {}, otherBody, decision.Twin},
			"unknown, another request's":        {func(d *store.Decide, got store.Decided) { f.settle(d, got, rules.Unknown) }, otherBody, decision.OutcomeUnknown},
			"past its lease, another request's": {func(*store.Decide, store.Decided) { f.Advance(lease + moment) }, otherBody, decision.OutcomeUnknown},
			"done, another request's":           {func(d *store.Decide, got store.Decided) { f.settle(d, got, rules.Booked) }, otherBody, decision.Replay},
		} {
			first := request(withKey(name), withCapacity(99))
			got := f.admit(first)
			tt.owner(first, got)
			second := again(first, tt.body)
			f.touch(second, "gate-a", force(second))
			f.state(second, second.ID, decision.Held)
			check := func(when string) {
				f.Helper()
				switch got := f.expect(tt.then, again(first)); {
				case tt.then == decision.Twin && got.Owner != first.ID:
					f.Fatalf("%s, %s: owner %q, want %q", name, when, got.Owner, first.ID)
				case tt.then == decision.Replay && !bytes.Equal(got.Answer, answerOf(first.ID)):
					f.Fatalf("%s, %s: replayed %q", name, when, got.Answer)
				}
			}
			check("registered")
			f.settle(second, grantOf(second), rules.Booked)
			check("settled")
		}
	}},
	{"an unseen booking writes its key over none", func(f *fixture) {
		d := request(withKey("k"))
		f.settle(d, grantOf(d), rules.Booked)
		f.replays(again(d), d.ID)
		f.expect(decision.KeyDone, again(d, withScope("bob")))
		f.expect(decision.Mismatch, again(d, otherBody))
	}},
	{"an unseen booking writes its key over one whose outcome is not known, with its scope", func(f *fixture) {
		for name, leave := range map[string]func(*store.Decide, store.Decided){
			"unknown":        func(d *store.Decide, got store.Decided) { f.settle(d, got, rules.Unknown) },
			"past its lease": func(*store.Decide, store.Decided) { f.Advance(lease + moment) },
		} {
			first := request(withKey(name), withCapacity(9))
			got := f.admit(first)
			leave(first, got)
			second := again(first, withScope("bob"))
			f.settle(second, grantOf(second), rules.Booked)
			f.replays(again(second), second.ID)
			f.expect(decision.KeyDone, again(first)) // P5
			f.settle(first, got, rules.Refused)      // its owner of before comes late
			f.replays(again(second), second.ID)
		}
	}},
	{"an unseen booking never writes over running, done or another request's key", func(f *fixture) {
		for name, tt := range map[string]struct {
			owner func(*store.Decide, store.Decided)
			body  func(*store.Decide)
			then  decision.Verdict
		}{
			"running":                    {func(*store.Decide, store.Decided) {}, sameBody, decision.Twin},
			"done":                       {func(d *store.Decide, got store.Decided) { f.settle(d, got, rules.Booked) }, sameBody, decision.Replay},
			"unknown, another request's": {func(d *store.Decide, got store.Decided) { f.settle(d, got, rules.Unknown) }, otherBody, decision.OutcomeUnknown},
			"done, another request's":    {func(d *store.Decide, got store.Decided) { f.settle(d, got, rules.Booked) }, otherBody, decision.Replay},
		} {
			first := request(withKey(name), withCapacity(99))
			tt.owner(first, f.admit(first))
			before := f.slot(first).Confirmed
			second := again(first, tt.body)
			f.settle(second, grantOf(second), rules.Booked)
			if after := f.slot(first).Confirmed; after != before+1 {
				f.Fatalf("%s: %d confirmed, want %d", name, after, before+1)
			}
			if got := f.expect(tt.then, again(first)); tt.then == decision.Replay && !bytes.Equal(got.Answer, answerOf(first.ID)) {
				f.Fatalf("%s: replayed %q", name, got.Answer)
			}
		}
	}},
	{"an unseen outcome that is not kept leaves the key", func(f *fixture) {
		for _, outcome := range []rules.Outcome{rules.Refused, rules.Busy, rules.NeverSent, rules.Unknown} {
			first := request(withKey(outcome.String()), withCapacity(99))
			f.settle(first, f.admit(first), rules.Unknown)
			second := again(first)
			f.settle(second, grantOf(second), outcome)
			f.expect(decision.OutcomeUnknown, again(first))
		}
	}},
}

func sameBody(*store.Decide)    {}
func otherBody(d *store.Decide) { d.Fingerprint = fingerprint(d, "other") }

// replays fails unless d is answered with what the request of this id got.
func (f *fixture) replays(d *store.Decide, id string) {
	f.Helper()
	if got := f.expect(decision.Replay, d); !bytes.Equal(got.Answer, answerOf(id)) {
		f.Fatalf("replayed %q, want the answer of %s", got.Answer, id)
	}
}
