package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing wrong with a configuration, or worth a second look.
type Fault struct {
	File string
	// Line and Col count from 1, Col in characters. Both are 0 for a value that
	// came with LoadOptions.Set; File then says which.
	Line, Col int
	Message   string
	Warning   bool
}

// String is FILE:LINE:COL: message, or FILE:LINE:COL: warning: message.
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", f.Line, f.Col)
	}
	if f.Warning {
		b.WriteString(": warning")
	}
	b.WriteString(": ")
	b.WriteString(f.Message)
	return b.String()
}

// Faults are sorted by position.
type Faults []Fault

// Errors are the faults that are not warnings.
func (fs Faults) Errors() Faults { return fs.only(false) }

// Warnings are the faults that do not keep a configuration from being used.
func (fs Faults) Warnings() Faults { return fs.only(true) }

func (fs Faults) only(warning bool) Faults {
	var out Faults
	for _, f := range fs {
		if f.Warning == warning {
			out = append(out, f)
		}
	}
	return out
}

// String is one line for each fault.
func (fs Faults) String() string {
	var b strings.Builder
	for _, f := range fs {
		b.WriteString(f.String())
		b.WriteByte('\n')
	}
	return b.String()
}

func (fs Faults) sort() {
	slices.SortStableFunc(fs, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
}
