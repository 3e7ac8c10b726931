package rules

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestLoadTypes(t *testing.T) {
	for _, row := range []struct{ section, text, want string }{
		// numbers
		{"lessons:", "max_inflight: «010", "write 10"},
		{"lessons:", "max_inflight: «0o10", "write 8"},
		{"lessons:", "max_inflight: «0x10", "write 16"},
		{"lessons:", "max_inflight: «0b11", "write 3"},
		{"lessons:", "max_inflight: «1_000", "write 1000"},
		{"lessons:", "max_inflight: «+5", "write 5"},
		{"lessons:", "max_inflight: «1.5", "1.5 is not a whole number"},
		{"lessons:", "max_inflight: «1e3", "1e3 is not a whole number"},
		{"lessons:", "max_inflight: «1.0", "1.0 is not a whole number"},
		{"lessons:", "max_inflight: «\"5\"", "write 5 without quotes"},
		{"lessons:", "max_inflight: «many", `"many" is not a whole number`},
		{"lessons:", "max_inflight: «.inf", "not a number that can be counted"},
		{"lessons:", "max_inflight: «1:30", "is not a whole number"},
		{"lessons:", "max_inflight: «-1", "-1 is too little: the least is 0"},
		{"lessons:", "max_inflight: «1000001", "1000001 is too much: the most is 1000000"},
		{"lessons:", "max_per_subject: «99999999999999999999", "too large a number"},
		{"lessons:", "«max_inflight: [1]", "takes a whole number, not a list"},
		{"upstream:", "breaker: { failure_ratio: «0.5.1 }", "is not a number"},
		{"upstream:", "breaker: { failure_ratio: «1.5 }", "1.5 is too much: the most is 1"},
		{"upstream:", "breaker: { failure_ratio: «0 }", "0 is too little"},
		{"upstream:", "breaker: { failure_ratio: «.5 }", "write 0.5"},
		{"upstream:", "breaker: { failure_ratio: «\"0.5\" }", "write 0.5 without quotes"},
		{"upstream:", "breaker: { failure_ratio: «1e999 }", "too large a number"},
		// capacity
		{"lessons:", "capacity: «010", "write 10"},
		{"lessons:", "capacity: «-1", "-1 is below 0"},
		{"lessons:", "capacity: «6.5", "6.5 is not a whole number"},
		{"lessons:", "capacity: «\"6\"", "write 6 without quotes"},
		{"lessons:", "capacity: «lerned", "did you mean learned?"},
		{"lessons:", "capacity: «unlimited", "it takes a number of units, learned"},
		{"lessons:", "capacity: «9007199254740992", "too large a number"},
		{"lessons:", "«capacity: [6]", "takes a number of units, learned, or a truth source { sql: … } or { http: … }, not a list"},
		{"lessons:", "«capacity: { refresh: 5s }", "takes a number of units, learned, or a truth source"},
		{"lessons:", "capacity: { «sq: {} }", "unknown key sq, did you mean sql?"},
		{"lessons:", "«capacity: { sql: {}, http: {} }", "has sql and http: keep one of them"},
		// booleans
		{"lessons:", "keep_unknown: «yes", "yes is not a boolean here: write true"},
		{"lessons:", "keep_unknown: «off", "off is not a boolean here: write false"},
		{"lessons:", "keep_unknown: «True", "write true"},
		{"lessons:", "keep_unknown: «\"true\"", "write true, without quotes"},
		{"lessons:", "keep_unknown: «1", "write true"},
		{"lessons:", "keep_unknown: «maybe", `"maybe" is not a boolean`},
		// null
		{"lessons:", "hold_ttl:«", "has no value"},
		{"lessons:", "hold_ttl: «~", "has no value"},
		{"lessons:", "hold_ttl: «null", "has no value"},
		{"name:", "idempotency:«", "has no value"},
		{"name:", "name:«", "has no value"},
		{"name:", "subject: [json:/a, «~]", "has no value"},
		// text and words
		{"upstream:", "«url: { http: //a }", "takes text, not a mapping"},
		{"name:", "mode: «shadwo", `"shadwo" is not one of enforce, shadow, off, did you mean shadow?`},
		{"name:", "action: «Book", "did you mean book?"},
		{"", "store: { kind: «postgres }", `"postgres" is not one of memory, redis`},
		{"name:", "idempotency: { in_flight: «\"\" }", `"" is not one of wait, reject`},
		// blocks and lists
		{"", "server: «8080", "takes the fields listen, tls"},
		{"", "«server: [8080]", "takes the fields listen, tls, "},
		{"name:", "«outcomes: { when: { status: 409 }, is: refused }", "takes a list, not a mapping: begin each entry with -"},
		{"", "«pools: [lessons]", "takes a mapping of names to values, not a list"},
		{"pools:", "lessons: «6", "takes the fields capacity"},
		{"", "rules: «book", "takes a list, not a single value: write [book]"},
		{"match:", "methods: «POST", "takes a list, not a single value: write [POST]"},
		{"match:", "methods: [«[POST]]", "takes text, not a list"},
		{"", "rules: [«book]", "takes the fields name"},
		{"", "«sever: {}", "unknown key sever, did you mean server?"},
		{"upstream:", "«colour: red", "upstream: unknown key colour"},
		{"name:", "retry: { backoff: 1ms, «backof: 2ms }", "unknown key backof, did you mean backoff?"},
		// other values
		{"", "server: { trusted_proxies: [«10.0.0.1] }", "write 10.0.0.1/32"},
		{"", "server: { trusted_proxies: [«10.0.0.1/8] }", "write 10.0.0.0/8"},
		{"", "server: { trusted_proxies: [«private] }", "not an address range"},
		{"lessons:", "opens_at: «2026-12-01", "not an RFC 3339 time with its zone"},
		{"lessons:", "opens_at: «2026-12-01 09:00:00", "not an RFC 3339 time"},
		{"lessons:", "opens_at: «2026-13-01T09:00:00Z", "month out of range"},
		// extractors
		{"name:", "slot: «lesson", "write path:lesson, query:lesson"},
		{"name:", "slot: «paht:lesson", `"paht" is not a source, did you mean path?`},
		{"name:", "slot: «cgi:lesson", `"cgi" is not a source: write one of path, query`},
		{"name:", "slot: «\"path:\"", "names nothing"},
		{"name:", "subject: «json:student.id", "not a JSON Pointer: write /student/id"},
		{"name:", "subject: «json:$.student.id", "write /student/id"},
		{"name:", "subject: «json:/a~b", "a ~ is written ~0"},
		{"name:", "subject: «\"header:X Id\"", `"X Id" is not the name of a header`},
		{"name:", "subject: «\"const:a\\tb\"", "holds a control character"},
		{"name:", "subject: «ip:4", "the client address has no name"},
		{"name:", "subject: [json:/a, «jsn:/b]", "did you mean json?"},
		{"name:", "subject: [json:/a, «\"\"]", "is empty"},
		{"name:", "subject: [«[json:/a]]", "an extractor is json:/student_id"},
		{"name:", "subject: { «json: /student_id }", "unknown key json: an extractor is"},
		{"name:", "subject: { «form: json:/a }", "did you mean from?"},
		{"name:", "«subject: { as: integer }", "from is missing"},
		{"name:", "subject: { from: json:/a, as: «int }", `"int" is not one of text, integer`},
		{"name:", "subject: { from: json:/a, case: «lower }", `"lower" is not one of keep, fold`},
		{"name:", "subject: { from: «json:a }", "not a JSON Pointer"},
		{"name:", "idempotency: { fingerprint: «bdoy }", "did you mean body?"},
		{"name:", "idempotency: { «fingerprint: [] }", "the list is empty: write none"},
		{"name:", "idempotency: { fingerprint: [json:/a, «body] }", "does not say where to look"},
		// outcomes
		{"name:", "outcomes: [{ when: { status: «600 }, is: refused }]", `"600" is not a status`},
		{"name:", "outcomes: [{ when: { status: «4XX }, is: refused }]", "write 4xx"},
		{"name:", "outcomes: [{ when: { status: [200, «20x] }, is: refused }]", `"20x" is not a status`},
		{"name:", "outcomes: [{ when: { status: «503-500 }, is: refused }]", "write 500-503"},
		{"name:", "outcomes: [{ when: { status: «0x1f4 }, is: refused }]", "is not a status"},
		{"name:", "outcomes: [{ when: { «status: [] }, is: refused }]", "the list is empty"},
		{"name:", "outcomes: [{ when: { status: [«[200]] }, is: refused }]", "takes a status such as 200"},
		{"name:", "outcomes: [{ when: { json: { /a: «010 } }, is: refused }]", "write 10, or quote it"},
		{"name:", "outcomes: [{ when: { json: { /a: «yes } }, is: refused }]", "write true or false, or quote it"},
		{"name:", "outcomes: [{ when: { json: { «/a: [1] } }, is: refused }]", "takes text, a number, true, false or null, not a list"},
		{"name:", "outcomes: [{ when: { status: 409 }, is: «soldout }]", "did you mean sold_out?"},
		{"name:", "outcomes: [{ when: { status: 409 }, is: «never_sent }]", "is not one of booked"},
	} {
		t.Run(row.text, func(t *testing.T) {
			expectFault(t, edit(t, row.section, row.text), row.want, LoadOptions{})
		})
	}
}

