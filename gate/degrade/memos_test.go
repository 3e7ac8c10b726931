package degrade

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/memstore"
	"github.com/slotgate/slotgate/rules"
)

// stored is a settlement whose answer is kept under a key.
func stored(key, scope, answer string) *store.Settle {
	return &store.Settle{
		ID: "attempt-" + key, Outcome: rules.Booked, Keep: true, KeyTTL: time.Hour,
		Group: "g", Partition: "p", Key: key, Scope: scope, Fingerprint: [32]byte{1}, Answer: []byte(answer),
	}
}

// asking is a question with the key of stored.
func asking(key, scope string) *store.Decide {
	return &store.Decide{
		ID: "question-" + key, Group: "g", Partition: "p", Key: key, Scope: scope, Fingerprint: [32]byte{1},
		KeyTTL: time.Hour, Lease: time.Second,
	}
}

func TestAMemoSaysWhatAStoreSays(t *testing.T) {
	memory := memstore.New(memstore.Options{})
	defer memory.Close()
	local := NewLocal()
	defer local.Close()
	for _, s := range []*store.Settle{
		stored("scoped", "ann", "one"), stored("scoped", "ann", "another"), stored("bare", "", "two"),
		stored("without-answer", "ann", ""),
	} {
		local.Remember(s)
		if _, err := memory.Settle(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	with := func(d *store.Decide, change func(*store.Decide)) *store.Decide { change(d); return d }
	for name, d := range map[string]*store.Decide{
		"same":           asking("scoped", "ann"),
		"other scope":    asking("scoped", "bob"),
		"no scope":       asking("scoped", ""),
		"no scope, bare": with(asking("scoped", ""), func(d *store.Decide) { d.BareReplay = true }),
		"content":        with(asking("scoped", "ann"), func(d *store.Decide) { d.Fingerprint = [32]byte{2} }),
		"both":           with(asking("scoped", "bob"), func(d *store.Decide) { d.Fingerprint = [32]byte{2} }),
		"bare":           with(asking("bare", ""), func(d *store.Decide) { d.BareReplay = true }),
		"short":          asking("bare", ""),
		"gained a scope": with(asking("bare", "ann"), func(d *store.Decide) { d.BareReplay = true }),
		"without answer": asking("without-answer", "ann"),
		"other key":      asking("never-seen", "ann"),
		"partition":      with(asking("scoped", "ann"), func(d *store.Decide) { d.Partition = "other" }),
		"group":          with(asking("scoped", "ann"), func(d *store.Decide) { d.Group = "gp"; d.Partition = "" }),
	} {
		want, err := memory.Decide(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		got, err := local.Decide(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		if got.Verdict != want.Verdict || got.MayReplay != want.MayReplay || string(got.Answer) != string(want.Answer) {
			t.Errorf("%s: %v, %q; a store says %v, %q", name, got.Verdict, got.Answer, want.Verdict, want.Answer)
		}
	}
	// Whoever asked in vain has changed nothing.
	for range 2 {
		got, err := local.Decide(t.Context(), asking("scoped", "ann"))
		if err != nil || got.Verdict != decision.Replay || string(got.Answer) != "one" {
			t.Fatalf("%v, %q, %v", got.Verdict, got.Answer, err)
		}
	}
}

func TestAMemoEndsWithItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local := NewLocal()
		defer local.Close()
		brief, long := stored("brief", "ann", "1"), stored("long", "ann", "2")
		brief.KeyTTL = time.Second
		expired := stored("expired", "ann", "3")
		expired.KeyTTL = 0
		for _, s := range []*store.Settle{expired, long, brief} {
			local.Remember(s)
		}
		known := func(key string) bool {
			_, known := local.memos.decide(asking(key, "ann"))
			return known
		}
		if known("expired") || !known("brief") || !known("long") {
			t.Fatal("not as long as the keys live")
		}
		time.Sleep(time.Second)
		if known("brief") || !known("long") {
			t.Fatal("the brief one is still known, or the long one is not")
		}
		time.Sleep(localMemo)
		if known("long") {
			t.Fatal("known after the time of memos")
		}
		local.Remember(stored("brief", "ann", "again"))
		if !known("brief") || local.memos.count != 1 {
			t.Fatalf("%d memos; want the one that was remembered again", local.memos.count)
		}
	})
}

func TestTheLatestAnswersAreRememberedInFewBytes(t *testing.T) {
	answer := strings.Repeat("a", 100)
	local := NewLocal()
	defer local.Close()
	before := liveHeap()
	const given = maxMemos + 5000
	for i := range given {
		local.Remember(stored(fmt.Sprint("key-", i), "ann", answer))
	}
	each := (liveHeap() - before) / maxMemos
	if t.Logf("%d bytes for each answer of %d", each, len(answer)); each > 200 {
		t.Error("that is much")
	}
	for i := 0; i < given; i += 7 {
		if _, known := local.memos.decide(asking(fmt.Sprint("key-", i), "ann")); known != (i >= given-maxMemos) {
			t.Fatalf("answer %d of %d: known %v", i, given, known)
		}
	}
	// What was remembered leaves an outage its room.
	d, verdict, _ := asks(t, local, 1, -1, "a-new-one")
	if verdict != decision.Admitted {
		t.Fatalf("%v: %+v", verdict, d)
	}
}

func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestLongAnswersAreBounded(t *testing.T) {
	local := NewLocal()
	defer local.Close()
	answer := strings.Repeat("a", memoMemory/10)
	for i := range 30 {
		local.Remember(stored(fmt.Sprint(i), "ann", answer))
		if held := local.memos.log.len(); held > memoMemory {
			t.Fatalf("%d bytes", held)
		}
	}
	local.Remember(stored("enormous", "ann", strings.Repeat("a", memoMemory)))
	for i := range 30 {
		decided, known := local.memos.decide(asking(fmt.Sprint(i), "ann"))
		if known != (i >= 30-9) || known && string(decided.Answer) != answer {
			t.Fatalf("answer %d of 30: known %v, %d bytes", i, known, len(decided.Answer))
		}
	}
	if _, known := local.memos.decide(asking("enormous", "ann")); known {
		t.Fatal("an answer longer than all that may be remembered is")
	}
}

func BenchmarkRemember(b *testing.B) {
	local := NewLocal()
	defer local.Close()
	s := stored("", "Bearer 0123456789abcdef", strings.Repeat("a", 100))
	keys := make([]string, 2*maxMemos)
	for i := range keys {
		keys[i] = fmt.Sprintf("key-%012d", i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Key = keys[i%len(keys)]
		local.Remember(s)
	}
}
