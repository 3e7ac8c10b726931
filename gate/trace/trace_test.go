package trace

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	spans "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	spanID  = "b7ad6b7169203331"
)

var quiet = slog.New(slog.DiscardHandler)

func open(t *testing.T, endpoint string, sample float64, log *slog.Logger) *Tracer {
	t.Helper()
	tracer, err := Open(Options{Config: rules.TracingConfig{OTLPEndpoint: endpoint, Sample: sample}, Version: "v1", Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { finish(t, tracer) })
	return tracer
}

var book = &rules.Rule{
	RuleConfig: rules.RuleConfig{Name: "book", Match: rules.MatchConfig{Path: "/lessons/{lesson}/bookings"}},
	Pool:       &rules.Pool{Name: "lessons"},
}

func arrived(fields ...rules.Field) *gate.Request {
	return &gate.Request{
		Request: rules.Request{Method: "POST", Path: "/lessons/7/bookings", Header: fields},
		Arrived: time.Now().Add(-time.Second),
	}
}

var booked = &gate.Reply{
	Answer: decision.Answer{Status: 201}, Decision: decision.DecisionAdmitted,
	Mode: gate.ModeNormal, Rule: "book", Outcome: rules.Booked, Hold: "SECRET-HOLD",
}

// journey is a request as the gate traces it; sent are the fields for the backend.
func journey(t *Tracer, fields ...rules.Field) (sent []rules.Field, id string) {
	trace := t.Begin(arrived(fields...), book)
	trace.Step("decide").End(false)
	upstream := trace.Step("upstream")
	sent = upstream.Outgoing(fields)
	upstream.End(false)
	trace.Step("settle").End(true)
	trace.End(booked)
	return sent, trace.ID()
}

func TestSpansOfARequest(t *testing.T) {
	c := newCollector(t)
	tracer := open(t, c.URL, 1, quiet)
	sent, id := journey(tracer)
	finish(t, tracer)

	all := c.all()
	if len(all) != 4 {
		t.Fatalf("%d spans", len(all))
	}
	var server *spans.Span
	names := map[string]*spans.Span{}
	for _, s := range all {
		if names[s.Name] = s; s.Kind == spans.Span_SPAN_KIND_SERVER {
			server = s
		}
	}
	if server == nil || server.Name != "POST /lessons/{lesson}/bookings" || len(server.ParentSpanId) != 0 ||
		hex.EncodeToString(server.TraceId) != id {
		t.Fatalf("server span %v, trace %s", server, id)
	}
	if took := time.Duration(server.EndTimeUnixNano - server.StartTimeUnixNano); took < time.Second {
		t.Errorf("the span began %v before its end: not when the request had arrived", took)
	}
	want := map[string]string{
		"http.request.method": "POST", "http.route": "/lessons/{lesson}/bookings", "http.response.status_code": "201",
		"slotgate.rule": "book", "slotgate.pool": "lessons", "slotgate.decision": "admitted", "slotgate.mode": "normal",
		"slotgate.outcome": "booked",
	}
	if got := attributes(server.Attributes); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("attributes\n%v, want\n%v", got, want)
	}
	for name, kind := range map[string]spans.Span_SpanKind{
		"decide": spans.Span_SPAN_KIND_INTERNAL, "upstream": spans.Span_SPAN_KIND_CLIENT, "settle": spans.Span_SPAN_KIND_INTERNAL,
	} {
		s := names[name]
		if s == nil || s.Kind != kind || !bytes.Equal(s.ParentSpanId, server.SpanId) || !bytes.Equal(s.TraceId, server.TraceId) {
			t.Errorf("%s: %v", name, s)
		} else if failed := s.Status.GetCode() == spans.Status_STATUS_CODE_ERROR; failed != (name == "settle") {
			t.Errorf("%s: status %v", name, s.Status)
		}
	}
	if want := "00-" + id + "-" + hex.EncodeToString(names["upstream"].SpanId) + "-01"; len(sent) != 1 || sent[0].Value != want {
		t.Errorf("the backend got %v, want %s", sent, want)
	}
	if c.service["service.name"] != "slotgate" || c.service["service.version"] != "v1" {
		t.Errorf("resource %v", c.service)
	}
	if strings.Contains(fmt.Sprint(all), "SECRET") || strings.Contains(fmt.Sprint(all), "lessons/7") {
		t.Error("a span holds what came from a client")
	}
}

func field(name, value string) rules.Field { return rules.Field{Name: name, Value: value} }

