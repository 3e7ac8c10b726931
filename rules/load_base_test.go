package rules

import (
	"slices"
	"strings"
	"testing"
)

// base is a small configuration without faults; rows of the tests below replace or
// add lines of it.
const base = `upstream:
  url: http://127.0.0.1:9000
pools:
  lessons:
    capacity: 6
rules:
  - name: book-lesson
    match:
      path: "/api/lessons/{lesson}/bookings"
    pool: lessons
    slot: path:lesson
`

// edit puts text into base: its first line replaces the line with the same
// indentation and key inside the section ("" is the top level, else a prefix of
// the section's first line), or goes to the section's end.
func edit(t testing.TB, section, text string) string {
	t.Helper()
	lines := strings.SplitAfter(base, "\n")
	lines = lines[:len(lines)-1]
	text = strings.TrimSuffix(text, "\n") + "\n"
	start, end, indent := 0, len(lines), ""
	if section != "" {
		start = slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(strings.TrimLeft(l, " -"), section) })
		if start < 0 {
			t.Fatalf("base has no section %q", section)
		}
		first := lines[start]
		depth := len(first) - len(strings.TrimLeft(first, " -"))
		if !strings.HasPrefix(strings.TrimLeft(first, " "), "-") { // a mapping's fields stand two deeper
			depth += 2
			start++
		}
		indent = strings.Repeat(" ", depth)
		end = start
		for end < len(lines) && (end == start || strings.HasPrefix(lines[end], indent)) {
			end++
		}
	}
	var block strings.Builder
	for line := range strings.Lines(text) {
		block.WriteString(indent + line)
	}
	key, _, _ := strings.Cut(strings.ReplaceAll(text, "«", ""), ":")
	out := slices.Clone(lines[:start])
	replaced := false
	for i := start; i < end; i++ {
		line := lines[i]
		switch {
		case !replaced && strings.HasPrefix(line, indent+key+":"):
			out = append(out, block.String())
			replaced = true
			for i+1 < end && strings.HasPrefix(lines[i+1], indent+" ") {
				i++
			}
		case !replaced && strings.HasPrefix(line, strings.TrimSuffix(indent, "  ")+"- "+key+":"):
			out = append(out, strings.TrimSuffix(indent, "  ")+"- "+strings.TrimPrefix(block.String(), indent))
			replaced = true
		default:
			out = append(out, line)
		}
	}
	if !replaced {
		out = append(out, block.String())
	}
	return strings.Join(append(out, lines[end:]...), "")
}

// unmark cuts the first « out of a text and tells where it stood.
func unmark(t testing.TB, marked string) (src string, line, col int) {
	t.Helper()
	before, after, ok := strings.Cut(marked, "«")
	if !ok {
		t.Fatalf("no « in:\n%s", marked)
	}
	line = 1 + strings.Count(before, "\n")
	col = 1 + len([]rune(before[strings.LastIndex(before, "\n")+1:]))
	return before + after, line, col
}

func load(t testing.TB, src string, opts LoadOptions) *Config {
	t.Helper()
	cfg, faults := Load("c.yaml", []byte(src), opts)
	if cfg == nil {
		t.Fatalf("unexpected faults:\n%s\nin:\n%s", faults, src)
	}
	return cfg
}

// expectFault wants exactly one error, at the mark, whose message holds want.
func expectFault(t *testing.T, marked, want string, opts LoadOptions) {
	t.Helper()
	src, line, col := unmark(t, marked)
	cfg, faults := Load("c.yaml", []byte(src), opts)
	errs := faults.Errors()
	if cfg != nil || len(errs) != 1 {
		t.Fatalf("want one error, got %d:\n%s\nin:\n%s", len(errs), faults, src)
	}
	if got := errs[0]; got.Line != line || got.Col != col || !strings.Contains(got.Message, want) {
		t.Errorf("got  %s\nwant c.yaml:%d:%d: … %s\nin:\n%s", got, line, col, want, src)
	}
}

func TestBaseIsGood(t *testing.T) {
	load(t, base, LoadOptions{})
}
