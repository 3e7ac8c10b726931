package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/slotgate/slotgate/gate/testbed"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"slotgate": main})
}

// TestScripts runs each file of testdata/script as a shell session with the
// program as users have it, and a running gate: $GATE and $ADMIN are its URLs. For
// gates of its own a script has $BACKEND, $REDIS, a $PREFIX there and a $DATABASE.
func TestScripts(t *testing.T) {
	backend := createdBackend(t)
	free := fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t))
	redis := testbed.Redis(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			s, err := startService(lessonsYAML(backend, ""), "admin.token=s3cret")
			if err != nil {
				return err
			}
			env.Defer(func() { _ = s.stop() })
			env.Setenv("GORACE", "atexit_sleep_ms=0") // else each race-built program waits a second at its end
			env.Setenv("FREE", free)
			env.Setenv("GATE", s.gate)
			env.Setenv("ADMIN", s.admin)
			env.Setenv("BACKEND", backend)
			env.Setenv("REDIS", redis.Addr())
			env.Setenv("PREFIX", filepath.Base(env.WorkDir)) // one store a script
			env.Setenv("DATABASE", filepath.Join(env.WorkDir, "lessons.db"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "ready": ready, "serve": scriptServe, "sql": scriptSQL},
	})
}

// exits runs a program and compares its exit status: exits 2 slotgate check.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS PROGRAM ARG...")
	}
	status := "0"
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		status = err.Error()
	}
	if want := args[0]; status != want && status != "exit status "+want {
		ts.Fatalf("ended with %s, want %s", status, want)
	}
}

// ready waits until a URL answers 200.
func ready(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: ready URL")
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		res, err := client.Get(args[0])
		if err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s is not ready: %v", args[0], err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestSuggestions(t *testing.T) {
	names := []string{"run", "check", "slots", "storm", "version"}
	for name, want := range map[string]string{
		"chekc": "check", "slot": "slots", "rum": "run", "stom": "storm", "versoin": "version",
		"xyz": "", "": "", "rn": "run", "demo": "",
	} {
		got := suggestion(name, names)
		if want != "" {
			want = `, did you mean "` + want + `"?`
		}
		if got != want {
			t.Errorf("suggestion(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestPrintableQuotesWhatATerminalWouldActOn(t *testing.T) {
	for text, want := range map[string]string{
		"7": "7", "a/b": "a/b", "名额": "名额", "": "-", "-": `"-"`, "a b": `"a b"`,
		"\x1b[2J": `"\x1b[2J"`, "a\tb": `"a\tb"`, `a"b`: `"a\"b"`, "\u202e7": `"\u202e7"`,
	} {
		if got := printable(text); got != want {
			t.Errorf("printable(%q) = %s, want %s", text, got, want)
		}
	}
}

func TestBuildInfoIsNeverEmpty(t *testing.T) {
	build := readBuild()
	if build.version == "" || build.commit == "" {
		t.Errorf("%+v", build)
	}
	version, commit = "v9.9.9", "abcdef"
	defer func() { version, commit = "", "" }()
	if got := readBuild(); got.version != "v9.9.9" || got.commit != "abcdef" {
		t.Errorf("what the linker set is not used: %+v", got)
	}
}
