package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// filesIn are the names of all that is in a folder.
func filesIn(t *testing.T, folder string) string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// The page says what the JSON report of the same storm says.
func TestStormWritesHTML(t *testing.T) {
	folder := t.TempDir()
	file, data := filepath.Join(folder, "report.html"), filepath.Join(folder, "report.json")
	status, _, stderr := stormOutput("--url", stormTarget(t, 5)+"/{n%1}", "-H", "Authorization: Bearer open-sesame", "-d", "pin=4711",
		"--requests", "50", "--clients", "4", "--seed", "3", "--capacity", "4", "--html", file, "--json", data)
	page, err := os.ReadFile(file)
	if err != nil || status != 3 {
		t.Fatalf("status %d, %v, %s", status, err, stderr)
	}
	content, err := os.ReadFile(data)
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Sent, Capacity int
		Statuses       map[string]int
		Timeline       []struct{ Statuses map[string]int }
		Assertions     []struct {
			Assertion string
			Found     int
		}
	}
	if err := json.Unmarshal(content, &report); err != nil {
		t.Fatal(err)
	}
	sum := map[string]int{}
	for _, interval := range report.Timeline {
		for status, count := range interval.Statuses {
			sum[status] += count
		}
	}
	if fmt.Sprint(sum) != fmt.Sprint(report.Statuses) || report.Sent != 50 || report.Capacity != 4 {
		t.Errorf("the intervals sum up to %v, the report says %v", sum, report.Statuses)
	}
	want := []string{
		`<h1 class="bad">Broken: 1 of 1 assertion</h1>`,
		"<li>expect at most 4 successes in a slot: broken, 1 (in 1 slot)</li>",
		"<dt>sent</dt><dd>50</dd>", "sent by slotgate " + readBuild().version + ", ",
	}
	for status, count := range report.Statuses {
		want = append(want, fmt.Sprintf(`%s <span class="quiet">%d</span>`, status, count))
	}
	for _, text := range want {
		if !strings.Contains(string(page), text) {
			t.Errorf("the page does not hold %s", text)
		}
	}
	for _, secret := range []string{"sesame", "4711"} {
		if strings.Contains(string(page), secret) {
			t.Errorf("the page tells %q", secret)
		}
	}
	if left := filesIn(t, folder); left != "report.html report.json" {
		t.Errorf("the folder holds %s", left)
	}
}

// A storm whose page could not be kept is not sent, and one that was not sent leaves none.
func TestStormWithoutAPlaceForItsPage(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer server.Close()
	folder := t.TempDir()
	old := filepath.Join(folder, "old.html")
	if err := os.WriteFile(old, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(folder, "link.html")
	if err := os.Symlink("nowhere", dangling); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		old:                                     old + ": there is such a file already; remove it or give another name",
		folder:                                  folder + ": there is such a file already",
		dangling:                                dangling + ": there is such a file already",
		filepath.Join(folder, "no", "new.html"): filepath.Join(folder, "no", "new.html") + ": no such file or directory",
		filepath.Join(old, "new.html"):          "not a directory",
	} {
		status, stdout, stderr := stormOutput("--url", server.URL, "--requests", "4", "--html", file)
		if status != 1 || stdout != "" || !strings.HasPrefix(stderr, "slotgate storm: --html ") || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: status %d, output %q, errors %q, want %q", file, status, stdout, stderr, want)
		}
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	server.Close()
	if status, _, _ := stormOutput("--url", server.URL, "--html", filepath.Join(folder, "new.html")); status != 1 {
		t.Errorf("status %d", status)
	}
	if content, err := os.ReadFile(old); err != nil || string(content) != "old" {
		t.Errorf("the old file is now %q, %v", content, err)
	}
	if left := filesIn(t, folder); left != "link.html old.html" {
		t.Errorf("the folder holds %s", left)
	}
}

func TestAFileAppearsWhole(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "report")
	broken, err := createNew(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := broken.finish(func(w io.Writer) error { fmt.Fprint(w, "half"); return io.ErrClosedPipe }); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("finish says %v", err)
	}
	if left := filesIn(t, folder); left != "" {
		t.Fatalf("after a failure the folder holds %s", left)
	}
	whole, err := createNew(name)
	if err != nil {
		t.Fatal(err)
	}
	err = whole.finish(func(w io.Writer) error {
		fmt.Fprint(w, "whole")
		if _, err := os.Stat(name); err == nil {
			t.Error("the name is there before the file is whole")
		}
		return nil
	})
	whole.discard() // as a deferred call does
	content, read := os.ReadFile(name)
	if err != nil || read != nil || string(content) != "whole" {
		t.Errorf("%v, %v: %q", err, read, content)
	}
	if info, err := os.Stat(name); err != nil || info.Mode()&fs.ModePerm&0o600 != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
}
