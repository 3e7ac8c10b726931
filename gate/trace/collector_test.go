package trace

import (
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collector takes spans as one of OpenTelemetry's does.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	answer  func(n int, w http.ResponseWriter) // of the n-th post, from 1; nil: 200
	posts   int
	spans   []*spans.Span
	service map[string]string // attributes of the resource
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s %s, %s", r.Method, r.URL, r.Header.Get("Content-Type"))
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.posts++
		if c.answer != nil {
			c.answer(c.posts, w)
			return
		}
		c.take(t, body)
	}))
	t.Cleanup(c.Server.Close)
	return c
}

func (c *collector) take(t *testing.T, body []byte) {
	var batch spans.TracesData
	if err := proto.Unmarshal(body, &batch); err != nil {
		t.Errorf("no OTLP: %v", err)
	}
	for _, r := range batch.ResourceSpans {
		c.service = attributes(r.GetResource().GetAttributes())
		for _, s := range r.ScopeSpans {
			c.spans = append(c.spans, s.Spans...)
		}
	}
}

// all are the spans so far, by their ids.
func (c *collector) all() map[string]*spans.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	byID := map[string]*spans.Span{}
	for _, s := range c.spans {
		byID[hex.EncodeToString(s.SpanId)] = s
	}
	return byID
}

func attributes(list []*common.KeyValue) map[string]string {
	m := map[string]string{}
	for _, kv := range list {
		if i, ok := kv.Value.Value.(*common.AnyValue_IntValue); ok {
			m[kv.Key] = strconv.FormatInt(i.IntValue, 10)
			continue
		}
		m[kv.Key] = kv.Value.GetStringValue()
	}
	return m
}

// finish sends what waits.
func finish(t *testing.T, tracer *Tracer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	tracer.Close(ctx)
}
