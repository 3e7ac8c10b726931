package gate

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

// noted is a tracer that keeps what it is told, as text.
type noted struct {
	mu   sync.Mutex
	told []string
}

func (n *noted) note(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.told = append(n.told, fmt.Sprintf(format, args...))
}

func (n *noted) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	told := n.told
	n.told = nil
	return told
}

func (n *noted) Begin(r *Request, rule *rules.Rule) Trace {
	n.note("begin %s", rule.Name)
	return notedTrace{n}
}

type notedTrace struct{ *noted }

func (n notedTrace) ID() string { return "trace-1" }
func (n notedTrace) End(r *Reply) {
	n.note("end %s %s", r.Decision, r.Outcome)
}

func (n notedTrace) Step(name string) Step { return notedStep{n.noted, name} }

type notedStep struct {
	*noted
	name string
}

func (s notedStep) Outgoing(fields []rules.Field) []rules.Field {
	return append(slices.Clone(fields), rules.Field{Name: "traceparent", Value: "child"})
}

func (s notedStep) End(failed bool) {
	if failed {
		s.note("%s failed", s.name)
	} else {
		s.note("%s", s.name)
	}
}

// traceTo has a gate that has served nothing yet tell a tracer of its requests.
func (f *fixture) traceTo(t Tracer) { f.tracer = t }

func TestSpans(t *testing.T) {
	f := newFixture(t, "capacity: 1", keyed)
	var log logText
	f.logTo(&log, slog.LevelDebug)
	var tracer noted
	f.traceTo(&tracer)
	want := func(what string, told ...string) {
		t.Helper()
		if got := tracer.take(); !slices.Equal(got, told) {
			t.Errorf("%s: %q, want %q", what, got, told)
		}
	}
	f.book(call{fields: []string{"Idempotency-Key: a", "Authorization: x"}})
	want("a booking", "begin book", "decide", "upstream", "settle", "end admitted booked")
	f.book(call{fields: []string{"Idempotency-Key: a", "Authorization: x"}})
	want("a replay", "begin book", "decide", "end replayed booked")
	f.book(call{student: "bob"})
	want("a refusal", "begin book", "decide", "end sold-out ")
	f.call("POST", "/lessons/1/bookings", "{", call{})
	want("no fact", "begin book", "end ambiguous ")
	f.call("GET", "/elsewhere", "", call{})
	want("no rule")

	f.backend.set(func(string, string) (*BackendAnswer, error) {
		return nil, &BackendError{Failure: TimedOut, Err: io.ErrUnexpectedEOF}
	})
	f.book(call{lesson: "2"})
	want("no answer", "begin book", "decide", "upstream failed", "settle", "end upstream-timeout unknown")
	f.store.set(down(false), nil)
	f.book(call{lesson: "3"})
	told := tracer.take()
	if !slices.Contains(told, "decide failed") || !strings.HasPrefix(told[len(told)-1], "end upstream-timeout") {
		t.Errorf("a store that is down: %q", told)
	}
	for _, line := range log.of(t, "decision") {
		if line["trace_id"] != "trace-1" {
			t.Errorf("a line without its trace: %v", line)
		}
	}
}

// The backend sees the span of its own attempt; the client's fields stay as they are.
// Without a tracer it sees what the client sent, and nothing else.
func TestTraceContextOfTheBackend(t *testing.T) {
	for _, traced := range []bool{false, true} {
		f := newFixture(t, "capacity: 2", "")
		if traced {
			f.traceTo(&noted{})
		}
		spy := &spy{Backend: f.backend}
		f.Gate.book.Load().Backend = spy
		req := newRequest("POST", "/lessons/1/bookings", `{"student":"ann"}`, call{fields: []string{"Tracestate: a=1", "TraceParent: theirs"}})
		sent := slices.Clone(req.Header)
		m, _, _ := f.Route(req)
		f.want(f.Serve(req, m), decision.DecisionAdmitted, 201)
		if !slices.Equal(req.Header, sent) {
			t.Errorf("the request's fields were changed: %v", req.Header)
		}
		if want := len(sent); traced && len(spy.header) != want+1 || !traced && !slices.Equal(spy.header, sent) {
			t.Errorf("traced %v: the backend got %v", traced, spy.header)
		}
		if string(spy.body) != `{"student":"ann"}` {
			t.Errorf("the backend got the body %s", spy.body)
		}
	}
}

// spy keeps what was forwarded last.
type spy struct {
	Backend
	header []rules.Field
	body   []byte
}

func (s *spy) Forward(f *Forward) (*BackendAnswer, error) {
	s.header, s.body = f.Request.Header, f.Request.Body
	return s.Backend.Forward(f)
}

// BenchmarkServe is a gated request that is refused by the store, with the log at its
// usual levels.
func BenchmarkServe(b *testing.B) {
	for _, row := range []struct {
		name  string
		level slog.Level
	}{{"silent", slog.LevelError}, {"sampled", slog.LevelInfo}, {"debug", slog.LevelDebug}} {
		b.Run(row.name, func(b *testing.B) {
			f := newFixture(b, "capacity: 1", "")
			f.lines = newDecisionLog(slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: row.level})))
			f.book(call{})
			req := newRequest("POST", "/lessons/1/bookings", `{"student":"bob"}`, call{})
			b.ReportAllocs()
			for b.Loop() {
				req.Body = nil
				m, _, _ := f.Route(req)
				f.Serve(req, m)
			}
		})
	}
}
