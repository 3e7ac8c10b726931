package degrade

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotgate/slotgate/gate/store"
)

// disk makes real files and fails as it is told.
type disk struct {
	mu    sync.Mutex
	made  int
	syncs int
	faults
}

type faults struct {
	create  error
	write   error
	partial int // bytes that go through before write fails
	sync    error
	hang    chan struct{} // a sync returns when it is closed
}

func (d *disk) set(f faults) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = f
}

func (d *disk) counts() (made, syncs int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.made, d.syncs
}

func (d *disk) file(path string) (file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.create != nil {
		return nil, d.create
	}
	d.made++
	f, err := createFile(path)
	return diskFile{f, d}, err
}

type diskFile struct {
	file
	disk *disk
}

func (f diskFile) Write(b []byte) (int, error) {
	f.disk.mu.Lock()
	partial, err := f.disk.partial, f.disk.write
	f.disk.mu.Unlock()
	if err != nil {
		n, _ := f.file.Write(b[:min(partial, len(b))])
		return n, err
	}
	return f.file.Write(b)
}

func (f diskFile) Sync() error {
	f.disk.mu.Lock()
	f.disk.syncs++
	hang, err := f.disk.hang, f.disk.sync
	f.disk.mu.Unlock()
	if hang != nil {
		<-hang
	}
	return errors.Join(err, f.file.Sync())
}

// onDisk opens a backlog whose journal is on this disk.
func onDisk(t *testing.T, d *disk, path string, k *taker, log *bytes.Buffer) *Backlog {
	t.Helper()
	logger := slog.New(slog.NewTextHandler(log, nil))
	j, _, err := (&journal{path: path, log: logger, create: d.file}).open()
	if err != nil {
		t.Fatal(err)
	}
	return startBacklog(&Backlog{settle: k.settle, settled: func(*store.Settle, store.Settled) {}, log: logger, journal: j})
}

func TestManyShareOneSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, path := new(disk), filepath.Join(t.TempDir(), "journal")
		b := onDisk(t, d, path, &taker{err: down}, new(bytes.Buffer))
		_, before := d.counts()
		hang := make(chan struct{})
		d.set(faults{hang: hang})
		var adders sync.WaitGroup
		add := func(n int) { adders.Go(func() { b.Add(example(n)) }) }
		add(0)
		synctest.Wait() // the first is on its way to the disk
		for n := 1; n <= 100; n++ {
			add(n)
		}
		synctest.Wait()
		close(hang)
		adders.Wait()
		if _, after := d.counts(); after-before != 2 {
			t.Fatalf("%d syncs for 1 and 100 settlements, want 2", after-before)
		}
		if got := waitingIn(t, path); len(got) != 101 || b.Unwritten() != 0 {
			t.Fatalf("%d in the file, %d unwritten", len(got), b.Unwritten())
		}
		closed(b)
	})
}

func TestThatOneWasTakenNeedsNoSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, path := new(disk), filepath.Join(t.TempDir(), "journal")
		k := &taker{err: down}
		b := onDisk(t, d, path, k, new(bytes.Buffer))
		for n := range 10 {
			b.Add(example(n))
		}
		_, before := d.counts()
		k.set(nil)
		b.Retry()
		synctest.Wait()
		if got := waitingIn(t, path); got != nil {
			t.Fatalf("%q would be sent again", got)
		}
		if _, after := d.counts(); after != before {
			t.Fatalf("%d syncs", after-before)
		}
		closed(b)
	})
}

func TestADiskThatHangsHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, path := new(disk), filepath.Join(t.TempDir(), "journal")
		var log bytes.Buffer
		b := onDisk(t, d, path, &taker{err: down}, &log)
		hang := make(chan struct{})
		d.set(faults{hang: hang})
		took := func(n int) time.Duration {
			began := time.Now()
			if !b.Add(example(n)) {
				t.Fatal("refused with room left")
			}
			return time.Since(began)
		}
		if got := took(1); got != syncLimit {
			t.Fatalf("the first waited %v, want %v", got, syncLimit)
		}
		time.Sleep(time.Millisecond)
		for n := 2; n <= 5; n++ {
			if got := took(n); got != 0 {
				t.Fatalf("number %d waited %v for a disk that hangs", n, got)
			}
		}
		if b.Unwritten() != 5 || b.Len() != 5 {
			t.Fatalf("%d unwritten and %d waiting of 5", b.Unwritten(), b.Len())
		}
		if said := strings.Count(log.String(), "in memory only"); said != 3 { // 1, 2, 4
			t.Fatalf("said %d times: %s", said, log.String())
		}
		close(hang)
		synctest.Wait()
		if got := waitingIn(t, path); len(got) != 5 {
			t.Fatalf("the file has %q", got)
		}
		if got := took(6); got != 0 || b.Unwritten() != 5 {
			t.Fatalf("afterwards one waited %v, %d unwritten", got, b.Unwritten())
		}
		closed(b)
	})
}

