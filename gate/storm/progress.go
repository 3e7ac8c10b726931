package storm

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

const (
	progressWidth = 30              // of the bar, in characters
	progressEvery = 3 * time.Second // between lines where there is no terminal
)

// ShowProgress gives a hook for Options.Progress that draws a bar on w when
// that is a terminal, and else writes a line every few seconds.
func ShowProgress(w io.Writer) func(Progress) {
	if IsTerminal(w) {
		return drawBar(w)
	}
	return writeLines(w)
}

// IsTerminal takes any character device for a terminal, which is right for all
// that people use but /dev/null, where it does no harm.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func drawBar(w io.Writer) func(Progress) {
	return func(p Progress) {
		filled := p.Done * progressWidth / max(p.Total, 1)
		bar := strings.Repeat("#", filled) + strings.Repeat(".", progressWidth-filled)
		end := ""
		if p.Final {
			end = "\n"
		}
		fmt.Fprintf(w, "\r\x1b[K[%s] %s%s", bar, p, end)
	}
}

func writeLines(w io.Writer) func(Progress) {
	next := progressEvery
	return func(p Progress) {
		if p.Elapsed < next && !p.Final {
			return
		}
		next = p.Elapsed + progressEvery
		fmt.Fprintln(w, p)
	}
}

// String is one line of at most 80 characters or so.
func (p Progress) String() string {
	return fmt.Sprintf("%d/%d %3d%%  %.0f/s  successes %d  5xx %d  errors %d",
		p.Done, p.Total, p.Done*100/max(p.Total, 1), perSecond(p.Done, p.Elapsed), p.Successes, p.Status5xx, p.Errors)
}
