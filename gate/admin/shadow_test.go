package admin

import (
	"net/http"
	"strings"
	"testing"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
)

func TestShadowIsReported(t *testing.T) {
	b := newBench(t, "")
	b.gate.set(func(s *gate.Status) {
		s.Shadow = map[string]gate.ShadowReport{
			"mail": {},
			"book-lesson": {
				Would:    map[decision.Decision]int64{decision.DecisionAdmitted: 6, decision.DecisionSoldOut: 4},
				Booked:   map[decision.Decision]int64{decision.DecisionAdmitted: 6, decision.DecisionSoldOut: 3},
				Rejected: 4, Oversold: 3,
			},
		}
	})
	status := b.call("GET", "/v1/status", "")
	want := `"shadow":[{"rule":"book-lesson","requests":10,"would_have_rejected":4,"would_have_oversold":3,"decisions":{"admitted":6,"sold-out":4},"booked":{"admitted":6,"sold-out":3}},` +
		`{"rule":"mail","requests":0,"would_have_rejected":0,"would_have_oversold":0,"decisions":{},"booked":{}}]`
	if status.Code != http.StatusOK || !strings.Contains(status.Body.String(), want) {
		t.Errorf("%d %s, want %s", status.Code, status.Body, want)
	}
	metrics := b.call("GET", "/metrics", "").Body.String()
	for _, line := range []string{
		`slotgate_shadow_total{decision="sold-out",rule="book-lesson"} 4`,
		`slotgate_shadow_booked_units{decision="sold-out",rule="book-lesson"} 3`,
		`slotgate_shadow_rejected_total{rule="book-lesson"} 4`,
		`slotgate_shadow_oversold_units{rule="book-lesson"} 3`,
		`slotgate_shadow_rejected_total{rule="mail"} 0`,
	} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("no %s", line)
		}
	}
}
