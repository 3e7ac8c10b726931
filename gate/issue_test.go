package gate

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/issue"
	"github.com/slotgate/slotgate/rules"
)

const issuing = `idempotency: { ttl: 1h, issue: { on: "GET /lessons/{lesson}", cookie: sg_rid } }`

// newIssuing has a backend that sets no cookie by itself.
func newIssuing(t *testing.T, pool, rule string) *fixture {
	t.Helper()
	f := newFixture(t, pool, rule)
	f.backend.set(bookOne)
	return f
}

func bookOne(string, string) (*BackendAnswer, error) {
	return answers(201, `{"id":"`+rand.Text()+`"}`, "Content-Type: application/json"), nil
}

// browser keeps the cookies of one person, for all tabs.
type browser struct {
	f       *fixture
	mu      sync.Mutex
	cookies map[string]string
	// https and credentials are of its requests; fields are more of them.
	https  bool
	fields []string
}

func (f *fixture) browser() *browser { return &browser{f: f, cookies: map[string]string{}} }

func (b *browser) request(method, path, body string) *Request {
	r := &Request{
		Request:  rules.Request{Method: method, Path: path, Host: "shop.test", Client: netip.MustParseAddr("192.0.2.7")},
		ID:       "test",
		ReadBody: func() ([]byte, error) { return []byte(body), nil },
		Gone:     func() bool { return false },
		Arrived:  time.Now(),
		Secure:   b.https,
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(b.cookies)) {
		pairs = append(pairs, name+"="+b.cookies[name])
	}
	if pairs != nil {
		r.Header = append(r.Header, rules.Field{Name: "Cookie", Value: strings.Join(pairs, "; ")})
	}
	for _, line := range append([]string{"Content-Type: application/json"}, b.fields...) {
		name, value, _ := strings.Cut(line, ": ")
		r.Header = append(r.Header, rules.Field{Name: name, Value: value})
	}
	return r
}

// keep takes what an answer sets.
func (b *browser) keep(header []rules.Field) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range header {
		if !strings.EqualFold(f.Name, "Set-Cookie") {
			continue
		}
		c, err := http.ParseSetCookie(f.Value)
		if err != nil {
			b.f.t.Errorf("%q: %v", f.Value, err)
			continue
		}
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		} else {
			b.cookies[c.Name] = c.Value
		}
	}
}

// open fetches a lesson's page, which the gate passes on, and returns the answer's fields.
func (b *browser) open(lesson string, answer ...string) []rules.Field {
	b.f.t.Helper()
	r := b.request("GET", "/lessons/"+lesson, "")
	if m, _, reply := b.f.Route(r); m.Rule != nil || reply != nil {
		b.f.t.Fatalf("the page falls under rule %v", m.Rule)
	}
	header := r.WithIDs(200, answers(200, "", answer...).Header)
	b.keep(header)
	return header
}

func (b *browser) book(lesson, student string) *Reply {
	return b.send(b.request("POST", "/lessons/"+lesson+"/bookings", fmt.Sprintf(`{"student":%q}`, student)))
}

func (b *browser) send(r *Request) *Reply {
	m, _, reply := b.f.Route(r)
	if reply == nil {
		reply = b.f.Serve(r, m)
	}
	b.keep(reply.Header)
	return reply
}

// id is the cookie of a lesson, "" without one.
func (b *browser) id(lesson string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cookies[bindingOf(lesson).Name()]
}

func bindingOf(lesson string) issue.Binding {
	return issue.Binding{Cookie: "sg_rid", Group: "book", Pool: "lessons", Slot: lesson}
}

func (f *fixture) idKey() issue.Key {
	f.t.Helper()
	key, ok := f.idKeys.key()
	if !ok {
		f.t.Fatal("no key for ids")
	}
	return key
}

// textOf is the id in a cookie.
func (f *fixture) textOf(lesson, value string) string {
	f.t.Helper()
	id, ok := f.idKey().Open(bindingOf(lesson), value)
	if !ok {
		f.t.Fatalf("the cookie of lesson %s is %q", lesson, value)
	}
	return id.Text
}

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

