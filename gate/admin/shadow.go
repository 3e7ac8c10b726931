package admin

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
)

// shadowView is what enforce would have done with the requests that a rule has seen in
// shadow since the gate was started.
type shadowView struct {
	Rule          string                      `json:"rule"` // "": it could not be told
	Requests      int64                       `json:"requests"`
	WouldReject   int64                       `json:"would_have_rejected"` // requests
	WouldOversell int64                       `json:"would_have_oversold"` // units booked beyond what there is, or twice
	Decisions     map[decision.Decision]int64 `json:"decisions"`           // requests, by what enforce would have answered
	Booked        map[decision.Decision]int64 `json:"booked"`              // units of those that the backend booked
}

func viewShadows(reports map[string]gate.ShadowReport) []shadowView {
	views := make([]shadowView, 0, len(reports))
	for _, rule := range slices.Sorted(maps.Keys(reports)) {
		r := reports[rule]
		v := shadowView{
			Rule: rule, WouldReject: r.Rejected, WouldOversell: r.Oversold,
			Decisions: orEmpty(r.Would), Booked: orEmpty(r.Booked),
		}
		for _, n := range r.Would {
			v.Requests += n
		}
		views = append(views, v)
	}
	return views
}

// orEmpty keeps a map without members an object in JSON.
func orEmpty[M ~map[K]V, K comparable, V any](m M) M {
	if m == nil {
		return M{}
	}
	return m
}

var (
	shadowTotal    = describe("slotgate_shadow_total", "Requests in shadow, by what enforce would have answered.", "rule", "decision")
	shadowBooked   = describe("slotgate_shadow_booked_units", "Units of requests in shadow that the backend booked, by what enforce would have answered.", "rule", "decision")
	shadowRejected = describe("slotgate_shadow_rejected_total", "Requests in shadow that enforce would have refused.", "rule")
	shadowOversold = describe("slotgate_shadow_oversold_units", "Units that the backend booked beyond what there is, or twice to the same, and enforce would not have let it.", "rule")
)

// collectShadows are counters: they live as long as the process.
func collectShadows(out chan<- prometheus.Metric, reports map[string]gate.ShadowReport) {
	counter := func(d *prometheus.Desc, n int64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	for rule, r := range reports {
		for would, n := range r.Would {
			counter(shadowTotal, n, rule, string(would))
			counter(shadowBooked, r.Booked[would], rule, string(would))
		}
		counter(shadowRejected, r.Rejected, rule)
		counter(shadowOversold, r.Oversold, rule)
	}
}