func TestADiskThatFailsIsTriedAgainWithANewFile(t *testing.T) {
	for name, fail := range map[string]faults{
		"full":             {write: syscall.ENOSPC, create: syscall.ENOSPC},
		"full in a record": {write: syscall.ENOSPC, create: syscall.ENOSPC, partial: frameSize + 5},
		"sync":             {sync: syscall.EIO, create: syscall.EMFILE},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, path := new(disk), filepath.Join(t.TempDir(), "journal")
				var log bytes.Buffer
				k := &taker{err: down}
				b := onDisk(t, d, path, k, &log)
				b.Add(example(1))
				d.set(fail)
				began := time.Now()
				for n := 2; n <= 4; n++ {
					if !b.Add(example(n)) {
						t.Fatal("refused with room left")
					}
				}
				if took := time.Since(began); took != 0 {
					t.Fatalf("waited %v", took)
				}
				if b.Unwritten() != 3 || b.Len() != 4 {
					t.Fatalf("%d unwritten and %d waiting", b.Unwritten(), b.Len())
				}
				file, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if h, err := replay(file, nil); err != nil || h.damage != 0 || ids(h.waiting)[0] != example(1).ID {
					t.Fatalf("%v, the file meanwhile: %+v", err, h)
				}
				time.Sleep(2 * time.Minute) // some attempts, none of which succeeds
				made, _ := d.counts()
				d.set(faults{})
				time.Sleep(lastRewrite)
				synctest.Wait()
				if after, _ := d.counts(); after != made+1 {
					t.Fatalf("%d new files, want 1", after-made)
				}
				var want []string
				for n := 1; n <= 4; n++ {
					want = append(want, example(n).ID)
				}
				if got := waitingIn(t, path); !slices.Equal(got, want) {
					t.Fatalf("the file has %q, want %q", got, want)
				}
				b.Add(example(5))
				if got := waitingIn(t, path); len(got) != 5 || b.Unwritten() != 3 {
					t.Fatalf("afterwards the file has %q, %d unwritten", got, b.Unwritten())
				}
				for _, word := range []string{"cannot write the journal", "written again"} {
					if n := strings.Count(log.String(), word); n != 1 {
						t.Fatalf("%q is said %d times: %s", word, n, log.String())
					}
				}
				closed(b)
			})
		})
	}
}

func TestAttemptsAtAFullDiskAreFewHoweverManyAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, path := new(disk), filepath.Join(t.TempDir(), "journal")
		k := &taker{err: down}
		b := onDisk(t, d, path, k, new(bytes.Buffer))
		d.set(faults{sync: syscall.EIO})
		made, _ := d.counts()
		for n := range 1000 {
			b.Add(example(n))
			time.Sleep(100 * time.Millisecond)
		}
		// 100 s: after 1, 2, 4, 8, 16, 30, 30 s.
		if after, _ := d.counts(); after-made != 7 {
			t.Fatalf("%d new files in 100 s", after-made)
		}
		// What is taken meanwhile is not written when the disk is back.
		k.set(nil)
		b.Retry()
		synctest.Wait()
		d.set(faults{})
		time.Sleep(lastRewrite)
		synctest.Wait()
		if got := waitingIn(t, path); got != nil || b.Len() != 0 {
			t.Fatalf("%d wait, %q in the file", b.Len(), got)
		}
		closed(b)
	})
}

func TestClosingTriesTheDiskOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, path := new(disk), filepath.Join(t.TempDir(), "journal")
		b := onDisk(t, d, path, &taker{err: down}, new(bytes.Buffer))
		d.set(faults{sync: syscall.EIO})
		b.Add(example(1))
		d.set(faults{})
		if left := closed(b); left != 1 {
			t.Fatalf("%d left", left)
		}
		if got := waitingIn(t, path); !slices.Equal(got, []string{example(1).ID}) {
			t.Fatalf("the file has %q", got)
		}
		if b.Add(example(2)); b.Unwritten() != 2 {
			t.Fatalf("%d unwritten; added after the end", b.Unwritten())
		}
		closed(b)
	})
}

func TestClosingDoesNotWaitForADiskThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, path := new(disk), filepath.Join(t.TempDir(), "journal")
		var log bytes.Buffer
		b := onDisk(t, d, path, &taker{err: down}, &log)
		hang := make(chan struct{})
		d.set(faults{hang: hang})
		b.Add(example(1))
		began := time.Now()
		closed(b)
		if took := time.Since(began); took != syncLimit || !strings.Contains(log.String(), "stopped before the disk") {
			t.Fatalf("closed after %v: %s", took, log.String())
		}
		close(hang)
	})
}

func TestAJournalThatCannotBeWrittenIsNotOpened(t *testing.T) {
	for name, d := range map[string]*disk{
		"create": {faults: faults{create: syscall.EACCES}},
		"write":  {faults: faults{write: syscall.ENOSPC}},
		"sync":   {faults: faults{sync: syscall.EIO}},
	} {
		path := filepath.Join(t.TempDir(), "journal")
		whole, _, waiting := journalOf(somesteps)
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := (&journal{path: path, log: slog.New(slog.DiscardHandler), create: d.file}).open()
		if err == nil || !strings.Contains(err.Error(), "journal "+path) {
			t.Fatalf("%s: %v", name, err)
		}
		if got := waitingIn(t, path); !slices.Equal(got, waiting[len(waiting)-1]) {
			t.Fatalf("%s: the file has %q", name, got)
		}
		b := onDisk(t, new(disk), path, &taker{err: down}, new(bytes.Buffer)) // the lock is free
		if b.journal.last != 5 {
			t.Fatalf("%s: opened at %d", name, b.journal.last)
		}
		closed(b)
	}
}