// Who sends a traceparent is followed, whatever the share; what is malformed begins
// anew, and its tracestate goes nowhere.
func TestParents(t *testing.T) {
	other := field("Accept", "*/*")
	parent := func(version, flags, more string) string {
		return version + "-" + traceID + "-" + spanID + "-" + flags + more
	}
	for _, row := range []struct {
		name            string
		sample          float64
		fields          []rules.Field
		follows, traced bool
		state           int // lines of tracestate that go on
	}{
		{"sampled", 0, []rules.Field{other, field("Traceparent", parent("00", "01", "")), other}, true, true, 0},
		{"not sampled", 1, []rules.Field{field("traceparent", parent("00", "00", ""))}, true, false, 0},
		{"other flags", 0, []rules.Field{field("traceparent", parent("00", "03", ""))}, true, true, 0},
		{"state", 0, []rules.Field{field("tracestate", "a=1"), field("traceparent", parent("00", "01", "")), field("tracestate", "b=2")}, true, true, 2},
		{"later version", 0, []rules.Field{field("traceparent", parent("01", "01", "-what"))}, true, true, 0},
		{"bad state", 0, []rules.Field{field("traceparent", parent("00", "01", "")), field("tracestate", "=,=")}, true, true, 1},
		{"none", 1, []rules.Field{other}, false, true, 0},
		{"none, share 0", 0, []rules.Field{other}, false, false, 0},
		{"version 255", 1, []rules.Field{field("traceparent", parent("ff", "01", ""))}, false, true, 0},
		{"more after version 00", 1, []rules.Field{field("traceparent", parent("00", "01", "-x"))}, false, true, 0},
		{"later version, no dash", 1, []rules.Field{field("traceparent", parent("01", "01", "x"))}, false, true, 0},
		{"capitals", 1, []rules.Field{field("traceparent", strings.ToUpper(parent("00", "01", "")))}, false, true, 0},
		{"no trace", 1, []rules.Field{field("traceparent", "00-"+strings.Repeat("0", 32)+"-"+spanID+"-01")}, false, true, 0},
		{"no span", 1, []rules.Field{field("traceparent", "00-"+traceID+"-"+strings.Repeat("0", 16)+"-01")}, false, true, 0},
		{"short", 1, []rules.Field{field("traceparent", parent("00", "0", "")), field("tracestate", "a=1")}, false, true, 0},
		{"empty", 1, []rules.Field{field("traceparent", "")}, false, true, 0},
		{"twice", 1, []rules.Field{field("traceparent", parent("00", "01", "")), field("traceparent", parent("00", "01", "")), field("tracestate", "a=1")}, false, true, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newCollector(t)
			tracer := open(t, c.URL, row.sample, quiet)
			before := slices.Clone(row.fields)
			sent, id := journey(tracer, row.fields...)
			finish(t, tracer)
			if !slices.Equal(before, row.fields) {
				t.Error("the request's own fields were changed")
			}
			var told, state []string
			others := 0
			for _, f := range sent {
				switch strings.ToLower(f.Name) {
				case "traceparent":
					told = append(told, f.Value)
				case "tracestate":
					state = append(state, f.Value)
				default:
					others++
				}
			}
			if len(told) != 1 || len(told[0]) != 55 {
				t.Fatalf("the backend got %q", told)
			}
			if follows := told[0][3:35] == traceID; follows != row.follows || told[0][36:52] == spanID {
				t.Errorf("the backend got %s", told[0])
			}
			if traced := told[0][53:] == "01"; traced != row.traced || (id != "") != row.traced {
				t.Errorf("the backend got %s, the log %q", told[0], id)
			}
			if len(state) != row.state {
				t.Errorf("tracestate %q", state)
			}
			if n := strings.Count(fmt.Sprint(row.fields), "Accept"); others != n {
				t.Errorf("%d other fields of %d", others, n)
			}
			want := 0
			if row.traced {
				want = 4
			}
			all := c.all()
			if len(all) != want {
				t.Errorf("%d spans, want %d", len(all), want)
			}
			for _, s := range all {
				if s.Kind == spans.Span_SPAN_KIND_SERVER && (hex.EncodeToString(s.ParentSpanId) == spanID) != row.follows {
					t.Errorf("parent %x", s.ParentSpanId)
				}
			}
		})
	}
}

func TestTheShareChangesLive(t *testing.T) {
	c := newCollector(t)
	tracer := open(t, c.URL, 0, quiet)
	traced := func() (n int) {
		for range 2000 {
			if _, id := journey(tracer); id != "" {
				n++
			}
		}
		return n
	}
	if n := traced(); n != 0 {
		t.Errorf("%d of share 0", n)
	}
	tracer.SetSample(0.25) // 500 ± 19
	if n := traced(); n < 400 || n > 600 {
		t.Errorf("%d of 2000 with share 0.25", n)
	}
	tracer.SetSample(1)
	if n := traced(); n != 2000 {
		t.Errorf("%d of share 1", n)
	}
}

// capture is a log.
type capture struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(p)
}

