package degrade

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// example is a settlement as the gate makes them, told apart by n.
func example(n int) *store.Settle {
	return &store.Settle{
		ID: fmt.Sprintf("attempt-%08d", n), Hold: fmt.Sprintf("hold-%011d", n),
		Pool: "lessons", Slot: "42", Subject: fmt.Sprint("student ", n), Units: 1,
		Capacity: 6, HoldTTL: 30 * time.Second, Retain: 720 * time.Hour, ReleaseSeq: int64(n),
		Outcome: rules.Booked,
		Group:   "book-lesson", Key: fmt.Sprint("key-", n), KeyTTL: 24 * time.Hour, Keep: true,
		Answer: bytes.Repeat([]byte{byte(n)}, 100), Scope: "Bearer abc", Fingerprint: [32]byte{byte(n)},
	}
}

func ids(entries []*entry) (ids []string) {
	for _, e := range entries {
		ids = append(ids, e.settle.ID)
	}
	return ids
}

// A step is one record of a journal: a settlement that comes to wait, or seqs
// that no longer do.
type step struct {
	add  *store.Settle
	done []uint64
}

// journalOf writes steps as a file, and tells where each record ends and what
// waits then.
func journalOf(steps []step) (file []byte, ends []int, waiting [][]string) {
	file, m := appendHeader(nil)
	ends, waiting = []int{len(file)}, [][]string{nil}
	live, seq := map[uint64]string{}, uint64(0)
	for _, s := range steps {
		if s.add != nil {
			seq++
			live[seq] = s.add.ID
			file = appendAdd(file, m, nil, newEntry(s.add, seq))
		} else {
			for _, seq := range s.done {
				delete(live, seq)
			}
			file = appendDone(file, m, s.done)
		}
		var names []string
		for _, seq := range slices.Sorted(maps.Keys(live)) {
			names = append(names, live[seq])
		}
		ends, waiting = append(ends, len(file)), append(waiting, names)
	}
	return file, ends, waiting
}

func anySteps(t *rapid.T) (steps []step) {
	added := 0
	for range rapid.IntRange(0, 12).Draw(t, "steps") {
		if added == 0 || rapid.Bool().Draw(t, "add") {
			added++
			s := example(added)
			s.Answer = rapid.SliceOf(rapid.Byte()).Draw(t, "answer")
			steps = append(steps, step{add: s})
			continue
		}
		seqs := rapid.SliceOfN(rapid.Uint64Range(1, uint64(added)), 1, 3).Draw(t, "done")
		steps = append(steps, step{done: seqs})
	}
	return steps
}

var somesteps = []step{
	{add: example(1)}, {add: example(2)}, {done: []uint64{1}}, {add: example(3)}, {add: example(4)}, {done: []uint64{2, 4}}, {add: example(5)},
}

func TestAFileCutAnywhereIsAnEarlierState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		file, ends, waiting := journalOf(anySteps(t))
		whole := 0
		for n := range len(file) + 1 {
			for whole+1 < len(ends) && ends[whole+1] <= n {
				whole++
			}
			torn := n - ends[whole]
			if n < ends[0] {
				torn = n
			}
			h, err := replay(file[:n], nil)
			if err != nil || h.damage != 0 || h.torn != torn || !slices.Equal(ids(h.waiting), waiting[whole]) {
				t.Fatalf("%d of %d bytes: %v, damage %d, torn %d, waiting %q; want torn %d, waiting %q",
					n, len(file), err, h.damage, h.torn, ids(h.waiting), torn, waiting[whole])
			}
		}
	})
}

func TestDamageCostsOnlyTheRecordItHit(t *testing.T) {
	file, ends, _ := journalOf(somesteps)
	for at := headerSize; at < len(file); at++ {
		hit, _ := slices.BinarySearch(ends, at+1)
		hit-- // the step whose record holds this byte
		without := slices.Clone(somesteps)
		without[hit] = step{done: []uint64{99}}
		if somesteps[hit].add != nil { // keep the numbers of those behind it
			without[hit] = step{add: &store.Settle{ID: "lost"}}
		}
		_, _, waiting := journalOf(without)
		want := slices.DeleteFunc(waiting[len(waiting)-1], func(id string) bool { return id == "lost" })

		bad := bytes.Clone(file)
		bad[at] ^= 0x10
		h, err := replay(bad, nil)
		damage, torn := ends[hit], 0
		if hit == len(somesteps)-1 {
			damage, torn = 0, len(file)-ends[hit]
		}
		if err != nil || h.damage != damage || h.torn != torn || !slices.Equal(ids(h.waiting), want) {
			t.Fatalf("byte %d: %v, damage %d, torn %d, waiting %q; want damage %d, torn %d, waiting %q",
				at, err, h.damage, h.torn, ids(h.waiting), damage, torn, want)
		}
	}
}

