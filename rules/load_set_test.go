package rules

import (
	"strings"
	"testing"
	"time"
)

func TestSet(t *testing.T) {
	src := strings.Replace(base, "name: book-lesson", "name: book.lesson", 1)
	cfg := load(t, src, LoadOptions{Env: testEnv, Set: []string{
		"upstream.timeout=2s",
		"pools.lessons.capacity=5",
		"pools.lessons.capacity=7",
		"pools.lessons.queue.size=3",
		"rules.book.lesson.mode=off",
		"rules.0.match.methods=[POST, PUT]",
		"rules.0.limits.client={ rate: 5/s }",
		"rules.0.answers.closed.headers.X-A=b=c",
		"admin.token=",
		"store.password=123",
		"log.level=${LEVEL:-warn}",
	}})
	r := cfg.Rules[0]
	for _, row := range []struct{ got, want any }{
		{cfg.Upstream.Timeout, 2 * time.Second},
		{cfg.Upstream.URL, "http://127.0.0.1:9000"},
		{cfg.Pools["lessons"].Capacity.Units, int64(7)},
		{cfg.Pools["lessons"].Queue, QueueConfig{3, 2 * time.Second}},
		{r.Mode, "off"},
		{strings.Join(r.Match.Methods, " "), "POST PUT"},
		{*r.Limits.Client, LimitConfig{Rate{5, time.Second}, 5}},
		{r.Answers["closed"].Headers["X-A"], "b=c"},
		{cfg.Admin.Token, ""},
		{cfg.Store.Password, "123"},
		{cfg.Log.Level, "warn"},
	} {
		if row.got != row.want {
			t.Errorf("got %v, want %v", row.got, row.want)
		}
	}
}

func TestSetReplacesFaults(t *testing.T) {
	src := edit(t, "upstream:", "url: ${NOPE}\ntimeout: 5")
	load(t, src, LoadOptions{Set: []string{"upstream.url=http://a:1", "upstream.timeout=5s"}})
}

func TestSetFaults(t *testing.T) {
	for set, want := range map[string]string{
		"upstream.timeout":              "--set upstream.timeout: write path=value",
		"=x":                            "--set =x: write path=value",
		"upstream.timeout=5":            "--set upstream.timeout: upstream.timeout: 5 has no unit",
		"upstream.timout=5s":            "--set upstream.timout: upstream: unknown key timout, did you mean timeout?",
		"upstream.url.host=a":           "--set upstream.url.host: there is no host: what is above it is a single value",
		"rules.book-leson.mode=off":     "--set rules.book-leson.mode: the list has no entry book-leson, did you mean book-lesson?",
		"rules.1.mode=off":              "--set rules.1.mode: the list has no entry 1",
		"rules.book-lesson.mode=sahdow": `--set rules.book-lesson.mode: rules.book-lesson.mode: "sahdow" is not one of enforce, shadow, off, did you mean shadow?`,
		"rules.0.match.methods=[":       "--set rules.0.match.methods: the value is not YAML",
		"rules.0.match.methods=[post]":  "--set rules.0.match.methods: rules.book-lesson.match.methods.0: methods are upper case: write POST",
		"pools.lessons.capacity=010":    "--set pools.lessons.capacity: pools.lessons.capacity: 010 is a number that YAML versions read differently",
		"upstream.url=${NOPE}":          "--set upstream.url: the environment variable NOPE is not set",
	} {
		cfg, faults := Load("c.yaml", []byte(base), LoadOptions{Set: []string{set}})
		if errs := faults.Errors(); cfg != nil || len(errs) != 1 || !strings.HasPrefix(errs[0].String(), want) {
			t.Errorf("--set %s gives\n%swant\n%s", set, faults, want)
		}
	}
}

func TestSetFaultHidesTheValue(t *testing.T) {
	_, faults := Load("c.yaml", []byte(base), LoadOptions{Set: []string{"store.password.x=hunter2", "store.password=[hunter2"}})
	if len(faults.Errors()) == 0 || strings.Contains(faults.String(), "hunter2") {
		t.Errorf("got:\n%s", faults)
	}
}
