package rules

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

func TestLoadReportsEveryFault(t *testing.T) {
	const src = `server:
  listn: ":8080"
  max_body: 1MB
upstream:
  url: http://127.0.0.1:9000
  timeout: 5
pools:
  lessons:
    capacity: 010
rules:
  - name: a
    match: { path: "/a/{x}", methods: [post] }
    pool: lesons
    slot: path:y
    colour: red
`
	_, faults := Load("c.yaml", []byte(src), LoadOptions{})
	var got []string
	for _, f := range faults.Errors() {
		got = append(got, fmt.Sprintf("%d:%d", f.Line, f.Col))
	}
	want := []string{"2:3", "3:13", "6:12", "9:15", "12:40", "13:11", "14:11", "15:5"}
	if !slices.Equal(got, want) {
		t.Errorf("positions %v, want %v\n%s", got, want, faults)
	}
}

func TestLoadTellsWhatIsMissing(t *testing.T) {
	for _, row := range []struct{ name, src, want string }{
		{"nothing", "«", "the file is empty"},
		{"a comment only", "«# nothing\n", "the file is empty"},
		{"null", "«---\n", "the file is empty"},
		{"a list", "«- a\n- b\n", "must be a mapping of server, upstream"},
		{"text", "\n«hello\n", "must be a mapping"},
		{"upstream.url", edit(t, "", "«upstream:\n  timeout: 5s\n"), "upstream.url: is required"},
		{"rules", strings.Replace("«"+base, "rules:", "log: {}\nx:", 1), "rules: at least one rule is required"},
		{"rule name", strings.Replace(base, "- name: book-lesson\n    match:", "- «match:", 1), "name: is required"},
		{"match", strings.Replace(base, "    match:\n      path: \"/api/lessons/{lesson}/bookings\"\n", "", 1), "match.path: is required"},
		{"capacity", edit(t, "lessons:", "hold_ttl: 30s"), "capacity: is required"},
	} {
		t.Run(row.name, func(t *testing.T) {
			src := row.src
			switch row.name {
			case "rules":
				src = strings.Split(src, "x:")[0]
			case "match":
				src = strings.Replace(src, "- name", "- «name", 1)
			case "capacity":
				src = strings.Replace(strings.Replace(src, "    capacity: 6\n", "", 1), "  lessons:", "  «lessons:", 1)
			}
			expectFault(t, src, row.want, LoadOptions{})
		})
	}
}

// TestLoadCases are the collected inputs that other systems got wrong.
func TestLoadCases(t *testing.T) {
	env := func(name string) (string, bool) {
		value, ok := map[string]string{"INJECT": "http://a\npools: {}"}[name]
		return value, ok
	}
	for _, row := range []struct {
		file string
		want []string // errors, or warnings where there is no error
	}{
		{"D-02", []string{"D-02.yaml:18:1: key pools is repeated, first on line 7"}},
		{"D-04", []string{"D-04.yaml:18:11: rules.book-lesson.name: there is a rule book-lesson already, on line 12"}},
		{"D-05", []string{
			"D-05.yaml:8:9: anchors (&b) are not supported",
			"D-05.yaml:10:5: merge keys (<<) are not supported: write the fields out",
		}},
		{"D-08", []string{"D-08.yaml:9:1: a tab cannot indent YAML: use spaces"}},
		{"D-09", []string{"D-09.yaml:10:5: pools.lessons: unknown key hold_tll, did you mean hold_ttl?"}},
		{"D-13", []string{"D-13.yaml:9:15: pools.lessons.capacity: 010 is a number that YAML versions read differently: write 10"}},
		{"D-14", []string{"D-14.yaml:9:15: pools.lessons.capacity: 1_000 is a number that YAML versions read differently: write 1000"}},
		{"D-20", []string{"D-20.yaml:10:15: pools.lessons.hold_ttl: 30 has no unit: write 30s"}},
		{"D-23", []string{"D-23.yaml:10:15: pools.lessons.hold_ttl: 2s is too short, it must be more than 6.2s: rule book-lesson"}},
		{"D-27", []string{"D-27.yaml:11:1: rules: at least one rule is required"}},
		{"D-29", []string{"D-29.yaml:18:1: a second document starts here"}},
		{"D-31", nil},
		{"D-34", []string{"D-34.yaml:17:15: rules.book-lesson.subject: unknown key json: an extractor is json:/student_id"}},
		{"D-35", nil},
		{"D-36", []string{"D-36.yaml:5:8: the environment variable NO_SUCH_VAR_X is not set"}},
		{"D-37", []string{"D-37.yaml:5:8: upstream.url: is not a URL"}},
		{"D-38", []string{"D-38.yaml:8:3: key ${POOL:-lessons}: variables are expanded in values only"}},
		{"D-41", []string{"D-41.yaml:19:37: warning: rules.book-any.match.path: rule book-any overlaps rule book-lesson above"}},
		{"D-42", []string{"D-42.yaml:17:37: warning: rules.book-lesson.match.path: rule book-lesson can never match: rule catch-all above takes all of it"}},
		{"D-45", []string{"D-45.yaml:16:11: rules.book-lesson.slot: /api/lessons/{lesson}/bookings has no variable slot: it has lesson"}},
		{"D-47", []string{`D-47.yaml:13:37: rules.book-lesson.match.path: "/api/lessons/(.*)/bookings" looks like a regular expression`}},
		{"D-50", []string{`D-50.yaml:13:37: rules.book-lesson.match.path: "/api//lessons/../lessons/{lesson}/bookings/" is not in normal form, so that no request could match it: write /api/lessons/{lesson}/bookings`}},
		{"D-57", []string{"D-57.yaml:18:32: rules.book-lesson.limits.subject.rate: 5 does not say per what: write 5/s"}},
		{"D-60", []string{`D-60.yaml:18:67: rules.book-lesson.idempotency.store.1: "unkown" is not one of booked, duplicate, refused`}},
		{"D-61", []string{`D-61.yaml:3:13: server.max_body: "1 MB" is not a size: write 1MiB`}},
		{"D-65", nil},
	} {
		t.Run(row.file, func(t *testing.T) {
			name := row.file + ".yaml"
			src, err := os.ReadFile(filepath.Join("testdata", "load", name))
			if err != nil {
				t.Fatal(err)
			}
			cfg, faults := Load(name, src, LoadOptions{Env: env})
			got := faults.Errors()
			if (cfg == nil) != (len(got) > 0) {
				t.Fatalf("config %v with faults:\n%s", cfg, faults)
			}
			if row.want != nil && len(got) == 0 {
				got = faults.Warnings()
			} else if len(got) != len(row.want) {
				t.Fatalf("want %d errors, got:\n%s", len(row.want), faults)
			}
			for _, want := range row.want {
				if !slices.ContainsFunc(got, func(f Fault) bool { return strings.HasPrefix(f.String(), want) }) {
					t.Errorf("got:\n%s\nwant: %s", faults, want)
				}
			}
		})
	}
}

