package degrade

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/seal"
)

var errDown = &store.Error{Kind: store.KindConnection, Err: errors.New("down")}

func down(string) error { return errDown }

// closed closes at once: what waits stays.
func closed(b *Backlog) int {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return b.Close(ctx)
}

// journaled opens a backlog with a journal in front of a store.
func journaled(t testing.TB, path string, k *taker, log io.Writer) *Backlog {
	t.Helper()
	b, err := OpenBacklog(path, nil, k.settle, func(*store.Settle, store.Settled) {}, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(b) })
	return b
}

// waitingIn reads a journal file as the next process would.
func waitingIn(t testing.TB, path string) []string {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := replay(file, nil)
	if err != nil || h.damage != 0 || h.torn != 0 {
		t.Fatalf("%v, damage %d, torn %d", err, h.damage, h.torn)
	}
	return ids(h.waiting)
}

func TestWhatWaitsOutlivesTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	var want []string
	for round := range 3 {
		k := &taker{err: down}
		b := journaled(t, path, k, io.Discard)
		if b.Len() != len(want) {
			t.Fatalf("%d wait at the start, want %d", b.Len(), len(want))
		}
		for i := range 20 {
			s := example(100*round + i)
			want = append(want, s.ID)
			b.Add(s)
			if got := waitingIn(t, path); !slices.Equal(got, want) {
				t.Fatalf("the file has %q, want %q", got, want)
			}
		}
		if left := closed(b); left != len(want) {
			t.Fatalf("%d left, want %d", left, len(want))
		}
	}
	k := &taker{}
	b := journaled(t, path, k, io.Discard)
	b.Add(example(999))
	if left := b.Close(t.Context()); left != 0 {
		t.Fatalf("%d left", left)
	}
	if want = append(want, example(999).ID); !slices.Equal(k.taken, want) {
		t.Fatalf("taken %q, want %q", k.taken, want)
	}
	if got := waitingIn(t, path); got != nil {
		t.Fatalf("%q would be sent again", got)
	}
}

func TestOnlyWhatWasTakenLeavesTheJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	var calls atomic.Int64
	k := &taker{err: func(string) error { // a store that comes and goes
		if calls.Add(1)%3 == 0 {
			return &store.Error{Kind: store.KindReply, Err: errors.New("what?")}
		}
		return nil
	}}
	b := journaled(t, path, k, io.Discard)
	var adders sync.WaitGroup
	for g := range 8 {
		adders.Go(func() {
			for i := range 50 {
				b.Add(example(1000*g + i))
				if i == 25 {
					b.Retry()
				}
			}
		})
	}
	adders.Wait()
	left := closed(b)
	waiting := waitingIn(t, path)
	if len(waiting) != left || b.Unwritten() != 0 {
		t.Fatalf("%d left, %d in the file, %d unwritten", left, len(waiting), b.Unwritten())
	}
	all := slices.Concat(k.taken, waiting)
	slices.Sort(all)
	if all = slices.Compact(all); len(k.taken)+len(waiting) != 400 || len(all) != 400 {
		t.Fatalf("%d taken and %d waiting of 400, %d different", len(k.taken), len(waiting), len(all))
	}
}

