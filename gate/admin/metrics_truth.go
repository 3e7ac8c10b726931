package admin

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slotgate/slotgate/gate/truth"
	"github.com/slotgate/slotgate/rules"
)

// truthMetrics are those of pools whose capacity is told by truth.
type truthMetrics struct {
	drift, debt         *prometheus.GaugeVec
	looks               *prometheus.CounterVec
	differences, damage *prometheus.GaugeVec

	mu      sync.Mutex
	reports map[string]reportView // by pool
}

var _ truth.Meter = (*Metrics)(nil)

func (m *Metrics) registerTruth(config *rules.Config) {
	t := &m.truth
	t.drift = gauges("slotgate_drift_units", "Units that the latest look of each slot had to change, of looks in the last two `refresh`.", "pool")
	t.debt = gauges("slotgate_debt_units", "Units by which slots are oversold, by their latest look at truth.", "pool")
	t.looks = counters("slotgate_looks_total", "Looks at truth, by how they ended.", "pool", "result")
	t.differences = gauges("slotgate_report_differences", "Differences between store and truth in the last scheduled report.", "pool")
	t.damage = gauges("slotgate_report_damage", "Findings of damage in truth in the last scheduled report.", "pool")
	m.registry.MustRegister(t.drift, t.debt, t.looks, t.differences, t.damage)
	for name, pool := range config.Pools {
		t.drift.WithLabelValues(name)
		if pool.Capacity.Truth == nil {
			continue
		}
		t.debt.WithLabelValues(name)
		for _, result := range truth.LookResults() {
			t.looks.WithLabelValues(name, string(result))
		}
	}
}

// Drift implements truth.Meter, as do the following.
func (m *Metrics) Drift(pool string, units int64) {
	m.truth.drift.WithLabelValues(pool).Set(float64(units))
}

func (m *Metrics) Debt(pool string, units int64) {
	m.truth.debt.WithLabelValues(pool).Set(float64(units))
}

func (m *Metrics) Look(pool string, result truth.LookResult) {
	m.truth.looks.WithLabelValues(pool, string(result)).Inc()
}

func (m *Metrics) Report(pool string, differences, damage int) {
	m.truth.differences.WithLabelValues(pool).Set(float64(differences))
	m.truth.damage.WithLabelValues(pool).Set(float64(damage))
	m.truth.mu.Lock()
	defer m.truth.mu.Unlock()
	if m.truth.reports == nil {
		m.truth.reports = make(map[string]reportView)
	}
	m.truth.reports[pool] = reportView{pool, time.Now().UTC(), differences, damage}
}

// reportView is the last scheduled report of a pool since the gate was started.
type reportView struct {
	Pool        string    `json:"pool"`
	At          time.Time `json:"at"`
	Differences int       `json:"differences"` // between store and truth
	Damage      int       `json:"damage"`      // findings in truth itself
}

// viewReports lists them by pool.
func (m *Metrics) viewReports() []reportView {
	m.truth.mu.Lock()
	defer m.truth.mu.Unlock()
	views := make([]reportView, 0, len(m.truth.reports))
	for _, pool := range slices.Sorted(maps.Keys(m.truth.reports)) {
		views = append(views, m.truth.reports[pool])
	}
	return views
}
