package admin

import (
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/degrade"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// Metrics are the gate's Prometheus metrics, and the gate.Meter that fills them.
// Labels are names from the configuration and fixed words, so that the number of
// series follows from the configuration alone, whatever clients send. It is safe
// for concurrent use.
type Metrics struct {
	http.Handler // GET /metrics

	registry *prometheus.Registry

	requests  *prometheus.CounterVec
	outcomes  *prometheus.CounterVec
	total     *prometheus.HistogramVec
	inGate    *prometheus.HistogramVec
	upstream  *prometheus.HistogramVec
	store     *prometheus.HistogramVec
	storeErrs *prometheus.CounterVec
	oversold  *prometheus.CounterVec
	repeated  *prometheus.CounterVec
	refusals  *prometheus.CounterVec
	holds     *prometheus.GaugeVec
	truth     truthMetrics
	tunnels   prometheus.Gauge
	reload    prometheus.Gauge

	lastReload atomic.Pointer[lastReload]

	byRule sync.Map // name → *ruleSeries
	byOp   sync.Map // name → prometheus.Observer
	byPool sync.Map // name → prometheus.Counter, of repeated
}

var (
	secondsAtBackend = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	secondsInGate    = []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	secondsInStore   = []float64{.00001, .000025, .00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1}
)

// NewMetrics registers every metric for the rules and pools of the configuration.
func NewMetrics(config *rules.Config, version, commit string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),

		requests:  counters("slotgate_requests_total", "Answers to gated requests, by Gate-Decision.", "rule", "decision"),
		outcomes:  counters("slotgate_outcomes_total", "Forwarded attempts, by what the backend's answer meant.", "rule", "outcome"),
		total:     histograms("slotgate_request_seconds", "Time from a gated request's head to its answer.", secondsAtBackend, "rule"),
		inGate:    histograms("slotgate_gate_seconds", "The part of slotgate_request_seconds not spent at the backend.", secondsInGate, "rule"),
		upstream:  histograms("slotgate_upstream_seconds", "Time of one attempt at the backend.", secondsAtBackend, "rule", "outcome"),
		store:     histograms("slotgate_store_seconds", "Time of one store call, its retry included, failed ones too.", secondsInStore, "op"),
		storeErrs: counters("slotgate_store_errors_total", "Failed store calls.", "kind"),
		oversold:  counters("slotgate_oversold_units", "Units that bookings answered after their hold was gone put over a slot's capacity.", "pool"),
		repeated:  counters("slotgate_reject_cache_hits_total", "Answers of sold-out that were given without asking the store (reject_cache).", "pool"),
		refusals:  counters("slotgate_edge_refusals_total", "Requests and connections refused before any rule looked at them.", "kind"),
		holds:     gauges("slotgate_holds", "Units in holds, counted in the background from the slots the store lists.", "pool", "state"),
		tunnels: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "slotgate_tunnels",
			Help: "Client connections on which another protocol is spoken, WebSocket for one.",
		}),
	}
	m.Handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry, MaxRequestsInFlight: 4, Timeout: 10 * time.Second})

	build := gauges("slotgate_build_info", "1, labelled with the version that runs.", "version", "commit", "goversion")
	build.WithLabelValues(version, commit, runtime.Version()).Set(1)
	m.reload = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "slotgate_config_reload_success",
		Help: "1 while the configuration in effect is the last one that was asked for.",
	})
	m.reload.Set(1)
	m.registry.MustRegister(
		m.requests, m.outcomes, m.total, m.inGate, m.upstream, m.store, m.storeErrs,
		m.oversold, m.repeated, m.refusals, m.holds, m.tunnels, build, m.reload,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	for _, rule := range config.Rules {
		m.rule(rule.Name)
	}
	for pool := range config.Pools {
		m.oversold.WithLabelValues(pool)
		m.repeated.WithLabelValues(pool)
	}
	m.registerTruth(config)
	for _, kind := range []store.ErrorKind{store.KindTimeout, store.KindConnection, store.KindFull, store.KindReply, store.KindServer, store.KindClosed, store.KindUnsent, degrade.KindOpen} {
		m.storeErrs.WithLabelValues(string(kind))
	}
	return m
}

