package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/slotgate/slotgate/gate/storm"
)

const demoBar = 24 // characters

// demoScreen shows one act while it is played: a live bar on a terminal, which its
// result replaces; elsewhere the result only.
type demoScreen struct {
	w        io.Writer
	terminal bool
	act      string
	began    time.Time
}

func newDemoScreen(w io.Writer, act string) *demoScreen {
	s := &demoScreen{w: w, terminal: storm.IsTerminal(w), act: act, began: time.Now()}
	s.draw(storm.Progress{})
	return s
}

func (s *demoScreen) draw(p storm.Progress) {
	if !s.terminal {
		return
	}
	filled := p.Done * demoBar / max(p.Total, 1)
	fmt.Fprintf(s.w, "\r\x1b[K%-48s [%s%s] %d/%d", s.act,
		strings.Repeat("#", filled), strings.Repeat(".", demoBar-filled), p.Done, p.Total)
}

func (s *demoScreen) finish(result string) {
	s.clear()
	fmt.Fprintf(s.w, "%-48s %4.1f s  %s\n", s.act, time.Since(s.began).Seconds(), result)
}

// clear leaves an empty line on a terminal.
func (s *demoScreen) clear() {
	if s.terminal {
		fmt.Fprint(s.w, "\r\x1b[K")
	}
}

// paint colours text for one writer, or leaves it as it is.
type paint struct{ on bool }

// paintFor colours only on a terminal, and not for who asks for none
// (https://no-color.org).
func paintFor(w io.Writer) paint { return paint{storm.IsTerminal(w) && os.Getenv("NO_COLOR") == ""} }

func (p paint) bad(text string) string  { return p.with("31;1", text) }
func (p paint) good(text string) string { return p.with("32", text) }

func (p paint) with(code, text string) string {
	if !p.on {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
