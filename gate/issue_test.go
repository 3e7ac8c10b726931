package gate

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/issue"
)

func TestABookingFromAPageIsOneBooking(t *testing.T) {
	f := newIssuing(t, "capacity: 9", issuing)
	b := f.browser()
	b.open("1")
	issued := b.id("1")
	first := f.want(b.book("1", "ann"), decision.DecisionAdmitted, 201)
	for _, again := range []string{"Back and submit", "reload of the answer"} {
		if r := f.want(b.book("1", "ann"), decision.DecisionReplayed, 201); !bytes.Equal(r.Body, first.Body) {
			t.Errorf("%s is answered %s", again, r.Body)
		}
	}
	if f.backend.count() != 1 || f.slot("1").Confirmed != 1 {
		t.Fatalf("the backend saw %d", f.backend.count())
	}
	b.open("1")
	if now := f.textOf("1", b.id("1")); now == f.textOf("1", issued) {
		t.Fatal("the page came again after the booking, with the same id")
	}
	f.want(b.book("1", "ann"), decision.DecisionAdmitted, 201) // it is meant
}

func TestAnAnswerThatWasNotSeenIsNoEnd(t *testing.T) {
	f := newIssuing(t, "capacity: 9", issuing)
	b := f.browser()
	b.open("1")
	lost := b.request("POST", "/lessons/1/bookings", `{"student":"ann"}`)
	m, _, _ := f.Route(lost)
	f.want(f.Serve(lost, m), decision.DecisionAdmitted, 201) // and nobody reads it
	issued := b.id("1")
	if header := b.open("1"); b.id("1") != issued || len(header) != 0 {
		t.Fatalf("reloading the page changed the id: %v", header)
	}
	f.want(b.book("1", "ann"), decision.DecisionReplayed, 201)
	if f.backend.count() != 1 {
		t.Fatalf("the backend saw %d", f.backend.count())
	}
}

func TestTabsOfTwoSlotsKnowNothingOfEachOther(t *testing.T) {
	f := newIssuing(t, "capacity: 9", issuing)
	b := f.browser()
	b.open("1")
	one := b.id("1")
	b.open("2")
	if b.id("1") != one || b.id("2") == "" {
		t.Fatal("the second page changed the first one's id")
	}
	f.want(b.book("1", "ann"), decision.DecisionAdmitted, 201)
	f.want(b.book("2", "ann"), decision.DecisionAdmitted, 201)
	f.want(b.book("1", "ann"), decision.DecisionReplayed, 201)
	f.want(b.book("2", "ann"), decision.DecisionReplayed, 201)
	b.open("1")
	f.want(b.book("2", "ann"), decision.DecisionReplayed, 201)
}

func TestTwoTabsOfOneSlot(t *testing.T) {
	f := newIssuing(t, "capacity: 9", issuing)
	b := f.browser()
	b.open("1")
	issued := b.id("1")
	b.open("1")
	if b.id("1") != issued {
		t.Fatal("the second tab has another id: the first one's booking would not be known again")
	}
	f.want(b.book("1", "ann"), decision.DecisionAdmitted, 201)
	f.want(b.book("1", "ann"), decision.DecisionReplayed, 201) // from the other
	f.want(b.book("1", "bob"), decision.DecisionAdmitted, 201) // another child
	f.want(b.book("1", "bob"), decision.DecisionReplayed, 201)
	f.want(b.book("1", "ann"), decision.DecisionReplayed, 201)
}

func TestDoubleClicksFromAPageWaitForOneAnswer(t *testing.T) {
	f := newIssuing(t, "capacity: 9", issuing)
	b := f.browser()
	b.open("1")
	inside, release := make(chan struct{}), make(chan struct{})
	f.backend.set(func(string, string) (*BackendAnswer, error) {
		close(inside) // a second request would panic
		<-release
		return answers(201, "booked"), nil
	})
	replies := make(chan *Reply, 2)
	go func() { replies <- b.book("1", "ann") }()
	<-inside
	issued := b.id("1")
	b.open("1") // impatient
	if b.id("1") != issued {
		t.Error("a page that is reloaded while its booking runs brings another id")
	}
	go func() { replies <- b.book("1", "ann") }()
	for f.store.watching() == 0 {
		time.Sleep(time.Millisecond)
	}
	close(release)
	for range 2 {
		if r := <-replies; r.Status != 201 || string(r.Body) != "booked" {
			t.Errorf("%s %d %s", r.Decision, r.Status, r.Body)
		}
	}
}

