package admin

import (
	"net/http"
	"time"

	"github.com/slotgate/slotgate/gate"
)

type statusView struct {
	Version       string            `json:"version"`
	Revision      string            `json:"revision"` // of the configuration in effect
	StartedAt     time.Time         `json:"started_at"`
	Mode          string            `json:"mode"` // normal | degraded
	Draining      bool              `json:"draining"`
	Reload        *reloadView       `json:"reload"` // the last one; null: none yet
	Breakers      map[string]string `json:"breakers"`
	QueueWaiting  map[string]int    `json:"queue_waiting"`
	SettleBacklog int               `json:"settle_backlog"`
	SettleLost    int64             `json:"settle_lost"` // settlements that found the backlog full
	Bound         map[string]string `json:"bound"`       // by pool, while degraded
	Shadow        []shadowView      `json:"shadow"`      // what enforce would have done
	Reports       []reportView      `json:"reports"`     // of reconcile and audit, the last of each pool
	ConfigHash    string            `json:"config_hash"` // of rules, pools and modes, alike at all gates of a store
	Gates         gatesView         `json:"gates"`
	Store         storeView         `json:"store"`
}

func (s *Server) getStatus(w http.ResponseWriter, _ *http.Request) {
	status := s.gate.Status()
	answer(w, http.StatusOK, statusView{
		Version:   s.version,
		Revision:  status.Revision,
		StartedAt: status.StartedAt,
		Mode:      modeWord(status.Degraded),
		Draining:  s.draining.Load(),
		Reload:    viewReload(s.metrics.lastReload.Load()),
		Breakers: map[string]string{
			"store":    breakerWord(status.StoreBreaker),
			"upstream": breakerWord(status.UpstreamBreaker),
		},
		QueueWaiting:  orEmpty(status.Waiting),
		SettleBacklog: status.SettleBacklog,
		SettleLost:    status.SettlementsLost,
		Bound:         orEmpty(status.Bound),
		Shadow:        viewShadows(status.Shadow),
		Reports:       s.metrics.viewReports(),
		ConfigHash:    status.Policy,
		Gates:         s.viewGates(),
		Store:         s.viewStore(),
	})
}

type ruleView struct {
	Name           string `json:"name"`
	Action         string `json:"action"`
	Pool           string `json:"pool"`
	Mode           string `json:"mode"`
	FileMode       string `json:"file_mode"` // the configuration's, before it was switched
	OnStoreFailure string `json:"on_store_failure"`
}

func viewRule(r gate.RuleStatus) ruleView {
	return ruleView{r.Name, r.Action, r.Pool, r.Mode, r.FileMode, r.OnStoreFailure}
}

func viewRules(rules []gate.RuleStatus) map[string][]ruleView {
	views := make([]ruleView, len(rules))
	for i, r := range rules {
		views[i] = viewRule(r)
	}
	return map[string][]ruleView{"rules": views}
}
