package issue

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
	"github.com/slotgate/slotgate/gate/issue"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
)

// twoGates share a Redis.
func twoGates(t *testing.T, backend, settings string) (a, b *stage.Gate) {
	t.Helper()
	redis := testbed.Redis(t)
	c := config(backend, stage.RedisStore(redis.Addr()), settings)
	return stage.StartGate(t, c), stage.StartGate(t, c)
}

func TestTabsOfOneBrowser(t *testing.T) {
	site, backend := startSite(t)
	a, b := twoGates(t, backend, issuing)
	person := newBrowser(t)
	person.open(a.URL, "1") // one tab
	person.open(b.URL, "2") // another, through the other gate
	person.open(a.URL, "1") // a third, of the first's lesson
	ids := [2]string{person.id(a.URL, "1"), person.id(a.URL, "2")}
	if ids[0] == "" || ids[1] == "" || ids[0] == ids[1] {
		t.Fatalf("the browser has %q", ids)
	}
	first := want(t, person.book(b.URL, "1", "ann"), 201, "admitted")
	if again := want(t, person.book(a.URL, "1", "ann"), 201, "replayed"); again.body != first.body {
		t.Errorf("the third tab is answered %q", again.body)
	}
	want(t, person.book(a.URL, "1", "bob"), 201, "admitted") // a second child, from that tab
	want(t, person.book(a.URL, "2", "ann"), 201, "admitted")
	want(t, person.book(b.URL, "2", "ann"), 201, "replayed") // Back and submit
	want(t, person.book(b.URL, "1", "bob"), 201, "replayed")

	person.open(b.URL, "1")
	want(t, person.book(b.URL, "1", "ann"), 201, "admitted") // meant
	want(t, person.book(a.URL, "2", "ann"), 201, "replayed") // the other lesson's tab is as before
	for what, n := range map[[2]string]int{{"1", "ann"}: 2, {"1", "bob"}: 1, {"2", "ann"}: 1} {
		if got := site.bookings(what[0], what[1]); got != n {
			t.Errorf("lesson and student %v are booked %d times, not %d", what, got, n)
		}
	}
	if line := site.sawOwnCookies(); line != "" {
		t.Errorf("the backend was sent %q", line)
	}
}

// TestImpatientBrowsers click as often as they can, through both gates, and reload the
// page in between.
func TestImpatientBrowsers(t *testing.T) {
	site, backend := startSite(t)
	a, b := twoGates(t, backend, issuing)
	gates := []string{a.URL, b.URL}
	const browsers, clicks = 12, 6
	var all sync.WaitGroup
	for i := range browsers {
		person, student := newBrowser(t), fmt.Sprintf("s%d", i)
		person.open(gates[i%2], "1")
		all.Go(func() {
			var tabs sync.WaitGroup
			for n := range clicks {
				tabs.Go(func() {
					if got := person.book(gates[n%2], "1", student); got.status != 201 || got.body != "booked 1 "+student+", number 1" {
						t.Errorf("%s is answered %d %s %q", student, got.status, got.decision, got.body)
					}
				})
			}
			tabs.Wait()
			want := person.id(a.URL, "1")
			person.open(gates[0], "1")
			if got := person.id(a.URL, "1"); got == want {
				t.Errorf("%s is answered, and the page brings no other id", student)
			}
		})
	}
	all.Wait()
	for i := range browsers {
		if n := site.bookings("1", fmt.Sprintf("s%d", i)); n != 1 {
			t.Errorf("s%d is booked %d times", i, n)
		}
	}
}

func TestAPageThatIsReloadedWhileItsBookingRuns(t *testing.T) {
	site, backend := startSite(t)
	a, b := twoGates(t, backend, issuing)
	person := newBrowser(t)
	person.open(a.URL, "1")
	id := person.id(a.URL, "1")
	hold := make(chan struct{})
	site.set(func(s *website) { s.hold = hold })
	answers := make(chan answer, 2)
	go func() { answers <- person.book(a.URL, "1", "ann") }()
	<-site.inside
	person.open(b.URL, "1")
	if person.id(a.URL, "1") != id {
		t.Error("the id changed before there was an answer")
	}
	go func() { answers <- person.book(b.URL, "1", "ann") }()
	select {
	case <-site.inside:
		t.Error("the second one reached the backend")
	case <-time.After(200 * time.Millisecond): // it waits at the gate
	}
	close(hold)
	for range 2 {
		if got := <-answers; got.status != 201 || got.body != "booked 1 ann, number 1" {
			t.Errorf("answered %d %s %q", got.status, got.decision, got.body)
		}
	}
}

