package admin

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

var _ gate.Meter = (*Metrics)(nil)

// scrape reads /metrics as Prometheus does.
func (b *bench) scrape() map[string]*dto.MetricFamily {
	b.Helper()
	w := b.call("GET", "/metrics", "")
	b.want(w, http.StatusOK, "")
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(w.Body)
	if err != nil {
		b.Fatal(err)
	}
	return families
}

// value is a counter's or gauge's value; labels are in the order of their names.
func value(t *testing.T, families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	t.Helper()
	for _, m := range families[name].GetMetric() {
		var have []string
		for _, l := range m.GetLabel() {
			have = append(have, l.GetValue())
		}
		if slices.Equal(have, labels) {
			return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	t.Fatalf("no series %s%v", name, labels)
	return 0
}

func (b *bench) everything() {
	b.Helper()
	b.metrics.Request("book-lesson", decision.DecisionAdmitted, 30*time.Millisecond, time.Millisecond)
	b.metrics.Outcome("book-lesson", rules.Booked, 29*time.Millisecond)
	b.metrics.EdgeRefusal("header")
	b.metrics.Tunnels(7)
	b.metrics.StoreCall("decide", time.Millisecond, nil)
	b.metrics.countPool(b.Context(), b.gate, b.slots, "lessons")
}

func TestMetricsHaveTheContractsNamesAndLabels(t *testing.T) {
	b := newBench(t, "")
	b.everything()
	got := map[string]string{}
	for name, family := range b.scrape() {
		if !strings.HasPrefix(name, "slotgate_") {
			continue
		}
		labels := map[string]bool{}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = true
			}
		}
		got[name] = strings.Join(slices.Sorted(maps.Keys(labels)), ",")
	}
	want := map[string]string{
		"slotgate_requests_total":          "decision,rule",
		"slotgate_outcomes_total":          "outcome,rule",
		"slotgate_request_seconds":         "rule",
		"slotgate_gate_seconds":            "rule",
		"slotgate_upstream_seconds":        "outcome,rule",
		"slotgate_store_seconds":           "op",
		"slotgate_store_errors_total":      "kind",
		"slotgate_breaker_state":           "breaker",
		"slotgate_degraded":                "",
		"slotgate_bound_units":             "pool",
		"slotgate_queue_waiting":           "pool",
		"slotgate_holds":                   "pool,state",
		"slotgate_drift_units":             "pool",
		"slotgate_oversold_units":          "pool",
		"slotgate_settle_backlog":          "",
		"slotgate_edge_refusals_total":     "kind",
		"slotgate_reject_cache_hits_total": "pool",
		"slotgate_tunnels":                 "",
		"slotgate_config_reload_success":   "",
		"slotgate_build_info":              "commit,goversion,version",
	}
	if !maps.Equal(got, want) {
		t.Errorf("metrics\n %v\nwant\n %v", got, want)
	}
}

func TestMetricsCount(t *testing.T) {
	b := newBench(t, "")
	b.everything()
	b.metrics.Request("book-lesson", decision.DecisionSoldOut, time.Millisecond, time.Millisecond)
	b.metrics.Outcome("book-lesson", rules.NeverSent, 0)
	b.metrics.Oversold("lessons", 2)
	b.metrics.StoreError(string(store.KindTimeout))
	b.gate.set(func(s *gate.Status) {
		s.StoreBreaker, s.UpstreamBreaker, s.Degraded, s.SettleBacklog = 2, 1, true, 5
		s.Waiting, s.Bound = map[string]int{"lessons": 3}, map[string]string{"lessons": "4"}
	})
	families := b.scrape()
	for _, c := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{1, "slotgate_requests_total", []string{"admitted", "book-lesson"}},
		{1, "slotgate_requests_total", []string{"sold-out", "book-lesson"}},
		{0, "slotgate_requests_total", []string{"sold-out", "mail"}},
		{1, "slotgate_outcomes_total", []string{"booked", "book-lesson"}},
		{1, "slotgate_outcomes_total", []string{"never_sent", "book-lesson"}},
		{2, "slotgate_request_seconds", []string{"book-lesson"}},
		{2, "slotgate_gate_seconds", []string{"book-lesson"}},
		{1, "slotgate_upstream_seconds", []string{"booked", "book-lesson"}},
		{1, "slotgate_store_seconds", []string{"decide"}},
		{1, "slotgate_store_errors_total", []string{"timeout"}},
		{0, "slotgate_store_errors_total", []string{"full"}},
		{2, "slotgate_breaker_state", []string{"store"}},
		{1, "slotgate_breaker_state", []string{"upstream"}},
		{1, "slotgate_degraded", nil},
		{4, "slotgate_bound_units", []string{"lessons"}},
		{3, "slotgate_queue_waiting", []string{"lessons"}},
		{2, "slotgate_oversold_units", []string{"lessons"}},
		{0, "slotgate_drift_units", []string{"lessons"}},
		{5, "slotgate_settle_backlog", nil},
		{1, "slotgate_edge_refusals_total", []string{"header"}},
		{7, "slotgate_tunnels", nil},
		{1, "slotgate_config_reload_success", nil},
	} {
		if got := value(t, families, c.name, c.labels...); got != c.want {
			t.Errorf("%s%v = %v, want %v", c.name, c.labels, got, c.want)
		}
	}
}

func TestTheBackendsBoundIsInfinite(t *testing.T) {
	b := newBench(t, "")
	if got := value(t, b.scrape(), "slotgate_bound_units", "lessons"); got != 0 {
		t.Errorf("in normal mode: %v", got)
	}
	b.gate.set(func(s *gate.Status) { s.Bound = map[string]string{"lessons": "backend"} })
	if got := fmt.Sprint(value(t, b.scrape(), "slotgate_bound_units", "lessons")); got != "+Inf" {
		t.Errorf("bounded by the backend: %v", got)
	}
}

// Whatever clients send, the number of series follows from the configuration.
func TestDistinctSlotsAddNoSeries(t *testing.T) {
	series := func(families map[string]*dto.MetricFamily) (n int) {
		for name, family := range families {
			if strings.HasPrefix(name, "slotgate_") {
				n += len(family.GetMetric())
			}
		}
		return n
	}
	b := newBench(t, "")
	b.everything()
	before := series(b.scrape())
	slots := make([]store.Slot, 10_000)
	for i := range slots {
		slots[i] = store.Slot{Slot: fmt.Sprintf("slot-%d", i), Capacity: 2, Confirmed: 1}
	}
	b.slots = newFakeSlots(slots...)
	b.metrics.countPool(t.Context(), b.gate, b.slots, "lessons")
	if b.slots.reads != 0 {
		t.Error("slots without open holds were read")
	}
	for range slots {
		b.metrics.Request("book-lesson", decision.DecisionAdmitted, time.Millisecond, time.Millisecond)
		b.metrics.Outcome("book-lesson", rules.Booked, time.Millisecond)
	}
	if after := series(b.scrape()); after != before {
		t.Errorf("%d series before, %d after 10,000 slots", before, after)
	}
}

func BenchmarkMeter(b *testing.B) {
	m := NewMetrics(testConfig(), "", "")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m.Request("book-lesson", decision.DecisionAdmitted, 3*time.Millisecond, time.Millisecond)
			m.Outcome("book-lesson", rules.Booked, 2*time.Millisecond)
		}
	})
}
