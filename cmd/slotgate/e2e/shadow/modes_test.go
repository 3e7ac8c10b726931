package shadow

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
)

// TestModesAreSwitchedLive: by rule and for all, past reloads, until the file says else.
func TestModesAreSwitchedLive(t *testing.T) {
	s := newSite(t, stage.MemoryStore, "enforce", booking.Options{Style: booking.Conditional})
	put := func(path, mode string) {
		t.Helper()
		if a := stage.Send("PUT", s.Admin+path, `{"mode":"`+mode+`"}`); a.Status != http.StatusOK || !strings.Contains(string(a.Body), `"mode":"`) {
			t.Fatal(a)
		}
	}
	reload := func(was, is string) {
		t.Helper()
		text, err := os.ReadFile(s.File)
		if err != nil || !strings.Contains(string(text), was) {
			t.Fatalf("%q is not in the configuration: %v\n%s", was, err, text)
		}
		if err := os.WriteFile(s.File, []byte(strings.ReplaceAll(string(text), was, is)), 0o600); err != nil {
			t.Fatal(err)
		}
		if a := stage.Send("POST", s.Admin+"/v1/reload", ""); a.Status != http.StatusOK {
			t.Fatal(a)
		}
	}
	n := 0
	want := func(decision string) {
		t.Helper()
		n++
		a := stage.Book(s.URL, 1, "ann") // without the key that is required
		if a.Err != nil || a.Header.Get("Gate-Decision") != decision {
			t.Fatalf("request %d: %v, want %s", n, a, decision)
		}
		if decision != "" {
			return
		}
		for name := range a.Header {
			if strings.HasPrefix(name, "Gate-") {
				t.Fatalf("%s on a rule that is off", name)
			}
		}
	}
	want("key-missing")
	put("/v1/rules/book-lesson/mode", "shadow")
	want("shadow")
	reload("one_per_subject: true", "one_per_subject: false")
	want("shadow")
	reload("mode: enforce", "mode: off")
	want("")
	reload("mode: off", "mode: enforce")
	want("key-missing")

	put("/v1/mode", "off")
	want("")
	if a := stage.Send("POST", s.URL+"/api/lessons/1%2F2/bookings", `{`); a.Header.Get("Gate-Decision") != "" || a.Status == http.StatusConflict {
		t.Fatalf("refused while everything is off: %v", a)
	}
	reload("one_per_subject: false", "one_per_subject: true")
	want("")
	put("/v1/mode", "shadow")
	want("shadow")
	put("/v1/mode", "file")
	want("key-missing")
	if a := stage.Send("PUT", s.Admin+"/v1/mode", `{"mode":"dark"}`); a.Status != http.StatusBadRequest {
		t.Fatal(a)
	}
	put("/v1/rules/book-lesson/mode", "off")
	if listed := stage.Send("GET", s.Admin+"/v1/rules", ""); !strings.Contains(string(listed.Body), `"mode":"off","file_mode":"enforce"`) {
		t.Fatal(listed)
	}
}
