package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// command is one subcommand. Its run returns the exit status of the process.
type command struct {
	name, does string
	run        func(args []string, stdin io.Reader, stdout, stderr io.Writer) int
}

func commands() []command {
	return []command{
		{"run", "serve: the gate and its admin listener", runCommand},
		{"check", "load a configuration, print what is wrong with it or what it means", checkCommand},
		{"explain", "say what the gate would do with one request", explainCommand},
		{"slots", "look at and change slots through the admin API", slotsCommand},
		{"reconcile", "compare the store with the backend's own data, and repair the store", reconcileCommand},
		{"audit", "look for damage in the backend's own data", auditCommand},
		{"demo", "see it work: a booking API with and without the gate, nothing to install", demoCommand},
		{"storm", "test a booking API with many requests at once", func(args []string, _ io.Reader, stdout, stderr io.Writer) int {
			return stormCommand(args, stdout, stderr)
		}},
		{"version", "print version, commit and Go version", versionCommand},
	}
}

// run is the whole program.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, overview())
		return 1
	}
	name := args[0]
	switch name {
	case "help", "-h", "-help", "--help":
		if len(args) > 1 && name == "help" {
			return run([]string{args[1], "--help"}, stdin, stdout, stderr)
		}
		fmt.Fprint(stdout, overview())
		return 0
	case "--version", "-version":
		name = "version"
	}
	var names []string
	for _, c := range commands() {
		if c.name == name {
			return c.run(args[1:], stdin, stdout, stderr)
		}
		names = append(names, c.name)
	}
	fmt.Fprintf(stderr, "slotgate: no command %q%s; slotgate help lists them\n", name, suggestion(name, names))
	return 1
}

func overview() string {
	var b strings.Builder
	b.WriteString("Slotgate admits to a booking API only the requests that can succeed, once each.\n\nUsage: slotgate COMMAND [flags]\n\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-10s %s\n", c.name, c.does)
	}
	b.WriteString("\nslotgate COMMAND --help explains a command and its flags.\n\nExample:\n  slotgate check -c slotgate.yaml && slotgate run -c slotgate.yaml\n")
	return b.String()
}

// newFlags returns a silent set: every command writes its own help and errors.
func newFlags(name string) *flag.FlagSet {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	return set
}

// parse reads flags wherever they stand among the arguments, and returns the
// arguments. What follows "--" is an argument even with a dash in front.
func parse(set *flag.FlagSet, args []string) (operands []string, err error) {
	for {
		if err := set.Parse(args); err != nil {
			return nil, err
		}
		read := len(args) - set.NArg()
		if read > 0 && args[read-1] == "--" || set.NArg() == 0 {
			return append(operands, set.Args()...), nil
		}
		operands = append(operands, set.Arg(0))
		args = set.Args()[1:]
	}
}

// usageFault ends a command that was called wrongly, or for its help.
func usageFault(name, help string, err error, status int, stdout, stderr io.Writer) int {
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, help)
		return 0
	}
	fmt.Fprintf(stderr, "slotgate %s: %v; see slotgate %s --help\n", name, err, name)
	return status
}

// suggestion is `, did you mean "…"?` for the nearest of the names, or nothing
// when none is near.
func suggestion(name string, names []string) string {
	best, distance := "", 3
	for _, candidate := range names {
		if d := editDistance(name, candidate); d < distance && d < len(candidate) {
			best, distance = candidate, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", best)
}

// editDistance counts the insertions, deletions and replacements of bytes that
// turn a into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1) // distances of a[:i] to every b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
