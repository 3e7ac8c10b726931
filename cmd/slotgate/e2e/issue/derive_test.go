package issue

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
)

func TestDoubleClicksWithoutCooperation(t *testing.T) {
	site, backend := startSite(t)
	a, b := twoGates(t, backend, "derive: 1m")
	person, other := newBrowser(t), newBrowser(t)
	person.open(a.URL, "1")
	other.open(a.URL, "1")

	hold := make(chan struct{})
	site.set(func(s *website) { s.hold = hold })
	answers := make(chan answer, 3)
	go func() { answers <- person.book(a.URL, "1", "ann") }()
	<-site.inside
	for _, gate := range []*stage.Gate{a, b} {
		go func() { answers <- person.book(gate.URL, "1", "ann") }()
	}
	select {
	case <-site.inside:
		t.Error("the second click reached the backend")
	case <-time.After(200 * time.Millisecond): // both wait at a gate
	}
	site.set(func(s *website) { s.hold = nil })
	close(hold)
	for range 3 {
		if got := <-answers; got.status != 201 || got.body != "booked 1 ann, number 1" {
			t.Errorf("a click is answered %d %s %q", got.status, got.decision, got.body)
		}
	}
	want(t, person.book(b.URL, "1", "ann"), 201, "replayed")
	refused := want(t, other.book(b.URL, "1", "ann"), 409, "duplicate") // another session, the same booking
	if strings.Contains(refused.body, "number") {
		t.Errorf("another session is shown %s", refused.body)
	}
	want(t, person.book(a.URL, "1", "bob"), 201, "admitted")
	if n := site.bookings("1", "ann"); n != 1 {
		t.Errorf("booked %d times", n)
	}
}

// TestReloadsKeepIDs: what a browser has is good under the next configuration as well,
// and a rule may begin and stop to issue at any time.
func TestReloadsKeepIDs(t *testing.T) {
	site, backend := startSite(t)
	before := config(backend, stage.MemoryStore, "ttl: 24h")
	gate := stage.StartGate(t, before)
	person := newBrowser(t)
	person.open(gate.URL, "1")
	if person.id(gate.URL, "1") != "" {
		t.Fatal("issued without issue")
	}
	whole, err := os.ReadFile(gate.File)
	if err != nil {
		t.Fatal(err)
	}
	reload := func(settings string) {
		t.Helper()
		text := strings.Replace(string(whole), "ttl: 24h", settings, 1)
		if err := os.WriteFile(gate.File, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if a := stage.Send("POST", gate.Admin+"/v1/reload", ""); a.Status != http.StatusOK {
			t.Fatalf("reload: %v", a)
		}
	}
	reload(issuing)
	person.open(gate.URL, "1")
	id := person.id(gate.URL, "1")
	want(t, person.book(gate.URL, "1", "ann"), 201, "admitted")
	reload(issuing + ", ttl: 12h, derive: 1m")
	want(t, person.book(gate.URL, "1", "ann"), 201, "replayed")
	person.open(gate.URL, "1")
	if now := person.id(gate.URL, "1"); now == "" || now == id {
		t.Errorf("the next page brings %q", now)
	}
	reload("ttl: 24h")
	want(t, person.book(gate.URL, "1", "ann"), 201, "admitted") // the cookie is none of the gate's any more
	if n := site.bookings("1", "ann"); n != 2 {
		t.Errorf("booked %d times", n)
	}
	if site.sawOwnCookies() == "" {
		t.Error("the gate still takes cookies off that it knows nothing of")
	}
}

// TestIDsOutliveAGate: another one takes over, with the same store.
func TestIDsOutliveAGate(t *testing.T) {
	site, backend := startSite(t)
	a, b := twoGates(t, backend, issuing)
	person := newBrowser(t)
	person.open(a.URL, "1")
	want(t, person.book(a.URL, "1", "ann"), 201, "admitted")
	a.Kill()
	want(t, person.book(b.URL, "1", "ann"), 201, "replayed")
	person.open(b.URL, "1")
	want(t, person.book(b.URL, "1", "ann"), 201, "admitted")
	if n := site.bookings("1", "ann"); n != 2 {
		t.Errorf("booked %d times", n)
	}
}
