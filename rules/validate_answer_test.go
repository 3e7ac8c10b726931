package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

// TestAnswersKnowEveryDecision: what the gate answers itself can be replaced, and
// nothing else.
func TestAnswersKnowEveryDecision(t *testing.T) {
	loads := func(d decision.Decision) bool {
		src := fmt.Sprintf(`
upstream: { url: http://127.0.0.1:9000 }
rules:
  - { name: pay, action: guard, match: { path: /pay }, answers: { %s: { status: 200 } } }
`, strings.ReplaceAll(string(d), "-", "_"))
		cfg, _ := rules.Load("c.yaml", []byte(src), rules.LoadOptions{})
		return cfg != nil
	}
	own := decision.Own()
	if len(own) == 0 {
		t.Fatal("no decisions")
	}
	for _, d := range own {
		if !loads(d) {
			t.Errorf("answers refuses %s", d)
		}
	}
	for _, d := range []decision.Decision{decision.DecisionAdmitted, decision.DecisionReplayed, decision.DecisionPassthrough, decision.DecisionShadow} {
		if loads(d) {
			t.Errorf("answers accepts %s, which is not the gate's own answer", d)
		}
	}
}
