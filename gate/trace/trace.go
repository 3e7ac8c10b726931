// Package trace makes OpenTelemetry spans of gated requests and sends them to a
// collector, as OTLP over HTTP.
//
// A request that a rule was found for is a server span; within it are decide and settle
// for each call of the store and upstream for each attempt at the backend. Attributes
// are names from the configuration, fixed words and numbers: what a client sent, such as
// a slot, subject or key, is in none.
//
// Spans wait in a bounded queue. When the collector is away or slow they are lost, and
// the log says so from time to time; no request waits for it.
package trace

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/rules"
)

const (
	queueSize   = 4096 // spans
	batchSize   = 512
	batchDelay  = time.Second
	exportLimit = 10 * time.Second // of one batch, its retries included
)

// Options say where spans go.
type Options struct {
	Config  rules.TracingConfig
	Version string // of the gate
	Logger  *slog.Logger
}

// Tracer implements gate.Tracer. It is safe for concurrent use.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	sampler  *sampler
	exporter *exporter
}

var _ gate.Tracer = (*Tracer)(nil)

// Open does not wait for the collector: it may come later. Close ends the background
// work.
func Open(o Options) (*Tracer, error) {
	// What OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say comes last, and wins.
	about, err := resource.New(context.Background(), resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(attribute.String("service.name", "slotgate"), attribute.String("service.version", o.Version)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	t := &Tracer{sampler: &sampler{}, exporter: newExporter(o.Config.OTLPEndpoint, o.Logger)}
	t.SetSample(o.Config.Sample)
	t.provider = sdk.NewTracerProvider(
		sdk.WithResource(about),
		sdk.WithSampler(sdk.ParentBased(t.sampler)),
		sdk.WithBatcher(otlptrace.NewUnstarted(t.exporter), sdk.WithMaxQueueSize(queueSize),
			sdk.WithMaxExportBatchSize(batchSize), sdk.WithBatchTimeout(batchDelay), sdk.WithExportTimeout(exportLimit)),
	)
	t.tracer = t.provider.Tracer("github.com/slotgate/slotgate")
	return t, nil
}

// SetSample changes the share of requests without a parent that are traced, 0 to 1.
func (t *Tracer) SetSample(share float64) {
	s := sdk.TraceIDRatioBased(share)
	t.sampler.Store(&s)
}

// Close sends what waits until ctx ends; what is left then is lost. It may be called
// twice.
func (t *Tracer) Close(ctx context.Context) {
	stop := context.AfterFunc(ctx, t.exporter.close)
	defer stop()
	_ = t.provider.Shutdown(ctx) // the exporter has logged what went wrong
	t.exporter.close()
}

// sampler decides about requests without a parent. The share may change at any time.
type sampler struct{ atomic.Pointer[sdk.Sampler] }

func (s *sampler) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	return (*s.Load()).ShouldSample(p)
}

func (s *sampler) Description() string { return "live " + (*s.Load()).Description() }
