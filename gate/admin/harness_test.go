package admin

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// fakeGate has two rules and one pool of 6.
type fakeGate struct {
	mu     sync.Mutex
	rules  []gate.RuleStatus
	status gate.Status
	truth  store.TruthKind
	demand map[string]gate.Demand
}

func newFakeGate() *fakeGate {
	return &fakeGate{
		rules: []gate.RuleStatus{
			{Name: "book-lesson", Action: "book", Pool: "lessons", Mode: "enforce", FileMode: "enforce", OnStoreFailure: "pass"},
			{Name: "mail", Action: "guard", Mode: "enforce", FileMode: "enforce", OnStoreFailure: "reject"},
		},
		status: gate.Status{StartedAt: time.Date(2030, 9, 1, 8, 0, 0, 0, time.UTC), Revision: "r1", Policy: "p1"},
	}
}

func (g *fakeGate) Rules() []gate.RuleStatus {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.rules)
}

func (g *fakeGate) SetMode(rule, mode string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.rules {
		if g.rules[i].Name == rule {
			g.rules[i].Mode = mode
			return nil
		}
	}
	return errors.New("no such rule")
}

func (g *fakeGate) SetModeAll(mode string) error {
	for _, r := range g.Rules() {
		if err := g.SetMode(r.Name, mode); err != nil {
			return err
		}
	}
	return nil
}

func (g *fakeGate) Status() gate.Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.status
}

func (g *fakeGate) set(change func(*gate.Status)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(&g.status)
}

func (g *fakeGate) Query(pool, slot string) (store.SlotQuery, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return store.SlotQuery{Pool: pool, Slot: slot, Capacity: 6, Truth: g.truth, Retain: time.Hour}, pool == "lessons"
}

func (g *fakeGate) Pools() []string { return []string{"lessons"} }

func (g *fakeGate) Demand(_, slot string) gate.Demand {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.demand[slot]
}

// fakeSlots keeps slots as they were put; err makes every call fail.
type fakeSlots struct {
	mu      sync.Mutex
	slots   map[string]store.Slot
	changes []store.SlotChange
	entries []store.Entry
	reads   int
	err     error
}

func newFakeSlots(slots ...store.Slot) *fakeSlots {
	f := &fakeSlots{slots: map[string]store.Slot{}}
	for _, s := range slots {
		s.Pool = "lessons"
		f.slots[s.Slot] = s
	}
	return f
}

func (f *fakeSlots) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *fakeSlots) Slot(_ context.Context, q store.SlotQuery) (store.Slot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	s, ok := f.slots[q.Slot]
	if f.err == nil && !ok {
		return s, store.ErrNoSlot
	}
	return s, f.err
}

// Slots lists by name; its cursor is the last name listed.
func (f *fakeSlots) Slots(_ context.Context, _ store.SlotQuery, cursor string, limit int) ([]store.Slot, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var page []store.Slot
	for _, name := range slices.Sorted(maps.Keys(f.slots)) {
		if name <= cursor {
			continue
		}
		if len(page) == limit {
			return page, page[limit-1].Slot, f.err
		}
		s := f.slots[name]
		s.Holds = nil
		page = append(page, s)
	}
	return page, "", f.err
}

func (f *fakeSlots) Change(_ context.Context, q store.SlotQuery, c store.SlotChange) (store.Slot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes = append(f.changes, c)
	s, ok := f.slots[q.Slot]
	if !ok {
		s = store.Slot{Pool: q.Pool, Slot: q.Slot, Capacity: q.Capacity}
	}
	if c.Capacity != nil {
		s.Capacity, s.Own = *c.Capacity, true
	}
	if c.ClearCapacity {
		s.Capacity, s.Own = q.Capacity, false
	}
	if c.Closed != nil {
		s.Closed = *c.Closed
	}
	if c.OpensAt != nil {
		s.OpensAt = *c.OpensAt
	}
	f.slots[q.Slot] = s
	return s, f.err
}

func (f *fakeSlots) Release(_ context.Context, q store.SlotQuery, hold string) (decision.HoldState, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.slots[q.Slot]
	for _, h := range s.Holds {
		if h.ID == hold {
			return h.State, f.err
		}
	}
	return decision.NoHold, store.ErrNoHold
}

func (f *fakeSlots) Ledger(_ context.Context, _, _ string, limit int) ([]store.Entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.entries[:min(limit, len(f.entries))], f.err
}

func testConfig() *rules.Config {
	return &rules.Config{
		Pools: map[string]*rules.PoolConfig{"lessons": {}},
		Rules: []*rules.RuleConfig{{Name: "book-lesson", Pool: "lessons"}, {Name: "mail"}},
	}
}

type bench struct {
	*testing.T
	gate    *fakeGate
	slots   *fakeSlots
	metrics *Metrics
	truth   *fakeTruth
	server  *Server
}

// fakeTruth knows a slot, or says why not.
type fakeTruth struct {
	looked []string
	err    error
}

func (f *fakeTruth) Resync(_ context.Context, pool, slot string) error {
	f.looked = append(f.looked, pool+"/"+slot)
	return f.err
}

func newBench(t *testing.T, token string, slots ...store.Slot) *bench {
	t.Helper()
	b := &bench{T: t, gate: newFakeGate(), slots: newFakeSlots(slots...), metrics: NewMetrics(testConfig(), "v1.2.3", "abc"), truth: &fakeTruth{}}
	b.metrics.WatchGate(b.gate)
	server, err := New(Options{
		Gate: b.gate, Slots: b.slots, Truth: b.truth, Metrics: b.metrics, Version: "v1.2.3",
		Listen: "127.0.0.1:9901", Token: token, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	b.server = server
	return b
}

// call sends a request as a local program would. Fields are "Name: value".
func (b *bench) call(method, target, body string, fields ...string) *httptest.ResponseRecorder {
	b.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "127.0.0.1:9901"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	b.server.http.Handler.ServeHTTP(w, r)
	return w
}

// want checks the status, and that every failure is a problem document whose
// detail contains the text.
func (b *bench) want(w *httptest.ResponseRecorder, status int, detail string) {
	b.Helper()
	if w.Code != status {
		b.Fatalf("status %d, want %d: %s", w.Code, status, w.Body)
	}
	if status < 400 {
		return
	}
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		b.Errorf("Content-Type %q", got)
	}
	var p problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		b.Fatal(err)
	}
	if p.Status != status || p.Title != http.StatusText(status) || !strings.Contains(p.Detail, detail) {
		b.Errorf("problem %+v, want a detail with %q", p, detail)
	}
}

// body checks a whole answer as JSON text.
func (b *bench) body(w *httptest.ResponseRecorder, want string) {
	b.Helper()
	b.want(w, http.StatusOK, "")
	if got := strings.TrimSpace(w.Body.String()); got != want {
		b.Errorf("answer\n %s\nwant\n %s", got, want)
	}
}
