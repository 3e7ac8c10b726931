package gate

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/memstore"
	"github.com/slotgate/slotgate/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lessons is a configuration that tests vary: POOL and RULE are replaced by
// further settings of the pool and the rule.
const lessons = `
upstream: { url: "http://127.0.0.1:9", timeout: 2s }
pools:
  lessons: { hold_ttl: 30s, POOL }
rules:
  - name: book
    match: { methods: [POST], path: "/lessons/{lesson}/bookings" }
    action: book
    pool: lessons
    slot: path:lesson
    subject: json:/student
    RULE
`

// fixture is a gate over a memory store and a backend made of a function.
type fixture struct {
	*Gate
	t       testing.TB
	store   *flaky
	backend *backend
	meter   *meter

	students atomic.Int64 // that have asked
}

func newFixture(t testing.TB, pool, rule string) *fixture {
	t.Helper()
	yaml := strings.NewReplacer("POOL", pool, "RULE", rule).Replace(lessons)
	return newFixtureYAML(t, yaml)
}

func newFixtureYAML(t testing.TB, yaml string) *fixture {
	t.Helper()
	return newFixtureTruth(t, yaml, nil)
}

func newFixtureTruth(t testing.TB, yaml string, truth Truth) *fixture {
	t.Helper()
	memory := &flaky{Store: memstore.New(memstore.Options{MaxMemory: 1 << 26})}
	t.Cleanup(func() { memory.Store.Close() })
	f := newFixtureOn(t, yaml, truth, memory)
	f.store = memory
	return f
}

// newFixtureOn has no f.store.
func newFixtureOn(t testing.TB, yaml string, truth Truth, on store.Store) *fixture {
	t.Helper()
	cfg, faults := rules.Load("test.yaml", []byte(yaml), rules.LoadOptions{})
	if len(faults.Errors()) > 0 {
		t.Fatalf("%v\n%s", faults, yaml)
	}
	set, err := rules.NewSet(cfg)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, backend: &backend{}, meter: &meter{}}
	f.Gate, err = New(Options{Config: cfg, Set: set, Store: on, Backend: f.backend, Truth: truth, Meter: f.meter, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		f.Close(ctx)
	})
	return f
}

// flaky is a store whose calls a test may fail or hold up.
type flaky struct {
	*memstore.Store
	mu     sync.Mutex
	before func(op string) error // an error is returned without making the call
	after  func(op string) error // an error replaces the call's own result
	keys   int                   // watches of a key opened so far
	asked  int                   // decides that have ended
}

func (s *flaky) WatchKey(d *store.Decide) store.Watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys++
	return s.Store.WatchKey(d)
}

func (s *flaky) watching() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys
}

func (s *flaky) decided() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func (s *flaky) set(before, after func(op string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.after = before, after
}

func (s *flaky) hooks() (before, after func(string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, after = s.before, s.after
	if before == nil {
		before = func(string) error { return nil }
	}
	if after == nil {
		after = func(string) error { return nil }
	}
	return before, after
}

func (s *flaky) Decide(ctx context.Context, d *store.Decide) (store.Decided, error) {
	before, after := s.hooks()
	if err := before("decide"); err != nil {
		return store.Decided{}, err
	}
	decided, err := s.Store.Decide(ctx, d)
	s.mu.Lock()
	s.asked++
	s.mu.Unlock()
	if hooked := after("decide"); hooked != nil {
		return store.Decided{}, hooked
	}
	return decided, err
}

func (s *flaky) Settle(ctx context.Context, x *store.Settle) (store.Settled, error) {
	before, after := s.hooks()
	if err := before("settle"); err != nil {
		return store.Settled{}, err
	}
	settled, err := s.Store.Settle(ctx, x)
	if hooked := after("settle"); hooked != nil {
		return store.Settled{}, hooked
	}
	return settled, err
}

func (s *flaky) Touch(ctx context.Context, t *store.Touch) error {
	before, _ := s.hooks()
	if err := before("touch"); err != nil {
		return err
	}
	return s.Store.Touch(ctx, t)
}

func (s *flaky) Ping(ctx context.Context) error {
	before, _ := s.hooks()
	if err := before("ping"); err != nil {
		return err
	}
	return s.Store.Ping(ctx)
}

// backend answers with what its function returns and counts.
type backend struct {
	mu    sync.Mutex
	seen  []string // paths
	reply func(path, body string) (*BackendAnswer, error)
}

func (b *backend) set(reply func(path, body string) (*BackendAnswer, error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reply = reply
}

func (b *backend) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.seen)
}

func (b *backend) Forward(f *Forward) (*BackendAnswer, error) {
	b.mu.Lock()
	b.seen = append(b.seen, strings.Clone(f.Request.Path))
	n, reply := len(b.seen), b.reply
	b.mu.Unlock()
	if reply == nil {
		return answers(201, fmt.Sprintf(`{"id":%d}`, n), "Content-Type: application/json", "Set-Cookie: sid=secret"), nil
	}
	return reply(f.Request.Path, string(f.Request.Body))
}

func answers(status int, body string, fields ...string) *BackendAnswer {
	a := &BackendAnswer{Response: rules.Response{Status: status, Body: []byte(body)}}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		a.Header = append(a.Header, rules.Field{Name: name, Value: value})
	}
	return a
}