func TestTheScopeIsThatOfTheOtherCookies(t *testing.T) {
	f := newIssuing(t, "capacity: 9", issuing)
	b := f.browser()
	b.cookies["sid"] = "s1"
	b.open("1")
	b.open("2")
	f.want(b.book("1", "ann"), decision.DecisionAdmitted, 201)
	b.open("3") // own cookies come and go
	f.want(b.book("1", "ann"), decision.DecisionReplayed, 201)
	b.cookies["sid"] = "s2" // another person at the same computer
	r := f.want(b.book("1", "ann"), decision.DecisionDuplicate, 409)
	if bytes.Contains(r.Body, []byte(`"id"`)) || !bytes.Contains(r.Body, []byte("from this page")) {
		t.Errorf("it is told %s", r.Body)
	}
	b.open("1")
	f.want(b.book("1", "ann"), decision.DecisionAdmitted, 201) // that person's own
}

func TestTheBackendNeverSeesTheCookies(t *testing.T) {
	f := newIssuing(t, "capacity: 9", issuing)
	b := f.browser()
	b.cookies["sid"] = "s1"
	b.open("1")
	r, page := b.request("POST", "/lessons/1/bookings", `{"student":"ann"}`), b.request("GET", "/other", "")
	sent, _ := fieldOf(r.Header, "Cookie")
	f.want(b.send(r), decision.DecisionAdmitted, 201)
	f.Route(page)
	for _, r := range []*Request{r, page} {
		if got, _ := fieldOf(r.Header, "Cookie"); got != "sid=s1" {
			t.Errorf("of %q the backend sees %q", sent, got)
		}
	}
}

func TestCookiesThatAreNoKeys(t *testing.T) {
	f := newIssuing(t, "capacity: 99", issuing)
	key, now := f.idKey(), time.Now()
	old := issue.NewID(now.Add(-time.Hour))
	other, _ := newIssuing(t, "capacity: 9", issuing).idKeys.key()
	for name, value := range map[string]string{
		"forged":          strings.Repeat("A", 56),
		"empty":           "",
		"of another slot": key.Seal(bindingOf("2"), issue.NewID(now)),
		"of another key":  other.Seal(bindingOf("1"), issue.NewID(now)),
		"too old":         key.Seal(bindingOf("1"), old),
	} {
		b := f.browser()
		for range 2 {
			b.cookies[bindingOf("1").Name()] = value
			if r := b.book("1", "ann"); r.Decision != decision.DecisionAdmitted {
				t.Errorf("%s: %s %s", name, r.Decision, r.Body)
			}
			if b.id("1") != value {
				t.Errorf("%s: the booking set %q", name, b.id("1"))
			}
		}
		b.open("1")
		f.textOf("1", b.id("1"))
	}

	required := newIssuing(t, "capacity: 9", strings.Replace(issuing, "ttl", "required: true, ttl", 1))
	b := required.browser()
	if r := required.want(b.book("1", "ann"), decision.DecisionKeyMissing, 400); !bytes.Contains(r.Body, []byte("load the page again")) {
		t.Errorf("it is told %s", r.Body)
	}
	b.cookies[bindingOf("1").Name()] = key.Seal(bindingOf("1"), issue.NewID(now))
	required.want(b.book("1", "ann"), decision.DecisionKeyMissing, 400)
	b.open("1")
	required.want(b.book("1", "ann"), decision.DecisionAdmitted, 201)
}

// TestOfSeveralCookiesAGoodOneCounts: another host of the site may have set one of the
// same name.
func TestOfSeveralCookiesAGoodOneCounts(t *testing.T) {
	f := newIssuing(t, "capacity: 9", issuing)
	b := f.browser()
	b.open("1")
	twice := func() *Reply {
		r := b.request("POST", "/lessons/1/bookings", `{"student":"ann"}`)
		r.Header[0].Value = bindingOf("1").Name() + "=forged; " + r.Header[0].Value
		return b.send(r)
	}
	f.want(twice(), decision.DecisionAdmitted, 201)
	f.want(twice(), decision.DecisionReplayed, 201)
}

func TestAnIDThatHasGrownOldIsReplaced(t *testing.T) {
	f := newIssuing(t, "capacity: 9", issuing)
	for age, replaced := range map[time.Duration]bool{29 * time.Minute: false, 31 * time.Minute: true} {
		b := f.browser()
		id := issue.NewID(time.Now().Add(-age))
		value := f.idKey().Seal(bindingOf("1"), id)
		b.cookies[bindingOf("1").Name()] = value
		b.open("1")
		if got := b.id("1") != value; got != replaced {
			t.Errorf("%v old: replaced %v", age, got)
		}
	}
}

func TestWhatIsNotKnownKeepsTheID(t *testing.T) {
	f := newIssuing(t, "capacity: 9", issuing)
	b := f.browser()
	b.open("1")
	f.backend.set(func(string, string) (*BackendAnswer, error) {
		return nil, &BackendError{Failure: TimedOut, Err: errors.New("late")}
	})
	f.want(b.book("1", "ann"), decision.DecisionUpstreamTimeout, 504)
	told := b.id("1")
	f.want(b.book("1", "ann"), decision.DecisionOutcomeUnknown, 409)
	b.open("1")
	if b.id("1") != told {
		t.Fatal("the id changed while the backend may still book")
	}
	id, _ := f.idKey().Open(bindingOf("1"), told)
	if until := time.Until(id.Spent); until < 25*time.Second || until > 31*time.Second {
		t.Fatalf("the id is spent in %v, hold_ttl is 30s", until)
	}
	id.Spent = time.Now().Add(-time.Second) // as if that had passed
	b.cookies[bindingOf("1").Name()] = f.idKey().Seal(bindingOf("1"), id)
	f.want(b.book("1", "ann"), decision.DecisionOutcomeUnknown, 409) // the page was not fetched
	b.open("1")
	f.backend.set(bookOne)
	f.want(b.book("1", "ann"), decision.DecisionAdmitted, 201)
}

