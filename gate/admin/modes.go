package admin

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/slotgate/slotgate/gate"
)

func (s *Server) getRules(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, viewRules(s.gate.Rules()))
}

// putRuleMode switches one rule and answers with it.
func (s *Server) putRuleMode(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if _, ok := s.rule(name); !ok {
		fail(w, http.StatusNotFound, fmt.Sprintf("there is no rule %q; GET /v1/rules lists them", clip(name)))
		return
	}
	mode, ok := readMode(w, r)
	if !ok {
		return
	}
	if err := s.gate.SetMode(name, mode); err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	rule, _ := s.rule(name)
	answer(w, http.StatusOK, viewRule(rule))
}

// putMode switches every rule and answers with them.
func (s *Server) putMode(w http.ResponseWriter, r *http.Request) {
	mode, ok := readMode(w, r)
	if !ok {
		return
	}
	if err := s.gate.SetModeAll(mode); err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	answer(w, http.StatusOK, viewRules(s.gate.Rules()))
}

func (s *Server) rule(name string) (gate.RuleStatus, bool) {
	rules := s.gate.Rules()
	i := slices.IndexFunc(rules, func(r gate.RuleStatus) bool { return r.Name == name })
	if i < 0 {
		return gate.RuleStatus{}, false
	}
	return rules[i], true
}

// modeWords are what SetMode and SetModeAll take.
var modeWords = []string{"enforce", "shadow", "off", "file"}

func readMode(w http.ResponseWriter, r *http.Request) (string, bool) {
	var body struct {
		Mode *string `json:"mode"`
	}
	if !readBody(w, r, &body) {
		return "", false
	}
	if body.Mode == nil {
		fail(w, http.StatusBadRequest, `"mode" is missing: {"mode":"shadow"}; or "enforce", "off", or "file" for what the configuration says`)
		return "", false
	}
	if !slices.Contains(modeWords, *body.Mode) {
		fail(w, http.StatusBadRequest, fmt.Sprintf(`mode %q is not known; use "enforce", "shadow", "off", or "file" for what the configuration says`, clip(*body.Mode)))
		return "", false
	}
	return *body.Mode, true
}