func TestFaultString(t *testing.T) {
	for want, f := range map[string]Fault{
		"a.yaml:3:4: no":          {File: "a.yaml", Line: 3, Col: 4, Message: "no"},
		"a.yaml:3:4: warning: hm": {File: "a.yaml", Line: 3, Col: 4, Message: "hm", Warning: true},
		"--set x.y: no":           {File: "--set x.y", Message: "no"},
	} {
		if got := f.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// oddValues are what a person might write for anything.
var oddValues = []string{
	"", "0", "1", "-1", "7", "010", "0x10", "1.5", "1e3", "99999999999999999999", "true", "yes", "null", "~",
	"30s", "30", "30d", "1MiB", "5/s", "200", "4xx", "learned", "booked", "done", "auto", "off", "*", "a b", "名额",
	"path:lesson", "path:x", "json:/a", "header:X-A", "ip:", "/", "/a/{b}", "http://a:1", "127.0.0.1:1", "unix:/a",
	"${X}", "${X:-1}", "a\x00b", "[]", "{}", "[a]", "[{}]", "[[]]", "{a: b}", "{from: json:/a}", "[null]", "[200, 4xx]", "[busy]", "[path:lesson, json:/a]",
}

// TestLoadAnyValueAnywhere writes odd values to every field, each some of them so
// that it stays quick: Load must have an opinion on each, and what it accepts must
// compile.
func TestLoadAnyValueAnywhere(t *testing.T) {
	src := regexp.MustCompile(`(?m)\s+# .*$`).ReplaceAll([]byte(fullExample(t)), nil)
	var paths []string
	var walk func(p place)
	walk = func(p place) {
		if p.path != "" {
			paths = append(paths, p.path)
		}
		switch p.value.Kind {
		case yaml.MappingNode:
			for i := 0; i < len(p.value.Content); i += 2 {
				walk(p.field(p.value.Content[i].Value))
			}
		case yaml.SequenceNode:
			for i := range p.value.Content {
				walk(p.item(i))
			}
		}
	}
	walk(parseDocument("", src).top())
	if len(paths) < 200 {
		t.Fatalf("the example has only %d places", len(paths))
	}
	accepted := 0
	for i, path := range paths {
		for j := i % 19; j < len(oddValues); j += 19 {
			value := oddValues[j]
			cfg, faults := Load("c.yaml", src, LoadOptions{Set: []string{path + "=" + value}})
			if (cfg == nil) != (len(faults.Errors()) > 0) {
				t.Fatalf("%s=%s gives the config %v with faults:\n%s", path, value, cfg, faults)
			}
			if cfg == nil {
				continue
			}
			accepted++
			if _, err := NewSet(cfg); err != nil {
				t.Errorf("%s=%s is accepted, but does not compile: %v", path, value, err)
			}
		}
	}
	if accepted == 0 {
		t.Error("no value was accepted anywhere")
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(base)
	f.Add(strings.Replace(base, "capacity: 6", sqlTruth, 1))
	f.Add(strings.Replace(base, "capacity: 6", httpTruth, 1))
	files, err := filepath.Glob(filepath.Join("testdata", "load", "*.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(files, filepath.Join("..", "config.example.yaml")) {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(src))
	}
	f.Fuzz(func(t *testing.T, src string) {
		cfg, faults := Load("c.yaml", []byte(src), LoadOptions{})
		if (cfg == nil) != (len(faults.Errors()) > 0) {
			t.Fatalf("config %v with faults:\n%s", cfg, faults)
		}
		lines := strings.Split(strings.TrimPrefix(src, "\uFEFF"), "\n")
		for _, fault := range faults {
			if fault.Line < 1 || fault.Line > len(lines) {
				t.Fatalf("%s: the file has %d lines", fault, len(lines))
			}
			if width := len([]rune(lines[fault.Line-1])) + 1; fault.Col < 1 || fault.Col > width {
				t.Fatalf("%s: the line has %d columns", fault, width)
			}
		}
		if cfg != nil {
			if _, err := NewSet(cfg); err != nil {
				t.Fatalf("a configuration without faults does not compile: %v\n%s", err, src)
			}
		}
	})
}
