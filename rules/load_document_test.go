package rules

import (
	"slices"
	"strings"
	"testing"
)

func TestLoadSyntax(t *testing.T) {
	for _, row := range []struct{ name, src, want string }{
		{"tab", strings.Replace(base, "    capacity", "«\tcapacity", 1), "a tab cannot indent YAML"},
		{"tab after blanks", strings.Replace(base, "    capacity", "  «\tcapacity", 1), "a tab cannot indent YAML"},
		{"indentation", strings.Replace(base, "    capacity", "    hold_ttl: 30s\n«     capacity", 1), "not YAML: "},
		{"open list", strings.Replace(base, "    pool:", "«    subject: [json:/a\n    pool:", 1), "not YAML: "},
		{"open quote", strings.Replace(base, "    pool: lessons", "«    pool: \"lessons", 1), "not YAML: "},
		{"colon in plain text", strings.Replace(base, "    pool: lessons", "«    pool: lessons: b", 1), "must be quoted"},
		{"colon at the end", strings.Replace(base, "    pool: lessons", "«    subject: ip:", 1), "a value that ends in a colon"},
		{"reserved character", strings.Replace(base, "    pool: lessons", "«    pool: @lessons", 1), "a value that begins with @"},
		{"template without quotes", strings.Replace(base, "    match:\n      path: \"/api/lessons/{lesson}/bookings\"\n", "«    match: { path: /api/lessons/{lesson}/bookings }\n", 1), "must be quoted"},
		{"alias of nothing", "«a: *b\n", "not YAML: unknown anchor 'b' referenced"},
		{"first line", "«{\n", "not YAML: "},
		{"second document with a fault", base + "---\n«a: [\n", "not YAML: "},
		{"second document", base + "«---\nserver: {}\n", "a second document"},
		{"empty second document", base + "«---\n", "a second document"},
		{"not UTF-8", strings.Replace(base, "lessons:", "l«\xffessons:", 1), "byte 0xff is not UTF-8"},
		{"UTF-16", "«\xff\xfea\x00", "byte 0xff is not UTF-8"},
		{"NUL", strings.Replace(base, "lessons:", "l«\x00essons:", 1), "U+0000"},
		{"line separator", "# a«\u2028b\n" + base, "U+2028"},
		{"byte order mark inside", "# a«\ufeffb\n" + base, "U+FEFF"},
		{"old line ends", strings.Replace(base, "\n", "«\r", 1), "carriage return without a line feed"},
	} {
		t.Run(row.name, func(t *testing.T) { expectFault(t, row.src, row.want, LoadOptions{}) })
	}
}

func TestLoadLongFileWithSyntaxError(t *testing.T) {
	src := base + strings.Repeat("# a comment\n", 2000) + "log: [\n"
	_, faults := Load("c.yaml", []byte(src), LoadOptions{})
	if len(faults) != 1 || !strings.Contains(faults[0].Message, "not YAML") || faults[0].Line < 2000 {
		t.Errorf("got:\n%s", faults)
	}
}

func TestLoadKeepsPositionsBehindMarksAndLineEnds(t *testing.T) {
	src := "\ufeff" + strings.ReplaceAll(base, "\n", "\r\n")
	load(t, src, LoadOptions{})

	_, faults := Load("c.yaml", []byte(strings.Replace(src, "capacity: 6", "capacity: 1.5", 1)), LoadOptions{})
	if errs := faults.Errors(); len(errs) != 1 || errs[0].Line != 5 || errs[0].Col != 15 {
		t.Errorf("got:\n%s", faults)
	}
	_, faults = Load("c.yaml", []byte(strings.Replace(src, "upstream:", "upsteram:", 1)), LoadOptions{})
	if len(faults) == 0 || faults[0].Line != 1 || faults[0].Col != 1 {
		t.Errorf("got:\n%s", faults)
	}
}

func TestLoadCountsColumnsInCharacters(t *testing.T) {
	expectFault(t, edit(t, "name:", `answers: { closed: { body: 名额已满, «bdy: "" } }`), "unknown key bdy, did you mean body?", LoadOptions{})
}

func TestLoadStructure(t *testing.T) {
	for _, row := range []struct{ name, src, want string }{
		{"repeated at the top", base + "«pools: {}\n", "key pools is repeated, first on line 3"},
		{"repeated below", edit(t, "lessons:", "capacity: 6\n«capacity: 600"), "key capacity is repeated, first on line 5"},
		{"repeated, quoted", edit(t, "lessons:", "capacity: 6\n«\"capacity\": 600"), "key capacity is repeated"},
		{"repeated in braces", edit(t, "name:", "retry: { backoff: 1ms, «backoff: 2ms }"), "key backoff is repeated"},
		{"repeated pool", edit(t, "pools:", "lessons: { capacity: 6 }\n«lessons: { capacity: 600 }"), "key lessons is repeated"},
		{"repeated name of a user's", edit(t, "name:", "answers: { closed: { headers: { X-A: b, «X-A: c } } }"), "key X-A is repeated"},
		{"merge", edit(t, "lessons:", "capacity: 6\n«<<: { hold_ttl: 20s }"), "merge keys (<<) are not supported"},
		{"tag", edit(t, "lessons:", "capacity: «!!int 6"), "tags (!!int) are not supported"},
		{"tag of our own", edit(t, "lessons:", "capacity: «!units 6"), "tags (!units) are not supported"},
		{"list as a key", edit(t, "pools:", "«[a, b]: { capacity: 6 }"), "a key must be plain text"},
	} {
		t.Run(row.name, func(t *testing.T) { expectFault(t, row.src, row.want, LoadOptions{}) })
	}
}

func TestLoadRefusesAnchorsAndAliases(t *testing.T) {
	src := edit(t, "lessons:", "hold_ttl: &ttl 30s\nretain: *ttl")
	_, faults := Load("c.yaml", []byte(src), LoadOptions{})
	var got []string
	for _, f := range faults.Errors() {
		got = append(got, f.Message)
	}
	want := []string{
		"anchors (&ttl) are not supported: remove it, or quote the text",
		"aliases (*ttl) are not supported: write the value out, or quote the text",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s", faults)
	}
}

func TestDidYouMean(t *testing.T) {
	words := []string{"hold_ttl", "retain", "queue"}
	for written, want := range map[string]string{
		"hold_tll": "hold_ttl", "holdttl": "hold_ttl", "Hold_TTL": "hold_ttl", "quque": "queue", "retian": "retain",
		"colour": "", "x": "", "": "",
	} {
		got := didYouMean(written, words)
		if want != "" {
			want = ", did you mean " + want + "?"
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", written, got, want)
		}
	}
}