func TestPagesThatBringNoID(t *testing.T) {
	f := newIssuing(t, "capacity: 9", issuing)
	for name, page := range map[string]struct {
		method, path string
		status       int
		answer       []string
	}{
		"public":        {"GET", "/lessons/1", 200, []string{"Cache-Control: public, max-age=60"}},
		"fresh":         {"GET", "/lessons/1", 200, []string{"Cache-Control: max-age=60"}},
		"fresh by Vary": {"GET", "/lessons/1", 200, []string{"Cache-Control: max-age=60", "Vary: Cookie"}},
		"a CDN's":       {"GET", "/lessons/1", 200, []string{"Cache-Control: private", "CDN-Cache-Control: max-age=60"}},
		"HEAD":          {"HEAD", "/lessons/1", 200, []string{"Cache-Control: private"}},
		"not found":     {"GET", "/lessons/1", 404, []string{"Cache-Control: private"}},
		"not modified":  {"GET", "/lessons/1", 304, []string{"Cache-Control: private"}},
		"a part":        {"GET", "/lessons/1", 206, []string{"Cache-Control: private"}},
		"moved":         {"GET", "/lessons/1", 302, []string{"Cache-Control: private"}},
		"another page":  {"GET", "/lessons", 200, []string{"Cache-Control: private"}},
	} {
		r := f.browser().request(page.method, page.path, "")
		f.Route(r)
		before := answers(page.status, "", page.answer...).Header
		if got := r.WithIDs(page.status, before); !slices.Equal(got, before) {
			t.Errorf("%s: %v", name, got)
		}
	}
	for name, answer := range map[string][]string{
		"silent":   {"Content-Type: text/html", "Set-Cookie: sid=x; Path=/"},
		"no-store": {"Cache-Control: no-store", "Set-Cookie: sid=x", "Set-Cookie: b=y"},
	} {
		r := f.browser().request("GET", "/lessons/1", "")
		f.Route(r)
		before := answers(200, "", answer...).Header
		got := r.WithIDs(200, before)
		if !slices.Equal(got[:len(before)], before) || issue.SharingOf(nil, got) != issue.Private {
			t.Errorf("%s: %v", name, got)
		}
		if cookie := got[len(got)-1]; cookie.Name != "Set-Cookie" || !strings.HasPrefix(cookie.Value, bindingOf("1").Name()) || !strings.Contains(cookie.Value, "; Max-Age=3600; HttpOnly; SameSite=Lax") {
			t.Errorf("%s: %v", name, cookie)
		}
	}
}

// TestAPageIsAskedForWhole where the browser has it already and wants to know whether it
// has changed: a page that has not would bring no id.
func TestAPageIsAskedForWhole(t *testing.T) {
	f := newIssuing(t, "capacity: 9", issuing)
	b := f.browser()
	b.fields = []string{`If-None-Match: "x"`, "If-Modified-Since: Thu, 19 Nov 1981 08:52:00 GMT"}
	conditional := func(lesson, answer string) bool {
		r := b.request("GET", "/lessons/"+lesson, "")
		f.Route(r)
		b.keep(r.WithIDs(200, answers(200, "", answer).Header))
		_, found := fieldOf(r.Header, "If-None-Match")
		_, since := fieldOf(r.Header, "If-Modified-Since")
		return found && since
	}
	if conditional("1", "Cache-Control: private") {
		t.Error("an id is due, and the page need not come")
	}
	if !conditional("1", "Cache-Control: private") {
		t.Error("no id is due, and the page has to come")
	}
	conditional("2", "Cache-Control: public")
	if !conditional("2", "Cache-Control: public") {
		t.Error("the page never brings an id, and has to come each time")
	}
	conditional("3", "Cache-Control: private") // it does now
	if conditional("4", "Cache-Control: private") {
		t.Error("the page brings ids again, and need not come")
	}
}