func (c *capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// A collector that is away or stuck: spans are lost, nobody waits for it, and the log
// says so once.
func TestCollectorAway(t *testing.T) {
	stuck := make(chan struct{})
	c := newCollector(t)
	c.answer = func(int, http.ResponseWriter) { <-stuck }
	t.Cleanup(func() { close(stuck) }) // before the collector is closed
	for name, endpoint := range map[string]string{"away": "http://127.0.0.1:1", "stuck": c.URL} {
		t.Run(name, func(t *testing.T) {
			var log capture
			tracer := open(t, endpoint, 1, slog.New(slog.NewTextHandler(&log, nil)))
			slowest := time.Duration(0)
			for range 5_000 { // four spans each: many queues full
				began := time.Now()
				journey(tracer)
				slowest = max(slowest, time.Since(began))
			}
			if slowest > 5*time.Second {
				t.Errorf("a request took %v", slowest)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			tracer.Close(ctx) // comes back although nobody takes what waits
			if n := strings.Count(log.String(), "\n"); n > 2 {
				t.Errorf("%d lines:\n%s", n, log.String())
			}
		})
	}
}

// A collector that is busy for a moment gets the batch again; what it refuses, or loses
// for longer, is told.
func TestCollectorAnswers(t *testing.T) {
	var log capture
	c := newCollector(t)
	e := newExporter(c.URL+"/", slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { e.close(); _ = e.Stop(context.Background()) })
	batch := []*spans.ResourceSpans{{ScopeSpans: []*spans.ScopeSpans{{Spans: []*spans.Span{{Name: "a"}, {Name: "b"}}}}}}
	send := func(answer func(int, http.ResponseWriter), limit time.Duration) (posts int) {
		c.mu.Lock()
		c.answer, c.posts = answer, 0
		c.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := e.UploadTraces(ctx, batch); err != nil {
			t.Errorf("an error that nobody can do anything about: %v", err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.posts
	}
	status := func(code int) func(int, http.ResponseWriter) {
		return func(_ int, w http.ResponseWriter) { w.WriteHeader(code) }
	}
	busyOnce := func(n int, w http.ResponseWriter) {
		if n == 1 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	if posts := send(busyOnce, time.Minute); posts != 2 || log.String() != "" {
		t.Errorf("%d posts to a collector that was busy once; log %s", posts, log.String())
	}
	if posts := send(status(http.StatusBadRequest), time.Minute); posts != 1 {
		t.Errorf("%d posts of what the collector refuses", posts)
	}
	if !strings.Contains(log.String(), "lost=2") || !strings.Contains(log.String(), "answers 400") {
		t.Errorf("log %s", log.String())
	}
	if posts := send(status(http.StatusFound), time.Minute); posts != 1 {
		t.Errorf("%d posts after a redirect", posts)
	}
	if posts := send(status(http.StatusTooManyRequests), 50*time.Millisecond); posts != 1 {
		t.Errorf("%d posts in less than a pause", posts)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d lines within a minute:\n%s", n, log.String())
	}
	send(nil, time.Minute)
	if !strings.Contains(log.String(), "takes spans again") || !strings.Contains(log.String(), "lost=4") {
		t.Errorf("log %s", log.String())
	}
}

func TestEndpoints(t *testing.T) {
	for endpoint, want := range map[string]string{
		"http://a:4318":                "http://a:4318/v1/traces",
		"http://a:4318/":               "http://a:4318/v1/traces",
		"https://a/otel":               "https://a/otel/v1/traces",
		"https://a/otel/v1/traces":     "https://a/otel/v1/traces",
		"https://a/otel/v1/traces////": "https://a/otel/v1/traces",
	} {
		e := newExporter(endpoint, quiet)
		if e.close(); e.url != want || !errors.Is(e.closing.Err(), context.Canceled) {
			t.Errorf("%s: %s", endpoint, e.url)
		}
	}
}

func TestMethodNames(t *testing.T) {
	r := arrived()
	for method, want := range map[string]string{"GET": "GET", "M-SEARCH": "_OTHER", "SECRET": "_OTHER"} {
		if r.Method = method; methodName(r.Method) != want {
			t.Errorf("%s: %s", method, methodName(r.Method))
		}
	}
}

func BenchmarkJourney(b *testing.B) {
	for _, sample := range []float64{0, 1} {
		b.Run(fmt.Sprintf("sample=%v", sample), func(b *testing.B) {
			tracer, err := Open(Options{Config: rules.TracingConfig{OTLPEndpoint: "http://127.0.0.1:1", Sample: sample}, Logger: quiet})
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			defer tracer.Close(ctx)
			b.ReportAllocs()
			for b.Loop() {
				journey(tracer)
			}
		})
	}
}
