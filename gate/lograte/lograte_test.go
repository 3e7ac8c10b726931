package lograte

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// reports keeps what a limiter reported.
type reports struct {
	mu   sync.Mutex
	left map[string]int64
}

func (r *reports) add(kind string, left int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left == nil {
		r.left = map[string]int64{}
	}
	r.left[kind] += left
}

func (r *reports) of(kind string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left[kind]
}

func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told reports
		l := New(3, time.Second, told.add)
		take := func(kind string, times, want int) {
			t.Helper()
			through := 0
			for range times {
				if l.Take(kind) {
					through++
				}
			}
			if through != want {
				t.Errorf("%s: %d of %d lines, want %d", kind, through, times, want)
			}
		}
		take("sold-out", 10, 3)
		take("admitted", 2, 2) // kinds do not disturb each other
		if told.of("sold-out") != 0 {
			t.Error("told before its time was over")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if told.of("sold-out") != 7 || told.of("admitted") != 0 {
			t.Errorf("left out: %v", told.left)
		}
		take("sold-out", 4, 3)
		time.Sleep(time.Hour) // silence: the one left out is told all the same
		synctest.Wait()
		if told.of("sold-out") != 8 {
			t.Errorf("left out: %v", told.left)
		}

		take("sold-out", 5, 3)
		l.Close()
		if told.of("sold-out") != 10 {
			t.Errorf("left out at the end: %v", told.left)
		}
		take("sold-out", 5, 5)
		l.Close()
		time.Sleep(time.Hour)
		synctest.Wait()
		if told.of("sold-out") != 10 {
			t.Errorf("left out after the end: %v", told.left)
		}
	})
}

// However many take at once, each line is let through or counted, once.
func TestLimiterLosesNoCount(t *testing.T) {
	var told reports
	l := New(5, time.Millisecond, told.add) // many ends while lines are taken
	var through atomic.Int64
	var all sync.WaitGroup
	const takers, each = 8, 5000
	for range takers {
		all.Go(func() {
			for range each {
				if l.Take("a") {
					through.Add(1)
				}
			}
		})
	}
	all.Wait()
	l.Close()
	if sum := through.Load() + told.of("a"); sum != takers*each {
		t.Errorf("%d let through + %d left out = %d of %d", through.Load(), told.of("a"), sum, takers*each)
	}
}

func TestTakeAllocatesNothing(t *testing.T) {
	l := New(1, time.Hour, func(string, int64) {})
	defer l.Close()
	l.Take("a")
	kind := strings.Clone("a") // no constant
	if n := testing.AllocsPerRun(100, func() { l.Take(kind) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		h := NewHandler(slog.NewTextHandler(&text, nil), 2, time.Second)
		log := slog.New(h)
		for i := range 5 {
			log.Error("the disk is full", "i", i)
			log.With("pool", "a").WithGroup("g").Error("the disk is full", "i", i) // the same message
			log.Info("started", "i", i)
		}
		h.Close()
		if n := strings.Count(text.String(), `msg="the disk is full"`); n != 2 {
			t.Errorf("%d lines of the error", n)
		}
		if n := strings.Count(text.String(), "msg=started"); n != 5 {
			t.Errorf("%d lines of what is no error", n)
		}
		if !strings.Contains(text.String(), `level=WARN`) || !strings.Contains(text.String(), `line="the disk is full" left_out=8`) {
			t.Errorf("not told what was left out:\n%s", text.String())
		}
	})
}
