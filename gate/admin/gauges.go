package admin

import (
	"math"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slotgate/slotgate/gate"
)

// WatchGate adds the gauges that are read from the gate's status at each scrape.
// It is called once, before the first scrape.
func (m *Metrics) WatchGate(g interface {
	Status() gate.Status
	Pools() []string
}) {
	m.registry.MustRegister(&statusCollector{gate: g})
}

type statusCollector struct {
	gate interface {
		Status() gate.Status
		Pools() []string
	}
}

var (
	breakerState = describe("slotgate_breaker_state", "0 closed, 1 half-open, 2 open.", "breaker")
	degraded     = describe("slotgate_degraded", "1 while bookings go on without the store.")
	boundUnits   = describe("slotgate_bound_units", "Units that this gate may admit in the outage under way; +Inf where only the backend bounds them, 0 in normal mode.", "pool")
	queueWaiting = describe("slotgate_queue_waiting", "Requests waiting for room at a busy slot.", "pool")
	backlog      = describe("slotgate_settle_backlog", "Settlements waiting for the store to come back.")
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (c *statusCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{breakerState, degraded, boundUnits, queueWaiting, backlog, shadowTotal, shadowBooked, shadowRejected, shadowOversold} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *statusCollector) Collect(out chan<- prometheus.Metric) {
	status := c.gate.Status()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(breakerState, float64(status.StoreBreaker), "store")
	gauge(breakerState, float64(status.UpstreamBreaker), "upstream")
	isDegraded := 0.0
	if status.Degraded {
		isDegraded = 1
	}
	gauge(degraded, isDegraded)
	gauge(backlog, float64(status.SettleBacklog))
	collectShadows(out, status.Shadow)
	for _, pool := range c.gate.Pools() {
		gauge(queueWaiting, float64(status.Waiting[pool]), pool)
		gauge(boundUnits, bound(status.Bound[pool]), pool)
	}
}

// bound is a pool's Gate-Bound as a number.
func bound(text string) float64 {
	if text == "" {
		return 0
	}
	if units, err := strconv.ParseInt(text, 10, 64); err == nil {
		return float64(units)
	}
	return math.Inf(1)
}