func TestEveryCutOfTheFileOpens(t *testing.T) {
	file, ends, waiting := journalOf(somesteps)
	for i, end := range ends {
		for _, cut := range []int{end - 1, end, end + 1, end + frameSize} {
			if cut > len(file) {
				continue
			}
			path := filepath.Join(t.TempDir(), "journal")
			if err := os.WriteFile(path, file[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
			want := waiting[i]
			if cut < end {
				want = waiting[max(0, i-1)]
			}
			var log bytes.Buffer
			b := journaled(t, path, &taker{err: down}, &log)
			torn := cut != end && !slices.Contains(ends, cut)
			if said := strings.Contains(log.String(), "was cut short"); b.Len() != len(want) || said != torn {
				t.Fatalf("cut at %d: %d wait, want %d; log %q", cut, b.Len(), len(want), log.String())
			}
			b.Add(example(77))
			closed(b)
			if got := waitingIn(t, path); !slices.Equal(got, append(slices.Clone(want), example(77).ID)) {
				t.Fatalf("cut at %d: then %q", cut, got)
			}
		}
	}
}

func TestADamagedFileIsKeptAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	file, ends, _ := journalOf([]step{{add: example(1)}, {add: example(2)}, {add: example(3)}})
	file[ends[1]+frameSize+20] ^= 1
	for n := 1; n <= 2; n++ {
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		k := &taker{}
		b := journaled(t, path, k, &log)
		if left := b.Close(t.Context()); left != 0 || !slices.Equal(k.taken, []string{example(1).ID, example(3).ID}) {
			t.Fatalf("%d left, taken %q", left, k.taken)
		}
		kept := fmt.Sprintf("%s.damaged-%d", path, n)
		for _, word := range []string{"level=ERROR", kept, fmt.Sprint("at_byte=", ends[1]), "read=2"} {
			if !strings.Contains(log.String(), word) {
				t.Fatalf("the log does not say %q: %s", word, log.String())
			}
		}
		if got, err := os.ReadFile(kept); err != nil || !bytes.Equal(got, file) {
			t.Fatalf("%v: %d bytes kept of %d", err, len(got), len(file))
		}
	}
}

func TestAFileThatOthersMayReadIsRefused(t *testing.T) {
	whole, _, _ := journalOf(somesteps)
	for name, c := range map[string]struct {
		make func(path string) error
		says string
	}{
		"world":     {func(p string) error { return os.WriteFile(p, whole, 0o604) }, "chmod 600"},
		"group":     {func(p string) error { return os.WriteFile(p, whole, 0o640) }, "chmod 600"},
		"folder":    {func(p string) error { return os.Mkdir(p, 0o700) }, "not a regular file"},
		"link":      {func(p string) error { return os.Symlink("elsewhere", p) }, "not a regular file"},
		"text":      {func(p string) error { return os.WriteFile(p, []byte("notes"), 0o600) }, "not a journal"},
		"no folder": {func(p string) error { return os.Remove(filepath.Dir(p)) }, "no such file or directory"},
	} {
		path := filepath.Join(t.TempDir(), "folder", "journal")
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := c.make(path); err != nil {
			t.Fatal(err)
		}
		before, _ := os.ReadFile(path)
		_, err := OpenBacklog(path, nil, nil, nil, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
		if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

func TestAFileThatIsTooLargeIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, maxJournal+1); err != nil {
		t.Fatal(err)
	}
	_, err := OpenBacklog(path, nil, nil, nil, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "name another file") {
		t.Fatal(err)
	}
}

func TestTheJournalIsItsOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	b := journaled(t, path, &taker{err: down}, io.Discard)
	b.Add(example(1))
	for _, name := range []string{path, path + ".lock"} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%s: %v, %v", name, info, err)
		}
	}
	closed(b)
	if err := os.WriteFile(path+".new", []byte("left by a crash"), 0o644); err != nil {
		t.Fatal(err)
	}
	closed(journaled(t, path, &taker{err: down}, io.Discard))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if _, err := os.Stat(path + ".new"); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a file is left over: %v", err)
	}
}

