package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// stormTarget answers the first seats requests with 201 and the rest with 409.
func stormTarget(t *testing.T, seats int) string {
	t.Helper()
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if seats == 0 {
			w.WriteHeader(http.StatusConflict)
			return
		}
		seats--
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, seats)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func stormOutput(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = stormCommand(args, &out, &errs)
	return status, out.String(), errs.String()
}

func TestStormExitStatus(t *testing.T) {
	for name, test := range map[string]struct {
		args   []string
		status int
		stdout string
	}{
		"held":           {[]string{"--expect", "5", "--expect-no-5xx"}, 0, "expect 5 successes: held, 5\nexpect no 5xx: held, 0\n"},
		"no assertion":   {nil, 0, "successes   5\n"},
		"too many":       {[]string{"--expect", "4"}, 3, "expect 4 successes: broken, 5\n"},
		"too few":        {[]string{"--expect", "6", "--expect-no-5xx"}, 3, "expect 6 successes: broken, 5\nexpect no 5xx: held, 0\n"},
		"other success":  {[]string{"--expect", "95", "--success", "409"}, 0, "expect 95 successes: held, 95\n"},
		"twins differ":   {[]string{"--retries-same-key", "100%", "--expect-equal-twins"}, 3, "expect equal twins: broken, "},
		"stopped early":  {[]string{"--rate", "1/10m", "--max-time", "500ms", "--expect", "0"}, 1, "stopped     early (max-time): "},
		"seed is stated": {[]string{"--seed", "77"}, 0, "seed 77\n"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"--url", stormTarget(t, 5), "--requests", "100", "--clients", "8"}, test.args...)
			status, stdout, stderr := stormOutput(args...)
			if status != test.status || !strings.Contains(stdout, test.stdout) {
				t.Errorf("status %d, want %d; output\n%s%s", status, test.status, stdout, stderr)
			}
		})
	}
}

func TestStormHelp(t *testing.T) {
	status, stdout, stderr := stormOutput("--help")
	if status != 0 || stderr != "" || !strings.Contains(stdout, "Example: ") {
		t.Errorf("status %d, output %q, errors %q", status, stdout, stderr)
	}
	for _, line := range strings.Split(stdout, "\n") {
		if len([]rune(line)) > 80 {
			t.Errorf("line of help is too long: %q", line)
		}
	}
	set, _ := stormFlagSet()
	set.VisitAll(func(f *flag.Flag) {
		if !strings.Contains(stdout, "\n  --"+f.Name) && !strings.Contains(stdout, "\n  -"+f.Name+" ") {
			t.Errorf("help does not tell of flag %s", f.Name)
		}
	})
}

func TestStormCannotRun(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	missing := filepath.Join(t.TempDir(), "missing", "file")
	for want, args := range map[string][]string{
		"--url is missing":                                           {},
		"flag provided but not defined":                              {"--url", "http://h/", "--nope"},
		"unexpected argument \"book\"":                               {"--url", "http://h/", "book"},
		"nothing could connect to " + gone.URL + ": connect-refused": {"--url", gone.URL},
		"{lesson} at byte 9: unknown placeholder":                    {"--url", "http://h/{lesson}"},
		"is no status":                                               {"--url", "http://h/", "--success", "ok"},
		"must be a share from 0 to 1":                                {"--url", "http://h/", "--retries-same-key", "1.5"},
		"must be a rate such as":                                     {"--url", "http://h/", "--rate", "fast"},
		"must be a whole number":                                     {"--url", "http://h/", "--expect", "-1"},
		"must be a whole number from 1":                              {"--url", "http://h/", "--capacity", "0"},
		"invalid value \"0s5\"":                                      {"--url", "http://h/", "--timeout", "0s5"},
		"requests must be 1 to":                                      {"--url", "http://h/", "--requests", "0"},
		"body: open ":                                                {"--url", "http://h/", "-d", "@" + missing},
		"open " + missing:                                            {"--url", gone.URL, "--json", missing},
	} {
		status, stdout, stderr := stormOutput(args...)
		if status != 1 || stdout != "" || !strings.HasPrefix(stderr, "slotgate storm: ") || !strings.Contains(stderr, want) {
			t.Errorf("%q: status %d, output %q, errors %q, want %q", args, status, stdout, stderr, want)
		}
		if strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: errors %q are not one line", args, stderr)
		}
	}
}