type meter struct {
	mu       sync.Mutex
	oversold int64
	repeated int
	failures map[string]int
}

func (m *meter) Request(string, decision.Decision, time.Duration, time.Duration) {}
func (m *meter) Outcome(string, rules.Outcome, time.Duration)                    {}

func (m *meter) Oversold(_ string, units int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.oversold += units
}

func (m *meter) Repeated(string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.repeated++
}

func (m *meter) StoreError(kind string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failures == nil {
		m.failures = map[string]int{}
	}
	m.failures[kind]++
}

// call is one request to a fixture; the zero fields have defaults.
type call struct {
	lesson, student string
	fields          []string
	gone            func() bool
}

func (f *fixture) book(c call) *Reply {
	path, body := c.booking()
	return f.call("POST", path, body, c)
}

func (c *call) booking() (path, body string) {
	return "/lessons/" + cmp.Or(c.lesson, "1") + "/bookings", fmt.Sprintf(`{"student":%q}`, cmp.Or(c.student, "ann"))
}

// call is one request; of c, its fields and whether its client has gone are used. It
// returns nil when no rule is for it.
func (f *fixture) call(method, path, body string, c call) *Reply {
	req := newRequest(method, path, body, c)
	m, _, reply := f.Route(req)
	if reply == nil && m.Rule == nil {
		return nil
	}
	if reply == nil {
		reply = f.Serve(req, m)
	}
	return reply
}

func newRequest(method, path, body string, c call) *Request {
	req := &Request{
		Request: rules.Request{
			Method: method, Path: path, Host: "shop.test",
			Client: netip.MustParseAddr("192.0.2.7"),
		},
		ID:       "test",
		ReadBody: func() ([]byte, error) { return []byte(body), nil },
		Gone:     func() bool { return c.gone != nil && c.gone() },
		Arrived:  time.Now(),
	}
	if body != "" && !strings.Contains(strings.Join(c.fields, "\n"), "Content-Type: ") {
		req.Header = append(req.Header, rules.Field{Name: "Content-Type", Value: "application/json"})
	}
	for _, field := range c.fields {
		name, value, _ := strings.Cut(field, ": ")
		req.Header = append(req.Header, rules.Field{Name: name, Value: value})
	}
	return req
}

// want fails the test unless the reply has the decision and status.
func (f *fixture) want(r *Reply, d decision.Decision, status int) *Reply {
	f.t.Helper()
	if r.Decision != d || r.Status != status {
		f.t.Fatalf("got %s %d %s, want %s %d", r.Decision, r.Status, r.Body, d, status)
	}
	return r
}

func field(r *Reply, name string) string {
	for _, f := range r.Header {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// slot reads lesson 1's state.
func (f *fixture) slot(lesson string) store.Slot {
	f.t.Helper()
	q, _ := f.Query("lessons", lesson)
	s, err := f.Gate.store.Slot(f.t.Context(), q)
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}