// A gate that is killed: the test runs itself as a process that prints the id of
// each settlement it was told is on disk.
func TestAKilledProcessLosesNothingItWasToldIsWritten(t *testing.T) {
	const variable = "SLOTGATE_TEST_JOURNAL"
	if path := os.Getenv(variable); path != "" {
		b := journaled(t, path, &taker{err: down}, io.Discard)
		var adders sync.WaitGroup
		for g := range 4 {
			adders.Go(func() {
				for i := range maxBacklog / 4 {
					s := example(10000*g + i)
					b.Add(s)
					os.Stdout.WriteString(s.ID + "\n")
				}
			})
		}
		adders.Wait()
		return
	}
	path := filepath.Join(t.TempDir(), "journal")
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v=false")
	child.Env = append(os.Environ(), variable+"="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var told []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		told = append(told, lines.Text())
		switch len(told) {
		case 50:
			_, err := OpenBacklog(path, nil, nil, nil, slog.New(slog.DiscardHandler))
			if err == nil || !strings.Contains(err.Error(), "another gate has it open") {
				t.Errorf("opened beside another process: %v", err)
			}
		case 200:
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := child.Wait(); err == nil {
		t.Fatal("the process ended before it was killed")
	}
	if len(told) < 200 {
		t.Fatalf("told of %d", len(told))
	}
	k := &taker{}
	b := journaled(t, path, k, io.Discard)
	if left := b.Close(t.Context()); left != 0 {
		t.Fatalf("%d left", left)
	}
	for _, id := range told {
		if !slices.Contains(k.taken, id) {
			t.Fatalf("%s was told to be written and is lost (%d told, %d found)", id, len(told), len(k.taken))
		}
	}
}

func TestTheFileIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	k := &taker{}
	b := journaled(t, path, k, io.Discard)
	largest := int64(0)
	for i := range 300 {
		s := example(i)
		s.Answer = bytes.Repeat([]byte{1}, 64<<10) // 19 MiB in all
		b.Add(s)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		largest = max(largest, info.Size())
		for b.Len() > 0 { // what waits has a right to its room
			runtime.Gosched()
		}
	}
	if left := b.Close(t.Context()); left != 0 || len(k.taken) != 300 {
		t.Fatalf("%d left, %d taken", left, len(k.taken))
	}
	if largest > 2*journalSlack {
		t.Fatalf("the file came to %d bytes", largest)
	}
}

func BenchmarkJournal(b *testing.B) {
	for _, adders := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("%d-at-once", adders), func(b *testing.B) {
			j, _, err := openJournal(filepath.Join(b.TempDir(), "journal"), nil, slog.New(slog.DiscardHandler))
			if err != nil {
				b.Fatal(err)
			}
			defer j.close()
			s := example(1)
			b.SetParallelism(adders) // per processor, and there is one journal
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					e := newEntry(s, 0)
					j.await(j.add(e))
					j.done(e)
				}
			})
		})
	}
}

// Whoever reads the file learns nothing of clients, and the next process goes on.
func TestAJournalIsSealed(t *testing.T) {
	one, other := base64.StdEncoding.EncodeToString(make([]byte, 32)), base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 32))
	keys := func(current string, old ...string) *seal.Keys {
		k, err := seal.New(current, old)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	open := func(path string, k *seal.Keys) (*Backlog, error) {
		return OpenBacklog(path, k, (&taker{err: down}).settle, func(*store.Settle, store.Settled) {}, slog.New(slog.DiscardHandler))
	}
	s := example(1)
	s.Subject, s.Answer, s.Scope = "HanMeimei", []byte("your seat is 12F"), "Bearer abc"
	path := filepath.Join(t.TempDir(), "journal")
	steps := []struct {
		name    string
		keys    *seal.Keys
		opens   bool
		inClear bool
	}{
		{"before a key is set", nil, true, true},
		{"with a key", keys(one), true, false},
		{"with a new key", keys(other, one), true, false},
		{"without the key", keys(one), false, false},
		{"without any", nil, false, false},
		{"with the key again", keys(other), true, false},
		{"when sealing has ended", keys("", other), true, true},
	}
	for i, step := range steps {
		b, err := open(path, step.keys)
		if (err == nil) != step.opens {
			t.Fatalf("%s: %v", step.name, err)
		}
		if err == nil {
			if i == 0 {
				b.Add(s)
			}
			if b.Len() != 1 || !reflect.DeepEqual(b.head(&b.lanes[laneOf(s)]).settle, s) {
				t.Errorf("%s: waiting is %d, %+v", step.name, b.Len(), b.head(&b.lanes[laneOf(s)]))
			}
			closed(b)
		}
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{s.Subject, string(s.Answer), s.Scope} {
			if bytes.Contains(file, []byte(text)) != step.inClear {
				t.Errorf("%s: whether %q can be read: %v", step.name, text, !step.inClear)
			}
		}
	}
}
