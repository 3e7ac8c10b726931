// Package accesslog writes a line for each request that was answered, in the combined
// format or in JSON.
//
// Lines are written by one goroutine, each second and when there are many. What waits
// is bounded: where the disk is slower than the requests, or full, lines are dropped and
// counted, and no request waits for it or fails.
//
// # What is logged of a request
//
// The path without its query and path parameters (;jsessionid=…), for both carry
// credentials and what extractors read; of the header User-Agent, Referer without its
// query, and X-Request-Id; nothing of the body. gate/edge chooses them, and leaves out
// what the request's rule reads a key, a subject or a credential from.
package accesslog

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	flushEvery = time.Second
	flushAt    = 64 << 10 // bytes that wait
	maxWaiting = 4 << 20  // bytes; lines beyond are dropped
	sayEvery   = time.Minute
)

// Options are what does not change while the log is open.
type Options struct {
	Format Format
	Stdout io.Writer    // for the file "-"
	Logger *slog.Logger // told, from time to time, of lines that were dropped
}

// Log is safe for concurrent use.
type Log struct {
	o       Options
	on      atomic.Bool
	dropped atomic.Uint64

	mu      sync.Mutex
	waiting []byte   // whole lines
	file    File     // in use
	changes []change // of the file, that the writer has not come to
	closed  bool

	wake  chan struct{} // there is a flush to be made at once
	stop  chan struct{}
	ended chan struct{}
}

// change is a file for the lines that wait from there on.
type change struct {
	file File
	from int // bytes of Log.waiting
}

// maxChanges bounds the files that are open for a writer whose disk does not answer.
const maxChanges = 8

// File is an access log's file, open. The zero File is none: nothing is logged.
type File struct {
	name string
	w    io.Writer
}

// Close closes a file that is not used after all.
func (f File) Close() {
	if c, ok := f.w.(*os.File); ok && f.name != "-" {
		_ = c.Close()
	}
}

// New makes a log that is off until Use. Close ends its background work.
func New(o Options) *Log {
	l := &Log{o: o, wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{})}
	w := writer{log: l}
	go w.run()
	return l
}

// Open opens a file to append to, and makes it where there is none; "-" is standard
// output, "" no file. A pipe that nobody reads is an error rather than a wait.
func (l *Log) Open(name string) (File, error) {
	switch name {
	case "":
		return File{}, nil
	case "-":
		return File{name, l.o.Stdout}, nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o640)
	if err != nil {
		return File{}, err
	}
	return File{name, f}, nil
}

// Use goes over to a file. Lines that wait are still written to the one before, which
// is then closed.
func (l *Log) Use(f File) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		f.Close()
		return
	}
	l.file = f
	if last := len(l.changes) - 1; last+1 == maxChanges {
		l.changes[last].file.Close()
		l.changes[last].file = f
	} else {
		l.changes = append(l.changes, change{f, len(l.waiting)})
	}
	l.mu.Unlock()
	l.on.Store(f.w != nil)
	l.flush()
}

// Reopen opens the file by its name again: a program that rotates logs has moved it.
// Where that fails the log goes on in the file it has.
func (l *Log) Reopen() error {
	l.mu.Lock()
	name := l.file.name
	l.mu.Unlock()
	if name == "" || name == "-" {
		return nil
	}
	f, err := l.Open(name)
	if err != nil {
		return err
	}
	l.Use(f)
	return nil
}

// On reports whether Add writes anything.
func (l *Log) On() bool { return l.on.Load() }

// Dropped is the number of lines so far that were lost.
func (l *Log) Dropped() uint64 { return l.dropped.Load() }

var lines = sync.Pool{New: func() any { b := make([]byte, 0, 512); return &b }}

// Add takes an entry; it does not keep it, and does not block.
func (l *Log) Add(e *Entry) {
	if !l.on.Load() {
		return
	}
	line := lines.Get().(*[]byte)
	*line = e.appendTo((*line)[:0], l.o.Format)
	l.mu.Lock()
	fits := len(l.waiting)+len(*line) <= maxWaiting && !l.closed
	if fits {
		l.waiting = append(l.waiting, *line...)
	}
	many := len(l.waiting) >= flushAt
	l.mu.Unlock()
	lines.Put(line)
	if !fits {
		l.dropped.Add(1)
	}
	if many {
		l.flush()
	}
}

func (l *Log) flush() {
	select {
	case l.wake <- struct{}{}:
	default: // it is going to look
	}
}

// Close writes what waits and closes the file, unless ctx ends before that; a disk that
// does not answer is left alone. Lines that come afterwards are dropped. It may be called
// twice.
func (l *Log) Close(ctx context.Context) {
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	l.mu.Unlock()
	if first {
		close(l.stop)
	}
	select {
	case <-l.ended:
	case <-ctx.Done():
	}
}

// writer is the goroutine that writes.
type writer struct {
	log   *Log
	file  File
	torn  bool   // the file ends within a line
	spare []byte // memory for the next lines
	told  uint64 // dropped lines that the process log has been told of
	when  time.Time
	why   error // of the last failure
}

func (w *writer) run() {
	defer close(w.log.ended)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-w.log.wake:
		case <-tick.C:
		case <-w.log.stop:
			w.turn()
			w.file.Close()
			w.tell()
			return
		}
		w.turn()
		if time.Since(w.when) >= sayEvery {
			w.tell()
		}
	}
}

// turn writes what waits, each line to the file that was in use when it came.
func (w *writer) turn() {
	l := w.log
	l.mu.Lock()
	chunk, changes := l.waiting, l.changes
	l.waiting, l.changes = w.spare[:0], nil
	l.mu.Unlock()
	w.spare = chunk
	written := 0
	for _, c := range changes {
		w.write(chunk[written:c.from])
		w.file.Close()
		w.file, w.torn, written = c.file, false, c.from
	}
	w.write(chunk[written:])
}

// write loses what the file does not take: kept, it would grow for as long as the disk
// is full.
func (w *writer) write(chunk []byte) {
	if len(chunk) == 0 || w.file.w == nil { // switched off while a line came
		return
	}
	n, err := 0, w.endTorn()
	if err == nil {
		n, err = w.file.w.Write(chunk)
	}
	if err != nil {
		w.torn = w.torn || n > 0 && chunk[n-1] != '\n'
		w.why = err
		w.log.dropped.Add(uint64(bytes.Count(chunk[n:], []byte{'\n'})))
	}
}

// endTorn gives a line of which only a part was written its end.
func (w *writer) endTorn() error {
	if !w.torn {
		return nil
	}
	_, err := w.file.w.Write([]byte{'\n'})
	w.torn = err != nil
	return err
}

// tell has the process log say what was dropped since it last did.
func (w *writer) tell() {
	dropped := w.log.dropped.Load()
	if dropped == w.told {
		return
	}
	reason := "lines come faster than they can be written"
	if w.why != nil {
		reason = w.why.Error()
	}
	w.log.o.Logger.Warn("access log lines were lost; requests go on", "file", w.file.name, "lines", dropped-w.told, "reason", reason)
	w.told, w.when, w.why = dropped, time.Now(), nil
}