func fieldOf(fields []rules.Field, name string) (string, bool) {
	for _, f := range fields {
		if strings.EqualFold(f.Name, name) {
			return f.Value, true
		}
	}
	return "", false
}

func TestCookiesAreSecureWhereTheClientIs(t *testing.T) {
	f := newIssuing(t, "capacity: 9", issuing)
	for _, https := range []bool{false, true} {
		b := f.browser()
		b.https = https
		page := b.open("1")
		reply := f.want(b.book("1", "ann"), decision.DecisionAdmitted, 201)
		for _, header := range [][]rules.Field{page, reply.Header} {
			if last := header[len(header)-1]; strings.HasSuffix(last.Value, "; Secure") != https {
				t.Errorf("https %v: %v", https, last)
			}
		}
	}
}

func TestABrowserOpensManyPages(t *testing.T) {
	f := newIssuing(t, "capacity: 9", issuing)
	b := f.browser()
	b.cookies["sid"] = "s1"
	for i := range 3 * issue.MaxCookies {
		b.open(fmt.Sprint(i))
	}
	if n := len(b.cookies); n != issue.MaxCookies+1 {
		t.Errorf("the browser has %d cookies", n)
	}
	f.want(b.book(fmt.Sprint(3*issue.MaxCookies-1), "ann"), decision.DecisionAdmitted, 201)
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

// TestAGatedPageBringsIDs: its own rule may limit it.
func TestAGatedPageBringsIDs(t *testing.T) {
	f := newIssuing(t, "capacity: 9", issuing+`
  - name: page
    match: { methods: [GET], path: "/lessons/{lesson}" }
    action: guard
    limits: { rule: { rate: 1/1h } }`)
	b := f.browser()
	f.backend.set(func(string, string) (*BackendAnswer, error) { return answers(200, "page"), nil })
	f.want(b.send(b.request("GET", "/lessons/1", "")), decision.DecisionAdmitted, 200)
	issued := b.id("1")
	f.textOf("1", issued)
	if refused := f.want(b.send(b.request("GET", "/lessons/2", "")), decision.DecisionRateLimited, 429); field(refused, "Set-Cookie") != "" {
		t.Error("a refusal brings an id")
	}
}

func TestOnlyRulesThatEnforceIssueIDs(t *testing.T) {
	f := newIssuing(t, "capacity: 9", issuing)
	b := f.browser()
	for _, mode := range []string{"off", "shadow"} {
		if err := f.SetMode("book", mode); err != nil {
			t.Fatal(err)
		}
		r := b.request("GET", "/lessons/1", "")
		f.Route(r)
		r.Shadow.End()
		if got := r.WithIDs(200, nil); got != nil {
			t.Errorf("%s: %v", mode, got)
		}
	}
	if err := f.SetMode("book", "enforce"); err != nil {
		t.Fatal(err)
	}
	b.open("1")
	f.textOf("1", b.id("1"))
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

func TestPagesDoNotWaitForAStoreThatIsAway(t *testing.T) {
	f := newIssuing(t, "capacity: 9", issuing)
	asked := 0
	f.idKeys.store = secretless{f.store, &asked}
	began := time.Now()
	for range 1000 {
		if header := f.browser().open("1"); len(header) > 0 {
			t.Fatalf("issued without a key: %v", header)
		}
	}
	if most := 1 + int(time.Since(began)/idKeyPause); asked > most {
		t.Errorf("asked %d times, not %d", asked, most)
	}
	b := f.browser()
	b.cookies[bindingOf("1").Name()] = "whatever"
	f.want(b.book("1", "ann"), decision.DecisionAdmitted, 201)
}

// secretless does not tell its secret.
type secretless struct {
	*flaky
	asked *int
}

func (s secretless) Secret(context.Context, string) ([32]byte, error) {
	*s.asked++
	return [32]byte{}, errors.New("away")
}