func TestIDsThatAreNone(t *testing.T) {
	site, backend := startSite(t)
	redis := testbed.Redis(t)
	const secret = "of all gates of this store"
	c := config(backend, stage.RedisStore(redis.Addr())+`, secret: "`+secret+`"`, issuing+", required: true")
	gate := stage.StartGate(t, c)
	key := issue.Key(store.DeriveKey(secret, "one-time ids"))
	binding := issue.Binding{Cookie: "sg_rid", Group: "book-lesson", Pool: "lessons", Slot: "1"}
	other := binding
	other.Slot = "2"
	for name, value := range map[string]string{
		"forged":       strings.Repeat("A", 56),
		"of lesson 2":  key.Seal(other, issue.NewID(time.Now())),
		"expired":      key.Seal(binding, issue.NewID(time.Now().Add(-25*time.Hour))),
		"from a dream": key.Seal(binding, issue.NewID(time.Now().Add(time.Hour))),
	} {
		person := newBrowser(t)
		person.setID(gate.URL, "1", value)
		refused := want(t, person.book(gate.URL, "1", "ann"), 400, "key-missing")
		if !strings.Contains(refused.body, "load the page again") {
			t.Errorf("%s: it is told %s", name, refused.body)
		}
		person.open(gate.URL, "1")
		want(t, person.book(gate.URL, "1", name), 201, "admitted")
	}
	if n := site.bookings("1", "ann"); n != 0 {
		t.Errorf("%d bookings without an id", n)
	}
	person := newBrowser(t) // and by the same reckoning one that is good
	person.setID(gate.URL, "1", key.Seal(binding, issue.NewID(time.Now().Add(-time.Hour))))
	want(t, person.book(gate.URL, "1", "ann"), 201, "admitted")
}

func TestARedirectToThePage(t *testing.T) {
	site, backend := startSite(t)
	site.set(func(s *website) { s.redirect = true })
	a, b := twoGates(t, backend, issuing)
	person := newBrowser(t)
	person.open(a.URL, "1")
	for _, gate := range []*stage.Gate{a, b, a} { // Back, and again
		if got := person.book(gate.URL, "1", "ann"); got.status != 200 || !strings.Contains(got.body, "<form") {
			t.Errorf("led to %d %q", got.status, got.body)
		}
	}
	if n := site.bookings("1", "ann"); n != 1 {
		t.Errorf("booked %d times", n)
	}
}

// TestAPageThatTheBrowserHas: it asks whether the page has changed, and needs another id.
func TestAPageThatTheBrowserHas(t *testing.T) {
	site, backend := startSite(t)
	site.set(func(s *website) { s.cache = []string{"Cache-Control: private, no-cache"} })
	gate := stage.StartGate(t, config(backend, stage.MemoryStore, issuing))
	person := newBrowser(t)
	const asks = `If-None-Match: "page"`
	if got := person.open(gate.URL, "1", asks); got.status != 200 || person.id(gate.URL, "1") == "" {
		t.Fatalf("a browser without an id is answered %d", got.status)
	}
	if got := person.open(gate.URL, "1", asks); got.status != http.StatusNotModified {
		t.Fatalf("one that has an id is answered %d", got.status)
	}
	want(t, person.book(gate.URL, "1", "ann"), 201, "admitted")
	if got := person.open(gate.URL, "1", asks); got.status != 200 {
		t.Fatalf("one whose id is spent is answered %d", got.status)
	}
	want(t, person.book(gate.URL, "1", "ann"), 201, "admitted")
}

// TestAnAPIWhosePageIsJSON has a backend that gives every booking a new session: the id
// alone tells who asks again.
func TestAnAPIWhosePageIsJSON(t *testing.T) {
	backend := stage.StartBackend(t, booking.Options{Style: booking.Conditional, Lessons: 2, Seats: 5})
	gate := stage.StartGate(t, stage.Lessons(backend.URL, stage.MemoryStore, "", "capacity: 5",
		`    idempotency: { scope: [], issue: { on: "GET /api/lessons/{lesson}", cookie: sg_rid } }`))
	person := newBrowser(t)
	book := func() answer {
		return person.send("POST", gate.URL+"/api/lessons/1/bookings", `{"student_id":"ann"}`, "Content-Type: application/json")
	}
	if page := person.send("GET", gate.URL+"/api/lessons/1", ""); page.header.Get("Cache-Control") != "private" {
		t.Errorf("the page says %v", page.header)
	}
	first := want(t, book(), 201, "admitted")
	if again := want(t, book(), 201, "replayed"); again.body != first.body {
		t.Errorf("answered %s", again.body)
	}
	if len(first.header["Set-Cookie"]) != 2 {
		t.Errorf("beside the backend's session: %q", first.header["Set-Cookie"])
	}
	if n := backend.Stats().Requests.Book; n != 1 {
		t.Errorf("the backend saw %d", n)
	}
}
