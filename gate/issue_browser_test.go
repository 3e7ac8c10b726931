package gate

import (
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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

func fieldOf(fields []rules.Field, name string) (string, bool) {
	for _, f := range fields {
		if strings.EqualFold(f.Name, name) {
			return f.Value, true
		}
	}
	return "", false
}