func TestWhatWasNotBookedKeepsTheID(t *testing.T) {
	f := newIssuing(t, "capacity: 1", issuing)
	b := f.browser()
	b.open("1")
	issued := b.id("1")
	f.backend.set(func(string, string) (*BackendAnswer, error) { return answers(422, "no"), nil })
	f.want(b.book("1", "ann"), decision.DecisionAdmitted, 422)
	if b.id("1") != issued {
		t.Error("a refusal spent the id")
	}
	f.backend.set(bookOne)
	f.want(f.browser().book("1", "bob"), decision.DecisionAdmitted, 201)
	f.want(b.book("1", "ann"), decision.DecisionSoldOut, 409)
	if b.id("1") != issued {
		t.Error("sold out spent the id")
	}
}

// TestSomethingElseFromOnePage: the page's token for forms may differ with each fetch,
// and a reload while a booking runs must not make two.
func TestSomethingElseFromOnePage(t *testing.T) {
	f := newIssuing(t, "capacity: 9", issuing)
	b := f.browser()
	b.open("1")
	send := func(token string) *Reply {
		return b.send(b.request("POST", "/lessons/1/bookings", `{"student":"ann","token":"`+token+`"}`))
	}
	issued := b.id("1")
	f.want(send("a"), decision.DecisionAdmitted, 201)
	b.cookies[bindingOf("1").Name()] = issued // that answer was not seen
	r := f.want(send("b"), decision.DecisionKeyMismatch, 422)
	if !bytes.Contains(r.Body, []byte("load it again")) {
		t.Errorf("it is told %s", r.Body)
	}
	if id, _ := f.idKey().Open(bindingOf("1"), b.id("1")); id.Spent.IsZero() || time.Until(id.Spent) < 25*time.Second {
		t.Errorf("the id is spent %v", id.Spent)
	}
}

func TestARedirectMayLeadToThePage(t *testing.T) {
	f := newIssuing(t, "capacity: 9", issuing+"\n    outcomes: [{ when: { status: 303 }, is: booked }]")
	f.backend.set(func(string, string) (*BackendAnswer, error) { return answers(303, "", "Location: /lessons/1"), nil })
	b := f.browser()
	b.open("1")
	issued := f.textOf("1", b.id("1"))
	f.want(b.book("1", "ann"), decision.DecisionAdmitted, 303)
	b.open("1") // the browser follows
	if f.textOf("1", b.id("1")) != issued {
		t.Fatal("Back and submit would book twice")
	}
	f.want(b.book("1", "ann"), decision.DecisionReplayed, 303)
	id, _ := f.idKey().Open(bindingOf("1"), b.id("1"))
	if until := time.Until(id.Spent); until <= 0 || until > issue.RedirectGrace {
		t.Errorf("the id is spent in %v", until)
	}
}

// TestABookingByGETIsSpentToo: caches may store its answer, unless it says otherwise.
func TestABookingByGETIsSpentToo(t *testing.T) {
	f := newFixtureYAML(t, strings.NewReplacer("POOL", "capacity: 9", "RULE", issuing, "[POST]", "[GET]", "json:/student", "query:student").Replace(lessons))
	f.backend.set(func(string, string) (*BackendAnswer, error) { return answers(200, "booked"), nil })
	b := f.browser()
	b.open("1")
	r := b.request("GET", "/lessons/1/bookings", "")
	r.Query = "student=ann"
	reply := f.want(b.send(r), decision.DecisionAdmitted, 200)
	if id, _ := f.idKey().Open(bindingOf("1"), b.id("1")); id.Spent.IsZero() || issue.SharingOf(nil, reply.Header) != issue.Private {
		t.Errorf("spent %v, answered with %v", id.Spent, reply.Header)
	}
}

func TestWithoutTheStoreIDsAreStillKnown(t *testing.T) {
	f := newIssuing(t, "capacity: 9", issuing)
	b := f.browser()
	b.open("1")
	down := func(string) error { return errors.New("down") }
	f.store.set(down, nil)
	f.want(b.book("1", "ann"), decision.DecisionPassthrough, 201)
	f.want(b.book("1", "ann"), decision.DecisionReplayed, 201)
	if f.backend.count() != 1 {
		t.Errorf("the backend saw %d", f.backend.count())
	}
	f.store.set(nil, nil)
}
