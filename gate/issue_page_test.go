package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/issue"
	"github.com/slotgate/slotgate/rules"
)

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