func TestAZeroedPageIsDamageAndAZeroedEndIsTorn(t *testing.T) {
	file, ends, _ := journalOf(somesteps)
	hole := bytes.Clone(file)
	clear(hole[ends[1]:ends[4]]) // 2, the end of 1, 3
	h, err := replay(hole, nil)
	if err != nil || h.damage != ends[1] || h.torn != 0 || !slices.Equal(ids(h.waiting), []string{example(1).ID, example(5).ID}) {
		t.Fatalf("%v, damage %d, torn %d, waiting %q", err, h.damage, h.torn, ids(h.waiting))
	}
	clear(hole[ends[1]:])
	h, err = replay(hole, nil)
	if err != nil || h.damage != 0 || h.torn != len(file)-ends[1] || !slices.Equal(ids(h.waiting), []string{example(1).ID}) {
		t.Fatalf("%v, damage %d, torn %d, waiting %q", err, h.damage, h.torn, ids(h.waiting))
	}
}

func TestAnAnswerCannotPassForARecord(t *testing.T) {
	planted, _, _ := journalOf([]step{{add: &store.Settle{ID: "planted"}}})
	bait := example(1)
	bait.Answer = planted[headerSize:] // whole, under the mark of another file
	file, ends, _ := journalOf([]step{{add: bait}, {add: example(2)}})
	for _, n := range []int{len(file), ends[1] - 1} {
		bad := bytes.Clone(file[:n])
		bad[ends[0]] ^= 1
		h, err := replay(bad, nil)
		if err != nil || slices.Contains(ids(h.waiting), "planted") {
			t.Fatalf("%v, waiting %q", err, ids(h.waiting))
		}
	}
}

func TestAFileOfAnotherKindIsNotTouched(t *testing.T) {
	file, m := appendHeader(nil)
	record := func(body string) []byte {
		return appendRecord(bytes.Clone(file), m, func(b []byte) []byte { return append(b, body...) })
	}
	for name, c := range map[string]struct {
		file []byte
		err  error
	}{
		"text":            {[]byte("hello"), errNoJournal},
		"long text":       {[]byte(strings.Repeat("hello ", 100)), errNoJournal},
		"later file":      {append([]byte("slotgate journal 2\n"), file[len(fileTitle):]...), errNewerFile},
		"unknown record":  {record("x\x01"), errNewerFile},
		"empty record":    {record(""), errNewerFile},
		"no seq":          {record("a"), errNewerFile},
		"no settlement":   {record("a\x01"), errSettle},
		"later schema":    {record("a\x01\x02"), errSettle},
		"seq without end": {record("d\xff"), errNewerFile},
	} {
		if _, err := replay(c.file, nil); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", name, err, c.err)
		}
	}
	for _, at := range []int{len(fileTitle), headerSize - 1} {
		whole, _, _ := journalOf(somesteps)
		whole[at] ^= 1
		if h, err := replay(whole, nil); err != nil || h.damage != len(fileTitle) || h.waiting != nil {
			t.Errorf("header byte %d: %v, %+v", at, err, h)
		}
	}
}

func FuzzReplay(f *testing.F) {
	whole, ends, _ := journalOf(somesteps)
	f.Add([]byte{})
	f.Add(whole)
	f.Add(whole[:ends[2]+5])
	f.Add(append(bytes.Clone(whole[:ends[2]]), whole[ends[3]+1:]...))
	f.Fuzz(func(t *testing.T, file []byte) {
		h, err := replay(file, nil)
		if err != nil {
			return
		}
		if !slices.IsSortedFunc(h.waiting, bySeq) || h.torn > len(file) || h.damage > len(file) {
			t.Fatalf("%+v", h)
		}
	})
}

func BenchmarkReplay(b *testing.B) {
	file, m := appendHeader(nil)
	for i := range maxBacklog {
		file = appendAdd(file, m, nil, newEntry(example(i), uint64(i+1)))
	}
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		if h, err := replay(file, nil); err != nil || len(h.waiting) != maxBacklog {
			b.Fatal(err)
		}
	}
}
