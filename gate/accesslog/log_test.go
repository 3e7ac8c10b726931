package accesslog

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shared is a buffer for several goroutines.
type shared struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func open(t *testing.T, name string, stdout io.Writer, process io.Writer) *Log {
	t.Helper()
	l := New(Options{Stdout: stdout, Logger: slog.New(slog.NewTextHandler(process, nil))})
	t.Cleanup(func() { finish(t, l) })
	f, err := l.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	l.Use(f)
	return l
}

func finish(t *testing.T, l *Log) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	l.Close(ctx)
	if ctx.Err() != nil {
		t.Error("the log did not close")
	}
}

func add(l *Log, path string) {
	e := entry()
	e.Path = path
	l.Add(&e)
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: ", what)
		}
	}
}

// Each line of many goroutines is there once and whole, after Close at the latest.
func TestLinesAreWholeAndComplete(t *testing.T) {
	file := filepath.Join(t.TempDir(), "access.log")
	l := open(t, file, nil, io.Discard)
	var all sync.WaitGroup
	const writers, each = 8, 500
	for w := range writers {
		all.Go(func() {
			for i := range each {
				add(l, fmt.Sprintf("/%d/%d", w, i))
			}
		})
	}
	all.Wait()
	finish(t, l)
	seen := map[string]bool{}
	for line := range strings.Lines(read(t, file)) {
		if !combinedLine.MatchString(strings.TrimSuffix(line, "\n")) {
			t.Fatalf("line %q", line)
		}
		seen[strings.Fields(line)[6]] = true
	}
	if len(seen) != writers*each || l.Dropped() != 0 {
		t.Errorf("%d of %d lines, %d dropped", len(seen), writers*each, l.Dropped())
	}
	add(l, "/late")
	if l.Dropped() != 1 {
		t.Error("a line after Close is not counted")
	}
}

func TestLinesComeWithinASecondOrSo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "access.log")
	l := open(t, file, nil, io.Discard)
	add(l, "/one")
	eventually(t, "the line in the file of a log that goes on", func() bool { return strings.Contains(read(t, file), "/one") })
}

// A program that rotates logs moves the file, then has it opened again.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	file, moved := filepath.Join(dir, "access.log"), filepath.Join(dir, "access.log.1")
	l := open(t, file, nil, io.Discard)
	add(l, "/before")
	if err := os.Rename(file, moved); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the old file complete", func() bool { return strings.Contains(read(t, moved), "/before") })
	eventually(t, "lines in the new file", func() bool { add(l, "/after"); return strings.Contains(read(t, file), "/after") })

	// A directory that has gone leaves the log where it is.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(); err == nil {
		t.Error("opened a file in no directory")
	}
	if !l.On() {
		t.Error("the log went off")
	}

	// Appending, never truncating.
	other := filepath.Join(t.TempDir(), "other.log")
	if err := os.WriteFile(other, []byte("kept\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := l.Open(other)
	if err != nil {
		t.Fatal(err)
	}
	l.Use(f)
	eventually(t, "lines behind what was there", func() bool { add(l, "/other"); return strings.Contains(read(t, other), "/other") })
	if text := read(t, other); !strings.HasPrefix(text, "kept\n") {
		t.Errorf("%.40q", text)
	}
}

func TestStandardOutputAndOff(t *testing.T) {
	var stdout shared
	l := open(t, "-", &stdout, io.Discard)
	add(l, "/shown")
	if err := l.Reopen(); err != nil {
		t.Fatal(err)
	}
	l.Use(File{})
	if l.On() {
		t.Error("on without a file")
	}
	add(l, "/hidden")
	finish(t, l)
	if text := stdout.String(); !strings.Contains(text, "/shown") || strings.Contains(text, "/hidden") {
		t.Errorf("%q", text)
	}
	if l.Dropped() != 0 {
		t.Errorf("%d dropped", l.Dropped())
	}
}

// A full disk: lines are lost and counted, the process log tells of it once, and Add
// goes on.
func TestFullDisk(t *testing.T) {
	var process shared
	l := open(t, "/dev/full", nil, &process)
	add(l, "/first")
	eventually(t, "the loss counted", func() bool { return l.Dropped() == 1 })
	for range 10_000 {
		add(l, "/lost")
	}
	finish(t, l)
	if l.Dropped() != 10_001 {
		t.Errorf("%d dropped", l.Dropped())
	}
	text := process.String()
	if n := strings.Count(text, "access log lines were lost"); n < 1 || n > 2 || !strings.Contains(text, "no space left on device") {
		t.Errorf("the process log:\n%s", text)
	}
}

// stuck is a disk that takes nothing until it is freed.
type stuck struct {
	free    chan struct{}
	writing chan struct{} // closed by the first write
	once    sync.Once
	taken   shared
}

func (s *stuck) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.writing) })
	<-s.free
	return s.taken.Write(p)
}

// A disk that does not answer: Add does not wait for it, what waits for it is bounded,
// and Close does not wait longer than it is told to.
func TestStuckDisk(t *testing.T) {
	disk := &stuck{free: make(chan struct{}), writing: make(chan struct{})}
	l := open(t, "-", disk, io.Discard)
	add(l, "/first")
	l.flush()
	<-disk.writing
	e := entry()
	e.Path = "/" + strings.Repeat("p", 1000)
	for l.Dropped() == 0 {
		l.Add(&e)
	}
	l.mu.Lock()
	waiting := len(l.waiting)
	l.mu.Unlock()
	if waiting > maxWaiting {
		t.Errorf("%d bytes wait", waiting)
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	l.Close(gone)
	close(disk.free)
	finish(t, l)
	if lines := strings.Count(disk.taken.String(), "\n"); lines < maxWaiting/2000 {
		t.Errorf("%d lines came when the disk answered", lines)
	}
}

// halfFull takes so many bytes, then none until there is room again.
type halfFull struct {
	room int
	text bytes.Buffer
}

func (d *halfFull) Write(p []byte) (int, error) {
	n := min(d.room, len(p))
	d.room -= n
	d.text.Write(p[:n])
	if n < len(p) {
		return n, io.ErrShortWrite
	}
	return n, nil
}

// A line that was cut by a full disk does not swallow the next one.
func TestCutLine(t *testing.T) {
	l := New(Options{Logger: slog.New(slog.DiscardHandler)})
	defer finish(t, l)
	disk := &halfFull{room: 15}
	w := writer{log: l, file: File{"-", disk}}
	w.write([]byte("first line\nsecond line\nthird line\n"))
	if l.Dropped() != 2 {
		t.Errorf("%d dropped", l.Dropped())
	}
	w.write([]byte("fourth line\n"))
	disk.room = 100
	w.write([]byte("fifth line\n"))
	if got := disk.text.String(); got != "first line\nseco\nfifth line\n" || l.Dropped() != 3 {
		t.Errorf("%q, %d dropped", got, l.Dropped())
	}
}

func BenchmarkAdd(b *testing.B) {
	l := New(Options{Stdout: io.Discard, Logger: slog.New(slog.DiscardHandler)})
	f, _ := l.Open("-")
	l.Use(f)
	defer l.Close(context.Background())
	e := entry()
	b.ReportAllocs()
	for b.Loop() {
		l.Add(&e)
	}
}
