package admin

import (
	"net/http"

	"github.com/slotgate/slotgate/gate"
)

// healthz answers as long as the process can.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]string{"status": "alive"})
}

type readiness struct {
	Status   string `json:"status"` // ready | draining
	Mode     string `json:"mode"`   // normal | degraded
	Store    string `json:"store"`  // breaker states
	Upstream string `json:"upstream"`
}

// readyz is 503 only while draining: with its store away a gate still serves, in
// degraded mode, and taking every gate out of the balancer would turn a store
// outage into a whole one.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	status := s.gate.Status()
	ready := readiness{
		Status:   "ready",
		Mode:     modeWord(status.Degraded),
		Store:    breakerWord(status.StoreBreaker),
		Upstream: breakerWord(status.UpstreamBreaker),
	}
	code := http.StatusOK
	if s.draining.Load() {
		ready.Status, code = "draining", http.StatusServiceUnavailable
	}
	answer(w, code, ready)
}

func modeWord(degraded bool) string {
	if degraded {
		return string(gate.ModeDegraded)
	}
	return string(gate.ModeNormal)
}

// breakerWord names the numbers of slotgate_breaker_state.
func breakerWord(state int) string {
	switch state {
	case 0:
		return "closed"
	case 1:
		return "half-open"
	}
	return "open"
}
