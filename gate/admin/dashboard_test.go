package admin

import (
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strings"
	"testing"
)

func TestDashboardNeedsNoTokenAndLoadsNothingFromElsewhere(t *testing.T) {
	b := newBench(t, "s3cret")
	page := b.call("GET", "/", "", "Host: gate.internal:9901")
	b.want(page, http.StatusOK, "<title>Slotgate</title>")
	b.want(page, http.StatusOK, string(tokenMark))
	if open := newBench(t, "").call("GET", "/", ""); strings.Contains(open.Body.String(), "data-token") {
		t.Error("without a token the page asks for one")
	}
	files, err := fs.ReadDir(dashboardFiles, "dashboard")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, f := range files {
		if f.Name() == "index.html" {
			continue
		}
		w := b.call("GET", "/dashboard/"+f.Name(), "")
		b.want(w, http.StatusOK, "")
		for name, want := range map[string]string{
			"Content-Type":            contentTypes[path.Ext(f.Name())],
			"Content-Security-Policy": dashboardPolicy,
			"X-Content-Type-Options":  "nosniff",
			"Cache-Control":           "no-store",
		} {
			if got := w.Header().Get(name); got != want || got == "" {
				t.Errorf("%s: %s %q, want %q", f.Name(), name, got, want)
			}
		}
	}
	for _, missing := range []string{"/dashboard/", "/dashboard/index.html", "/dashboard/none.js", "/dashboard/..%2Fserver.go", "/dashboard/%2e%2e", "/dashboard"} {
		if w := b.call("GET", missing, "", "Authorization: Bearer s3cret"); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", missing, w.Code)
		}
	}
	b.want(b.call("POST", "/", ""), http.StatusMethodNotAllowed, "use GET")
}

// What the page names must be there, and nothing of it may be elsewhere: CSP would
// refuse it, and the machine may be off line.
func TestDashboardIsWhole(t *testing.T) {
	named := regexp.MustCompile(`(?:href|src|from) ?=? ?"(\./|dashboard/)?([a-z]+\.[a-z]+)"`)
	files, _ := fs.Glob(dashboardFiles, "dashboard/*")
	seen := 0
	for _, file := range files {
		text, err := fs.ReadFile(dashboardFiles, file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			seen++
			if _, err := fs.Stat(dashboardFiles, "dashboard/"+m[2]); err != nil {
				t.Errorf("%s names %s: %v", file, m[2], err)
			}
		}
		for _, forbidden := range []string{"://", "innerHTML", "eval(", " style=", " onclick="} {
			line := strings.ReplaceAll(string(text), "http://www.w3.org/2000/svg", "") // a name, not an address
			if strings.Contains(line, forbidden) {
				t.Errorf("%s has %q", file, forbidden)
			}
		}
	}
	if seen < 8 {
		t.Errorf("found %d names of files, which is too few to have looked right", seen)
	}
	used := regexp.MustCompile(`byId\("([a-z-]+)"\)`)
	index, _ := fs.ReadFile(dashboardFiles, "dashboard/index.html")
	for _, file := range files {
		text, _ := fs.ReadFile(dashboardFiles, file)
		for _, m := range used.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(string(index), `id="`+m[1]+`"`) {
				t.Errorf("%s looks for #%s, which the page does not have", file, m[1])
			}
		}
	}
}
