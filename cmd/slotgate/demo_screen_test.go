package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/slotgate/slotgate/gate/storm"
)

// terminal is a character device, as terminals are.
func terminal(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestColoursOnlyWhereTheyAreWanted(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	if got := paintFor(terminal(t)).bad("7"); got != "\x1b[31;1m7\x1b[0m" {
		t.Errorf("on a terminal: %q", got)
	}
	if got := paintFor(new(bytes.Buffer)).bad("7"); got != "7" {
		t.Errorf("in a file: %q", got)
	}
	t.Setenv("NO_COLOR", "1")
	if got := paintFor(terminal(t)).good("ok"); got != "ok" {
		t.Errorf("with NO_COLOR: %q", got)
	}
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "dumb")
	if got := paintFor(terminal(t)).good("ok"); got != "ok" {
		t.Errorf("on a dumb terminal: %q", got)
	}
}

func TestTheBarGivesWayToTheResult(t *testing.T) {
	var out bytes.Buffer
	s := newDemoScreen(&out, "1/5  an act")
	s.terminal = true
	s.draw(storm.Progress{Done: 50, Total: 100})
	if !strings.HasSuffix(out.String(), "["+strings.Repeat("#", 12)+strings.Repeat(".", 12)+"] 50/100") {
		t.Errorf("half way: %q", &out)
	}
	s.finish("20 bookings of 20 seats")
	if got := out.String()[strings.LastIndex(out.String(), "\r"):]; !strings.HasPrefix(got, "\r\x1b[K1/5  an act ") || !strings.HasSuffix(got, " s  20 bookings of 20 seats\n") {
		t.Errorf("at the end: %q", got)
	}
}