func TestStormSendsWhatFlagsSay(t *testing.T) {
	type request struct{ Method, Path, Student, Key, Body string }
	var mu sync.Mutex
	var got []request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, request{r.Method, r.URL.Path, r.Header.Get("X-Student"), r.Header.Get("X-Key"), string(body)})
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(file, []byte("n={n}&k={key}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	status, _, stderr := stormOutput("--url", server.URL+"/l/{n}", "-X", "PUT", "-H", "X-Student: s{subject}", "-H", "X-Key: {key}",
		"-d", "@"+file, "--requests", "1", "--clients", "1", "--seed", "9")
	if status != 0 || len(got) != 1 {
		t.Fatalf("status %d, %d requests, %s", status, len(got), stderr)
	}
	want := request{"PUT", "/l/0", "s1", got[0].Key, "n=0&k=" + got[0].Key + "\n"}
	if got[0] != want || len(got[0].Key) != 32 {
		t.Errorf("sent %+v, want %+v", got[0], want)
	}
}

func TestStormWritesJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	status, _, stderr := stormOutput("--url", stormTarget(t, 5), "--requests", "50", "--clients", "4", "--seed", "3", "--expect", "6", "--json", file)
	content, err := os.ReadFile(file)
	if err != nil || status != 3 {
		t.Fatalf("status %d, %v, %s", status, err, stderr)
	}
	var got struct {
		Seed       int
		Sent       int
		Statuses   map[string]int
		Successes  []struct{ N, Subject, Status int }
		Assertions []map[string]any
	}
	if err := json.Unmarshal(content, &got); err != nil {
		t.Fatal(err)
	}
	if got.Seed != 3 || got.Sent != 50 || len(got.Successes) != 5 || !reflect.DeepEqual(got.Statuses, map[string]int{"201": 5, "409": 45}) {
		t.Errorf("report %s", content)
	}
	if want := []map[string]any{{"assertion": "expect 6 successes", "state": "broken", "found": 5.0}}; !reflect.DeepEqual(got.Assertions, want) {
		t.Errorf("assertions %v, want %v", got.Assertions, want)
	}
}

func TestStormStopsOnInterruptAndReports(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	arrived := make(chan struct{}, 16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	go func() {
		<-arrived // so the command has begun and takes the signal
		syscall.Kill(os.Getpid(), syscall.SIGINT)
	}()
	status, stdout, stderr := stormOutput("--url", server.URL, "-X", "GET", "--requests", "50", "--clients", "4", "--expect", "50")
	if status != 1 || !strings.Contains(stdout, "early (interrupted)") || !strings.Contains(stdout, "expect 50 successes: undecided, 0\n") {
		t.Errorf("status %d, output\n%s%s", status, stdout, stderr)
	}
}

func TestStormNumbers(t *testing.T) {
	for text, want := range map[string]float64{"50": 50, "50/s": 50, "5/10s": 0.5, "0.5/s": 0.5, "60/m": 1, "3/100ms": 30} {
		if got, err := parseStormRate(text); err != nil || got < want*0.999999 || got > want*1.000001 {
			t.Errorf("rate %q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "x", "5/", "5/x", "5/0s", "5/-1s", "NaN", "Inf/x"} {
		if got, err := parseStormRate(text); err == nil {
			t.Errorf("rate %q is %v", text, got)
		}
	}
	for text, want := range map[string]float64{"0": 0, "0.2": 0.2, "20%": 0.2, "1": 1, "100%": 1} {
		if got, err := parseShare(text); err != nil || got != want {
			t.Errorf("share %q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "%", "-0.1", "1.1", "101%", "NaN", "x"} {
		if got, err := parseShare(text); err == nil {
			t.Errorf("share %q is %v", text, got)
		}
	}
}
