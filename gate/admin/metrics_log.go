package admin

import "github.com/prometheus/client_golang/prometheus"

// WatchAccessLog adds the counter of access log lines that were lost. It is called once,
// before the first scrape.
func (m *Metrics) WatchAccessLog(log interface{ Dropped() uint64 }) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "slotgate_access_log_lost_total",
		Help: "Lines of log.access that were lost: the disk is full, or slower than the requests.",
	}, func() float64 { return float64(log.Dropped()) }))
}
