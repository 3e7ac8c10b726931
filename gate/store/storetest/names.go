package storetest

import (
	"context"
	"strings"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// oddTexts are texts that a store's naming could cut, join, escape or fold.
var oddTexts = []string{
	"a", "A", "a ", " a", "a:b", "b", "a:", ":a", ":", "::", "a:b:c",
	"{}", "{a}", "}{", "a}:{b", "*", "?", "[a-z]", "a*", "\\", "%00", "%", "\x00", "a\x00", "\x00a", "a\x00b",
	"\n", "a\nb", "\r\n", "\t", "\"", "'", "null", "nil", "false", "0", "-1", "1e3", "1", "01",
	"é", "e\u0301", "名额", "\U0001F3AB", "\u202e", "\ufeff", "Ａ",
	strings.Repeat("x", 1024), strings.Repeat("x", 1023) + "y", strings.Repeat("é", 512),
}

// nameTests check that no two texts ever meet and that all come back as they went.
var nameTests = []test{
	{"slots of odd names stay apart and read back", func(f *fixture) {
		for _, text := range oddTexts {
			f.admit(request(withCapacity(1), withSubject(text), func(d *store.Decide) { d.Slot = text }))
		}
		for _, text := range oddTexts {
			d := request(withCapacity(1), func(d *store.Decide) { d.Slot = text })
			f.expect(decision.SoldOut, d)
			got := f.slot(d)
			if got.Slot != text || got.Held != 1 || len(got.Holds) != 1 || got.Holds[0].Subject != text {
				f.Fatalf("slot %q reads %+v", text, got)
			}
		}
		seen := map[string]bool{}
		for cursor := ""; ; {
			slots, next, err := f.gate().Slots(context.Background(), store.SlotQuery{Pool: pool, Capacity: 1, Retain: retain}, cursor, 7)
			if err != nil {
				f.Fatal(err)
			}
			for _, s := range slots {
				seen[s.Slot] = true
			}
			if cursor = next; cursor == "" {
				break
			}
		}
		for _, text := range oddTexts {
			if !seen[text] {
				f.Fatalf("slot %q is not listed", text)
			}
		}
	}},
	{"pool and slot do not run into each other", func(f *fixture) {
		for _, name := range [][2]string{{"a:b", "c"}, {"a", "b:c"}, {"a:b:c", ""}, {"a}", "{b"}, {"a", "}{b"}, {"a\x00", "b"}, {"a", "\x00b"}, {"ab", "c"}, {"a", "bc"}} {
			at := func(d *store.Decide) { d.Pool, d.Slot, d.Capacity = name[0], name[1], 1 }
			f.admit(request(at))
			f.expect(decision.SoldOut, request(at))
		}
	}},
	{"group, partition and key do not run into each other", func(f *fixture) {
		for _, name := range [][3]string{
			{"a", "b", "c"}, {"a:b", "", "c"}, {"a", "b:c", "d"}, {"a", "b", "c:d"}, {"a:b", "c", "d"}, {"", "ab", "c"}, {"ab", "", "c"},
			{"a", "", "bc"}, {"", "", "abc"}, {"a\x00", "b", "c"}, {"a", "\x00b", "c"}, {"a", "b", "\x00c"}, {"1", "a1", "b"}, {"1a", "1", "b"},
		} {
			at := func(d *store.Decide) { d.Group, d.Partition, d.Key = name[0], name[1], name[2]; d.Capacity = 99 }
			d := request(at)
			f.finish(rules.Booked, d)
			if got := f.expect(decision.Replay, again(d)); string(got.Answer) != string(answerOf(d.ID)) {
				f.Fatalf("key %q was answered %q", name, got.Answer)
			}
		}
	}},
	{"keys of odd texts stay apart", func(f *fixture) {
		requests := make([]*store.Decide, len(oddTexts))
		for i, text := range oddTexts {
			requests[i] = request(withKey(text), withCapacity(999))
			f.finish(rules.Booked, requests[i])
		}
		for _, d := range requests {
			if got := f.expect(decision.Replay, again(d)); string(got.Answer) != string(answerOf(d.ID)) {
				f.Fatalf("key %q was answered %q", d.Key, got.Answer)
			}
		}
	}},
	{"subjects of odd texts stay apart, in one slot, in the pool and in limits", func(f *fixture) {
		one := func(d *store.Decide) {
			d.OnePerSubject, d.MaxPerSubject, d.Capacity = true, 1, 999
			d.SubjectLimit = perMinute(2)
		}
		for _, text := range oddTexts {
			f.finish(rules.Booked, request(one, withSubject(text)))
		}
		for _, text := range oddTexts {
			f.expect(decision.SubjectHolds, request(one, withSubject(text)))
			f.expect(decision.LimitedSubject, request(one, withSubject(text)))
			f.expect(decision.SubjectFull, request(one, withSubject(text), func(d *store.Decide) {
				d.Slot = "lesson-2"
				d.SubjectLimit = store.Limit{}
			}))
		}
	}},
	{"scopes of odd texts are compared whole", func(f *fixture) {
		for i, text := range oddTexts {
			d := request(withKey(oddTexts[i]), withScope(text), withCapacity(999))
			f.finish(rules.Booked, d)
			f.expect(decision.Replay, again(d))
			f.expect(decision.KeyDone, again(d, withScope(text+"x")))
			f.expect(decision.KeyDone, again(d, withScope(strings.TrimSuffix(text, text[len(text)-1:]))))
		}
	}},
}