// Request implements gate.Meter.
func (m *Metrics) Request(rule string, d decision.Decision, total, inGate time.Duration) {
	r := m.rule(rule)
	if c := r.requests[d]; c != nil {
		c.Inc()
	}
	r.total.Observe(total.Seconds())
	r.inGate.Observe(inGate.Seconds())
}

// Outcome implements gate.Meter.
func (m *Metrics) Outcome(rule string, o rules.Outcome, took time.Duration) {
	if int(o) >= len(outcomes) {
		return
	}
	r := m.rule(rule)
	r.outcomes[o].Inc()
	r.upstreamFor(m, rule, o).Observe(took.Seconds())
}

// Repeated implements gate.Meter.
func (m *Metrics) Repeated(pool string) {
	counter, ok := m.byPool.Load(pool)
	if !ok {
		counter, _ = m.byPool.LoadOrStore(pool, m.repeated.WithLabelValues(pool))
	}
	counter.(prometheus.Counter).Inc()
}

// Oversold implements gate.Meter.
func (m *Metrics) Oversold(pool string, units int64) {
	m.oversold.WithLabelValues(pool).Add(float64(units))
}

// StoreError implements gate.Meter.
func (m *Metrics) StoreError(kind string) { m.storeErrs.WithLabelValues(kind).Inc() }

// StoreCall takes the time of one store call; op is one of the store's fixed
// words. It fits the Observe option of the stores. Failures are counted by
// StoreError, which the journey calls with what a failure meant to it.
func (m *Metrics) StoreCall(op string, took time.Duration, _ error) {
	observer, ok := m.byOp.Load(op)
	if !ok {
		observer, _ = m.byOp.LoadOrStore(op, m.store.WithLabelValues(op))
	}
	observer.(prometheus.Observer).Observe(took.Seconds())
}

// EdgeRefusal counts a request or connection that the edge refused; kind is one
// of the edge's fixed words.
func (m *Metrics) EdgeRefusal(kind string) { m.refusals.WithLabelValues(kind).Inc() }

// Tunnels tells how many connections of clients have become tunnels and are open.
func (m *Metrics) Tunnels(open int) { m.tunnels.Set(float64(open)) }

// ruleSeries are one rule's series, looked up once: with a label lookup for each
// of them a booking would pay more for its metrics than for its matching.
type ruleSeries struct {
	requests map[decision.Decision]prometheus.Counter // never written after it was made
	outcomes [len(outcomes)]prometheus.Counter
	total    prometheus.Observer
	inGate   prometheus.Observer
	// A histogram is 17 lines of a scrape, and most rules never see most
	// outcomes: these are made when first needed.
	upstream [len(outcomes)]atomic.Pointer[prometheus.Observer]
}

var outcomes = [...]rules.Outcome{
	rules.NoOutcome, rules.Booked, rules.Refused, rules.SoldOut, rules.Duplicate, rules.Busy,
	rules.Unknown, rules.NeverSent, rules.Done,
}

// forwarded are the decisions that are not the gate's own answers.
var forwarded = []decision.Decision{
	decision.DecisionAdmitted, decision.DecisionReplayed, decision.DecisionPassthrough, decision.DecisionShadow,
}

func (m *Metrics) rule(name string) *ruleSeries {
	if r, ok := m.byRule.Load(name); ok {
		return r.(*ruleSeries)
	}
	r := &ruleSeries{
		requests: make(map[decision.Decision]prometheus.Counter),
		total:    m.total.WithLabelValues(name),
		inGate:   m.inGate.WithLabelValues(name),
	}
	for _, d := range append(decision.Own(), forwarded...) {
		r.requests[d] = m.requests.WithLabelValues(name, string(d))
	}
	for _, o := range outcomes[1:] {
		r.outcomes[o] = m.outcomes.WithLabelValues(name, o.String())
	}
	made, _ := m.byRule.LoadOrStore(name, r)
	return made.(*ruleSeries)
}

func (r *ruleSeries) upstreamFor(m *Metrics, rule string, o rules.Outcome) prometheus.Observer {
	if made := r.upstream[o].Load(); made != nil {
		return *made
	}
	observer := m.upstream.WithLabelValues(rule, o.String())
	r.upstream[o].Store(&observer)
	return observer
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

func histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}
