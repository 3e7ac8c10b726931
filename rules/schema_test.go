package rules

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(JSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("slotgate.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("slotgate.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// asJSON is a YAML document as a schema validator sees it.
func asJSON(t *testing.T, src string) any {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(src), &value); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return instance
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(src)
}

func TestSchemaAcceptsGoodConfigurations(t *testing.T) {
	schema := compileSchema(t)
	sources := map[string]string{"base": base, "quiet": quiet}
	for _, capacity := range []string{
		sqlTruth, httpTruth,
		`capacity: { sql: { driver: mysql, dsn: "${DSN:-d}", query: "SELECT a WHERE b = ?", means: booked, total: { query: "SELECT c WHERE d = ?" } }, refresh: 2s, hot: 1s, max_rate: 5/s, lag: 0s, bookings: { query: "SELECT id, s WHERE b = ?" }, report: "04:30", report_dir: /a }`,
		`capacity: { http: { path: "/{slot}", value: json:/a, means: booked, total: { value: json:/b }, headers: { A: b } }, bookings: { path: "/{slot}/{subject}" } }`,
		`capacity: { http: { path: "/{slot}", value: json:/a, means: booked, total: 6 }, timeout: "${T:-1s}" }`,
	} {
		sources[capacity] = edit(t, "lessons:", capacity)
	}
	files, err := filepath.Glob(filepath.Join("testdata", "good", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	files = append(files, filepath.Join("..", "config.example.yaml"))
	for _, name := range []string{"D-31", "D-35", "D-41", "D-42", "D-65"} {
		files = append(files, filepath.Join("testdata", "load", name+".yaml"))
	}
	for _, file := range files {
		sources[file] = readFile(t, file)
	}
	for name, src := range sources {
		load(t, src, LoadOptions{})
		if err := schema.Validate(asJSON(t, src)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSchemaRefuses(t *testing.T) {
	schema := compileSchema(t)
	for _, row := range []struct{ section, text string }{
		{"", "sever: {}"},
		{"", "version: 2"},
		{"", "rules: []"},
		{"", "store: { kind: postgres }"},
		{"upstream:", "url: [a]"},
		{"upstream:", "timeout: 5"},
		{"upstream:", "timeout: 5 s"},
		{"upstream:", "max_connections: 0"},
		{"upstream:", "breaker: { failure_ratio: 2 }"},
		{"", "server: { max_body: 1MB }"},
		{"", "server: { max_body: 1024 }"},
		{"", "server: { gate_headers: \"yes\" }"},
		{"lessons:", "capacity: many"},
		{"lessons:", "capacity: -1"},
		{"lessons:", "capacity: { refresh: 5s }"},
		{"lessons:", "capacity: { sql: { driver: oracle, dsn: d, query: \"SELECT a WHERE b = ?\" } }"},
		{"lessons:", "capacity: { sql: { dsn: d, query: \"SELECT a WHERE b = ?\" } }"},
		{"lessons:", "capacity: { sql: { driver: sqlite, query: \"SELECT a WHERE b = ?\" } }"},
		{"lessons:", "capacity: { sql: { driver: sqlite, dsn: d } }"},
		{"lessons:", "capacity: { http: { value: json:/a } }"},
		{"lessons:", "capacity: { http: { path: \"/{slot}\" } }"},
		{"lessons:", "capacity: { http: { path: \"/{slot}\", value: path:a } }"},
		{"lessons:", "capacity: { http: { path: \"/{slot}\", value: json:/a, means: left } }"},
		{"lessons:", "capacity: { http: { path: \"/{slot}\", value: json:/a, means: booked, total: 0 } }"},
		{"lessons:", "capacity: { http: { path: \"/{slot}\", value: json:/a, means: booked, total: {} } }"},
		{"lessons:", "capacity: { http: { path: \"/{slot}\", value: json:/a }, refrsh: 5s }"},
		{"lessons:", "capacity: { http: { path: \"/{slot}\", value: json:/a }, refresh: 5 }"},
		{"lessons:", "hold_tll: 30s"},
		{"lessons:", "max_inflight: 1.5"},
		{"name:", "mode: shadwo"},
		{"name:", "subject: student"},
		{"name:", "subject: { json: /a }"},
		{"name:", "subject: { from: json:/a, as: int }"},
		{"name:", "limits: { client: { rate: 5 } }"},
		{"name:", "idempotency: { store: [unknown] }"},
		{"name:", "idempotency: { fingerprint: [] }"},
		{"name:", "outcomes: [{ when: { status: 409 } }]"},
		{"name:", "outcomes: [{ when: { status: 4XX }, is: refused }]"},
		{"name:", "outcomes: [{ when: { status: 409 }, is: soldout }]"},
		{"name:", "retry: { on: [unknown] }"},
		{"name:", "answers: { sold-out: { status: 200 } }"},
		{"name:", "answers: { closed: { status: 600 } }"},
		{"match:", "methods: POST"},
	} {
		src := edit(t, row.section, row.text)
		if cfg, _ := Load("c.yaml", []byte(src), LoadOptions{}); cfg != nil {
			t.Errorf("Load accepts %s", row.text)
		}
		if schema.Validate(asJSON(t, src)) == nil {
			t.Errorf("the schema accepts %s", row.text)
		}
	}
}

func TestSchemaKnowsWhatIsRequired(t *testing.T) {
	schema := compileSchema(t)
	for _, row := range []struct{ name, src string }{
		{"upstream", strings.Replace(base, "upstream:\n  url: http://127.0.0.1:9000\n", "", 1)},
		{"upstream.url", strings.Replace(base, "  url: http://127.0.0.1:9000\n", "  timeout: 5s\n", 1)},
		{"rules", base[:strings.Index(base, "rules:")]},
		{"capacity", strings.Replace(base, "capacity: 6", "retain: 30d", 1)},
		{"name", strings.Replace(base, "name: book-lesson", "action: book", 1)},
		{"match", strings.Replace(base, "    match:\n      path: \"/api/lessons/{lesson}/bookings\"\n", "", 1)},
		{"match.path", strings.Replace(base, "path: \"/api/lessons/{lesson}/bookings\"", "exact: true", 1)},
	} {
		if cfg, _ := Load("c.yaml", []byte(row.src), LoadOptions{}); cfg != nil {
			t.Errorf("Load accepts a configuration without %s", row.name)
		}
		if schema.Validate(asJSON(t, row.src)) == nil {
			t.Errorf("the schema accepts a configuration without %s", row.name)
		}
	}
}

var tagKey = regexp.MustCompile(`(?:^| )([a-z]+):"(?:[^"\\]|\\.)*"`)

// TestSchemaTags holds the tags of every field to what the loader can read.
func TestSchemaTags(t *testing.T) {
	known := map[string]bool{"yaml": true, "enum": true, "min": true, "max": true, "doc": true}
	seen := map[reflect.Type]bool{}
	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
			if structured[typ] != nil {
				return
			}
			typ = typ.Elem()
		}
		_, text := textTypes[typ]
		if typ.Kind() != reflect.Struct || seen[typ] || structured[typ] != nil || text {
			return
		}
		seen[typ] = true
		names := map[string]bool{}
		for i := range typ.NumField() {
			f := typ.Field(i)
			name := f.Tag.Get("yaml")
			if name == "" || names[name] {
				t.Errorf("%s.%s: the yaml name %q is empty or repeated", typ, f.Name, name)
			}
			names[name] = true
			for _, m := range tagKey.FindAllStringSubmatch(string(f.Tag), -1) {
				if !known[m[1]] {
					t.Errorf("%s.%s: nothing reads the tag %q", typ, f.Name, m[1])
				}
			}
			for _, bound := range []string{f.Tag.Get("min"), f.Tag.Get("max")} {
				if bound == "" {
					continue
				}
				if _, err := textTypes[f.Type].parse(scalar{text: bound, plain: true}); err != nil {
					t.Errorf("%s.%s: the bound %s: %v", typ, f.Name, bound, err)
				}
			}
			walk(f.Type)
		}
	}
	walk(reflect.TypeFor[Config]())
	walk(reflect.TypeFor[TruthConfig]()) // one of the forms of a capacity
	if len(seen) < 20 {
		t.Errorf("saw only %d types of the schema", len(seen))
	}
}

func loadExample(t *testing.T) (cfg *Config, doc *document) {
	t.Helper()
	src := readFile(t, filepath.Join("..", "config.example.yaml"))
	return load(t, src, LoadOptions{}), parseDocument("config.example.yaml", []byte(src))
}

func TestExampleShowsEveryField(t *testing.T) {
	_, doc := loadExample(t)
	var walk func(p place, typ reflect.Type)
	walk = func(p place, typ reflect.Type) {
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		_, text := textTypes[typ]
		if typ.Kind() != reflect.Struct || text || structured[typ] != nil || typ == reflect.TypeFor[IssueConfig]() {
			return
		}
		for _, f := range fieldsOf(typ) {
			at := p.field(f.name)
			if !at.written {
				t.Errorf("%s is not shown", at.path)
				continue
			}
			walk(at, f.typ)
		}
	}
	walk(doc.top(), reflect.TypeFor[Config]())
	walk(doc.top().field("pools").field("lessons"), reflect.TypeFor[PoolConfig]())
	walk(doc.top().field("rules").item(0), reflect.TypeFor[RuleConfig]())
}

// TestExampleShowsDefaults: only what the file calls an example differs from them.
func TestExampleShowsDefaults(t *testing.T) {
	cfg, _ := loadExample(t)
	want := load(t, edit(t, "name:", "idempotency: {}"), LoadOptions{})
	pool, rule := want.Pools["lessons"], want.Rules[0]
	shown := cfg.Rules[0]
	pool.OnePerSubject = cfg.Pools["lessons"].OnePerSubject
	rule.Match, rule.Slot, rule.Subject, rule.Units = shown.Match, shown.Slot, shown.Subject, shown.Units
	rule.Limits, rule.Outcomes, rule.Answers = shown.Limits, shown.Outcomes, shown.Answers
	rule.Idempotency.Key, rule.Idempotency.Unknown = shown.Idempotency.Key, "retry"

	if got, want := asText(t, cfg), asText(t, want); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// asText is for comparing configurations; what is empty is equal however it was written.
func asText(t *testing.T, cfg *Config) string {
	t.Helper()
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(":null", ":[]", ":{}", ":[]", `:""`, ":[]").Replace(string(text))
}

// commentedOut is a line of the example that becomes configuration without its #.
var commentedOut = regexp.MustCompile(`(?m)^( +)#(\S|  )`)

// fullExample is the example with all that is commented out in it.
func fullExample(t *testing.T) string {
	t.Helper()
	return commentedOut.ReplaceAllString(readFile(t, filepath.Join("..", "config.example.yaml")), "$1$2")
}

// TestExampleOfTruth: what is commented out shows every field of a truth source with
// its default, can be used as it stands, and is worth no warning.
func TestExampleOfTruth(t *testing.T) {
	src := fullExample(t)
	cfg, faults := Load("config.example.yaml", []byte(src), LoadOptions{})
	if cfg == nil || len(cfg.Rules) != 4 {
		t.Fatalf("%d rules and\n%s", strings.Count(src, "- name: "), faults)
	}
	if err := compileSchema(t).Validate(asJSON(t, src)); err != nil {
		t.Error(err)
	}
	_, short := Load("config.example.yaml", []byte(readFile(t, filepath.Join("..", "config.example.yaml"))), LoadOptions{})
	if len(faults) != len(short) {
		t.Errorf("what is commented out brings warnings:\n%s", faults)
	}
	capacity := parseDocument("", []byte(src)).top().field("pools").field("seats").field("capacity")
	for _, block := range []struct {
		at  place
		typ reflect.Type
	}{{capacity, reflect.TypeFor[TruthConfig]()}, {capacity.field("sql"), reflect.TypeFor[SQLSource]()}} {
		for _, f := range fieldsOf(block.typ) {
			if f.name != "http" && f.name != "total" && !block.at.field(f.name).written {
				t.Errorf("%s.%s is not shown", block.at.path, f.name)
			}
		}
	}
	shown := *cfg.Pools["seats"].Capacity.Truth
	shown.SQL, shown.Bookings = nil, nil
	if want := defaultTruth(); shown != *want {
		t.Errorf("got  %+v\nwant %+v", shown, *want)
	}

	http := regexp.MustCompile(`(?m)^ +# (http: .*)$`).FindStringSubmatch(src)
	bookings := regexp.MustCompile(`(?m)^ +(bookings: ).*; http: (\{.*?\}" \})`).FindStringSubmatch(src)
	if http == nil || bookings == nil {
		t.Fatal("the example shows no http source")
	}
	truth := loadTruth(t, "capacity: { "+http[1]+", "+bookings[1]+bookings[2]+" }", LoadOptions{})
	for _, f := range fieldsOf(reflect.TypeFor[HTTPSource]()) {
		if f.name != "total" && !strings.Contains(http[1], f.name+": ") {
			t.Errorf("http.%s is not shown", f.name)
		}
	}
	if truth.Bookings.Path == "" {
		t.Error("bookings by http are not shown")
	}
}

// TestExampleReadsTheSampleBackend: the outcomes are those of cmd/legacybooking.
func TestExampleReadsTheSampleBackend(t *testing.T) {
	cfg, _ := loadExample(t)
	set, err := NewSet(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		status int
		body   string
		want   Outcome
	}{
		{201, `{"code":0,"data":{"booking_id":1}}`, Booked},
		{409, `{"error":"sold_out","message":"not enough seats left"}`, SoldOut},
		{409, `{"error":"duplicate","message":"this student has booked this lesson already"}`, Duplicate},
		{404, `{"error":"not_found"}`, Refused},
		{503, `{"error":"busy"}`, Busy},
		{500, `{"error":"internal"}`, Unknown},
	} {
		answer := &Response{Status: row.status, Header: []Field{{"Content-Type", "application/json"}}, Body: []byte(row.body)}
		if got := set.Rules[0].Classify(answer); got != row.want {
			t.Errorf("%d %s is %s, want %s", row.status, row.body, got, row.want)
		}
	}
}