func TestLoadValues(t *testing.T) {
	src := edit(t, "name:", `name: a.b_C-1
subject: [{ from: "json:/a~1b/~0", as: integer }, { from: header:X-Student, case: fold }, ip, "ip:"]
units: ""
idempotency: { fingerprint: [json:/a, "const:a b"], scope: [], key: cookie:sid, partition: query:shop }
outcomes:
  - when: { status: [200, 4xx, 500-503], header: { Location: "/ok*" }, json: { /a: 0, /b: "0", /c: true, /d: null, /e: -1.50e3, /f: "" }, text: full }
    is: booked
  - { when: { status: 3xx }, is: refused }`)
	src = strings.Replace(src, "    capacity: 6\n", "    capacity: learned\n    opens_at: 2026-12-01T09:00:00+08:00\n    retain: 1d12h\n", 1)
	cfg := load(t, src, LoadOptions{})
	r, pool := cfg.Rules[0], cfg.Pools["lessons"]
	for _, row := range []struct {
		name      string
		got, want any
	}{
		{"subject", r.Subject, Extractors{
			{Source: FromJSON, Name: "/a~1b/~0", Integer: true}, {Source: FromHeader, Name: "X-Student", Fold: true}, {Source: FromIP}, {Source: FromIP},
		}},
		{"units", r.Units, Extractors(nil)},
		{"fingerprint", r.Idempotency.Fingerprint, Fingerprint{FingerprintList, Extractors{{Source: FromJSON, Name: "/a"}, {Source: FromConst, Name: "a b"}}}},
		{"scope", r.Idempotency.Scope, Extractors{}},
		{"key", r.Idempotency.Key, Extractors{{Source: FromCookie, Name: "sid"}}},
		{"partition", r.Idempotency.Partition, Extractors{{Source: FromQuery, Name: "shop"}}},
		{"when", r.Outcomes[0], OutcomeConfig{
			When: WhenConfig{
				Status: []StatusRange{{200, 200}, {400, 499}, {500, 503}},
				Header: map[string]string{"Location": "/ok*"},
				JSON: map[string]Scalar{
					"/a": {ScalarNumber, "0"}, "/b": {ScalarString, "0"}, "/c": {ScalarBool, "true"},
					"/d": {ScalarNull, "null"}, "/e": {ScalarNumber, "-1.50e3"}, "/f": {ScalarString, ""},
				},
				Text: "full",
			},
			Is: Booked,
		}},
		{"capacity", pool.Capacity, Capacity{Kind: CapacityLearned}},
		{"opens_at", pool.OpensAt.UTC(), time.Date(2026, 12, 1, 1, 0, 0, 0, time.UTC)},
		{"retain", pool.Retain, 36 * time.Hour},
	} {
		if !reflect.DeepEqual(row.got, row.want) {
			t.Errorf("%s is %+v, want %+v", row.name, row.got, row.want)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]any{
		"250ms": 250 * time.Millisecond, "1m30s": 90 * time.Second, "30d": 720 * time.Hour, "1d12h": 36 * time.Hour,
		"0s": time.Duration(0), "0d": time.Duration(0), "1.5h": 90 * time.Minute,
		"30": "write 30s for seconds", "0": "0 has no unit", "1.5": "1.5 has no unit", "-5s": "cannot be negative",
		"5 s": "write 5s", "5sec": "write 5s", "5 Minutes": "write 5m", "20 milliseconds": "write 20ms", "2days": "write 2d",
		"1w": "not a duration", "": "not a duration", "soon": "not a duration", "1d-1h": "not a duration", "1d+1h": "not a duration",
		"200000d": "too long a time", "3650d1s": "too long a time", "87601h": "too long a time", "99999999999999999999d": "too long a time", "9999999999h": "not a duration",
	} {
		expectParse(t, "duration", text, want, parseDuration)
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]any{
		"64KiB": Size(64 << 10), "1MiB": Size(1 << 20), "2GiB": Size(2 << 30), "0KiB": Size(0),
		"1 MB": "write 1MiB", "1MB": "write 1MiB", "1 MiB": "write 1MiB", "1mib": "write 1MiB", "16k": "write 16KiB", "3G": "write 3GiB",
		"1024": "1024 has no unit", "1.5MiB": "not a size", "-1MiB": "not a size", "010KiB": "not a size", "1TiB": "not a size",
		"": "not a size", "9999999999999GiB": "too large", "99999999999999999999KiB": "too large",
	} {
		expectParse(t, "size", text, want, parseSize)
	}
}

func TestParseRate(t *testing.T) {
	for text, want := range map[string]any{
		"50/s": Rate{50, time.Second}, "5/10s": Rate{5, 10 * time.Second}, "100/1m": Rate{100, time.Minute}, "3/d": Rate{3, 24 * time.Hour}, "1/500ms": Rate{1, 500 * time.Millisecond},
		"5": "write 5/s", "5rps": "write 5/s", "50 / s": "write 50/s", "50/sec": "write 50/s", "50 per second": "write 50/s",
		"0/s": "lets nothing through", "5/0s": "counts over no time", "5/1000d": "too long a time", "9999999999/s": "too high",
		"-5/s": "not a rate", "05/s": "not a rate", "5/": "not a rate", "/s": "not a rate", "": "not a rate", "1.5/s": "not a rate",
	} {
		expectParse(t, "rate", text, want, parseRate)
	}
}

// expectParse wants a value, or an error that holds a text.
func expectParse(t *testing.T, what, text string, want any, parse func(scalar) (any, error)) {
	t.Helper()
	got, err := parse(scalar{text: text, plain: true})
	if message, ok := want.(string); ok {
		if err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s %q: got %v, %v; want an error with %q", what, text, got, err, message)
		}
		return
	}
	if err != nil || got != want {
		t.Errorf("%s %q: got %v, %v; want %v", what, text, got, err, want)
	}
}

func TestUnitsAreWrittenAsTheyAreRead(t *testing.T) {
	for _, row := range []struct {
		value fmt.Stringer
		want  string
	}{
		{Size(1 << 20), "1MiB"}, {Size(1536 << 10), "1536KiB"}, {Size(2 << 30), "2GiB"}, {Size(0), "0KiB"},
		{Rate{50, time.Second}, "50/s"}, {Rate{5, 10 * time.Second}, "5/10s"}, {Rate{100, time.Minute}, "100/1m"},
		{Extractor{Source: FromJSON, Name: "/a"}, "json:/a"}, {Extractor{Source: FromIP}, "ip:"},
	} {
		if got := row.value.String(); got != row.want {
			t.Errorf("got %s, want %s", got, row.want)
		}
	}
	for d, want := range map[time.Duration]string{
		720 * time.Hour: "30d", 24 * time.Hour: "24h", 36 * time.Hour: "36h", 90 * time.Second: "1m30s", time.Minute: "1m",
		250 * time.Millisecond: "250ms", 0: "0s", time.Hour + time.Second: "1h0m1s",
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got, err := parseDuration(scalar{text: want}); err != nil || got != d {
			t.Errorf("%s reads as %v, %v", want, got, err)
		}
	}
}
