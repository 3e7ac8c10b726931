package trace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	connectTimeout = 2 * time.Second
	firstRetry     = 500 * time.Millisecond // doubles
	logEvery       = time.Minute
	maxReply       = 64 << 10 // bytes of a collector's answer that are read
)

// exporter posts batches (OTLP 1.x, OTLP/HTTP with binary protobuf). It implements
// otlptrace.Client. That of OpenTelemetry itself would bring gRPC into the binary, five
// MiB and a second HTTP/2 for one POST.
type exporter struct {
	url     string
	http    *http.Client
	log     *slog.Logger
	closing context.Context
	close   context.CancelFunc // makes every upload fail, now and later

	mu       sync.Mutex
	lost     int // spans, since the log said so
	lastSaid time.Time
}

// tracesPath is appended to an endpoint that does not end in it.
const tracesPath = "/v1/traces"

func newExporter(endpoint string, log *slog.Logger) *exporter {
	if endpoint = strings.TrimRight(endpoint, "/"); !strings.HasSuffix(endpoint, tracesPath) {
		endpoint += tracesPath
	}
	e := &exporter{url: endpoint, log: log}
	e.closing, e.close = context.WithCancel(context.Background())
	e.http = &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: connectTimeout}).DialContext,
			TLSHandshakeTimeout: connectTimeout,
			MaxConnsPerHost:     2,
			IdleConnTimeout:     90 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return e
}

func (e *exporter) Start(context.Context) error { return nil }

func (e *exporter) Stop(context.Context) error {
	e.http.CloseIdleConnections()
	return nil
}

// UploadTraces sends one batch. The spans of a batch that the collector does not take
// before ctx ends are lost; that is logged, and no error of anybody else's.
func (e *exporter) UploadTraces(ctx context.Context, batch []*spans.ResourceSpans) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.closing, cancel)()
	// TracesData is ExportTraceServiceRequest on the wire, without its gRPC service.
	body, err := proto.Marshal(&spans.TracesData{ResourceSpans: batch})
	if err == nil {
		err = e.deliver(ctx, body)
	}
	e.note(batch, err)
	return nil
}

// deliver posts a body until the collector takes it, refuses it for good or ctx ends.
func (e *exporter) deliver(ctx context.Context, body []byte) error {
	for pause := firstRetry; ; pause *= 2 {
		again, err := e.post(ctx, body)
		if err == nil || again < 0 {
			return err
		}
		timer := time.NewTimer(max(pause, again))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// post tries once. again is the pause that the collector asks for before another
// attempt, below 0: there is to be none.
func (e *exporter) post(ctx context.Context, body []byte) (again time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("User-Agent", "slotgate")
	answer, err := e.http.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxReply)) // so that the connection is used again
	switch code := answer.StatusCode; {
	case code/100 == 2:
		return 0, nil
	case code == http.StatusTooManyRequests, code == http.StatusBadGateway,
		code == http.StatusServiceUnavailable, code == http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		return time.Duration(max(0, seconds)) * time.Second, fmt.Errorf("the collector answers %d", code)
	default:
		return -1, fmt.Errorf("the collector answers %d", code)
	}
}

// note logs what was lost, at once and then each minute, and the end of it.
func (e *exporter) note(batch []*spans.ResourceSpans, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err == nil:
		if !e.lastSaid.IsZero() {
			e.log.Info("tracing: the collector takes spans again", "lost", e.lost)
			e.lost, e.lastSaid = 0, time.Time{}
		}
	default:
		e.lost += count(batch)
		if time.Since(e.lastSaid) < logEvery || e.closing.Err() != nil && errors.Is(err, context.Canceled) {
			return
		}
		e.log.Warn("tracing: the collector does not take spans; requests go on, their spans are lost", "lost", e.lost, "error", err)
		e.lost, e.lastSaid = 0, time.Now()
	}
}

func count(batch []*spans.ResourceSpans) (n int) {
	for _, r := range batch {
		for _, s := range r.ScopeSpans {
			n += len(s.Spans)
		}
	}
	return n
}
