package rules

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
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

func TestLoadDefaults(t *testing.T) {
	cfg := load(t, base, LoadOptions{})
	want := defaultConfig()
	want.Upstream.URL = "http://127.0.0.1:9000"
	pool := defaultPool()
	pool.Capacity = Capacity{Kind: CapacityNumber, Units: 6}
	want.Pools = map[string]*PoolConfig{"lessons": pool}
	rule := defaultRule()
	rule.Name = "book-lesson"
	rule.Match.Path = "/api/lessons/{lesson}/bookings"
	rule.Pool = "lessons"
	rule.Slot = Extractors{{Source: FromPath, Name: "lesson"}}
	want.Rules = []*RuleConfig{rule}
	if !reflect.DeepEqual(cfg, want) {
		t.Errorf("got  %+v\nwant %+v", cfg, want)
	}
}

// TestDefaultsFollowTheContract spells the table of the documentation out.
func TestDefaultsFollowTheContract(t *testing.T) {
	cfg := load(t, edit(t, "name:", "idempotency: {}\nlimits: { slot: { rate: 7/10s } }"), LoadOptions{})
	r := cfg.Rules[0]
	for _, row := range []struct {
		name      string
		got, want any
	}{
		{"server.listen", cfg.Server.Listen, ":8080"},
		{"server.max_body", cfg.Server.MaxBody.String(), "1MiB"},
		{"server.max_header", cfg.Server.MaxHeader.String(), "16KiB"},
		{"server.max_buffered", cfg.Server.MaxBuffered.String(), "256MiB"},
		{"server.read_timeout", cfg.Server.ReadTimeout, 10 * time.Second},
		{"server.idle_timeout", cfg.Server.IdleTimeout, time.Minute},
		{"server.max_connections", cfg.Server.MaxConnections, 16384},
		{"server.drain", cfg.Server.Drain, 15 * time.Second},
		{"server.gate_headers", cfg.Server.GateHeaders, true},
		{"server.unmatched", cfg.Server.Unmatched, "pass"},
		{"server.forward_path", cfg.Server.ForwardPath, "as_sent"},
		{"admin.listen", cfg.Admin.Listen, "127.0.0.1:9901"},
		{"upstream.dialect", cfg.Upstream.Dialect, "any"},
		{"upstream.connect_timeout", cfg.Upstream.ConnectTimeout, time.Second},
		{"upstream.timeout", cfg.Upstream.Timeout, 5 * time.Second},
		{"upstream.max_connections", cfg.Upstream.MaxConnections, 512},
		{"upstream.keep_alive", cfg.Upstream.KeepAlive, 4 * time.Second},
		{"upstream.breaker", cfg.Upstream.Breaker, BackendBreaker{0.5, 20, 10 * time.Second, 2 * time.Second, 3}},
		{"store.kind", cfg.Store.Kind, "memory"},
		{"store.addresses", cfg.Store.Addresses[0], "127.0.0.1:6379"},
		{"store.mode", cfg.Store.Mode, "standalone"},
		{"store.prefix", cfg.Store.Prefix, "slotgate"},
		{"store.timeout", cfg.Store.Timeout, 250 * time.Millisecond},
		{"store.breaker", cfg.Store.Breaker, StoreBreaker{5, time.Second, 1}},
		{"store.max_memory", cfg.Store.MaxMemory.String(), "512MiB"},
		{"log", cfg.Log, LogConfig{Level: "info", Format: "text"}},
		{"tracing", cfg.Tracing, TracingConfig{Sample: 0.01}},
		{"hold_ttl", cfg.Pools["lessons"].HoldTTL, 30 * time.Second},
		{"retain", cfg.Pools["lessons"].Retain, 720 * time.Hour},
		{"queue", cfg.Pools["lessons"].Queue, QueueConfig{256, 2 * time.Second}},
		{"action", r.Action, "book"},
		{"body_as", r.BodyAs, "auto"},
		{"charset", r.Charset, "utf-8"},
		{"key", fmt.Sprint(r.Idempotency.Key), "[header:Idempotency-Key]"},
		{"scope", fmt.Sprint(r.Idempotency.Scope), "[header:Authorization header:Cookie]"},
		{"group", r.Idempotency.Group, "book-lesson"},
		{"ttl", r.Idempotency.TTL, 24 * time.Hour},
		{"in_flight", r.Idempotency.InFlight, "wait"},
		{"wait", r.Idempotency.Wait, 5 * time.Second},
		{"unknown", r.Idempotency.Unknown, "reject"},
		{"store", fmt.Sprint(r.Idempotency.Store), "[booked duplicate]"},
		{"max_response", r.Idempotency.MaxResponse.String(), "256KiB"},
		{"limits.slot", *r.Limits.Slot, LimitConfig{Rate{7, 10 * time.Second}, 7}},
		{"retry", fmt.Sprint(r.Retry), "{[] 3 20ms 200ms}"},
		{"on_store_failure", r.OnStoreFailure, "pass"},
		{"passthrough", r.Passthrough, PassthroughConfig{LimitConfig{Rate{5, time.Second}, 10}, LimitConfig{Rate{200, time.Second}, 200}, 64, 1}},
		{"mode", r.Mode, "enforce"},
	} {
		if row.got != row.want {
			t.Errorf("%s is %v, want %v", row.name, row.got, row.want)
		}
	}
}

func TestUnknownAutoFollowsTheOutcomes(t *testing.T) {
	src := edit(t, "name:", "idempotency: {}\noutcomes: [{ when: { status: 409 }, is: duplicate }]")
	if got := load(t, src, LoadOptions{}).Rules[0].Idempotency.Unknown; got != "retry" {
		t.Errorf("unknown is %s, want retry", got)
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
