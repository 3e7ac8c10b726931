package faults

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
)

// gateCells: one of the two gates goes, or is disturbed. Its clients ask the other
// one.
var gateCells = []cell{
	{
		fault: "gate killed (SIGKILL)", topology: standalone, backend: true,
		strike: func(s *scene) {
			s.midst()
			s.gate(1).Kill()
			s.pause(500 * time.Millisecond)
			s.restart(1)
		},
		mustSee: answered(noAnswer),
	},
	{
		fault: "gate stopped (SIGTERM)", topology: standalone, backend: true,
		strike: func(s *scene) {
			s.midst()
			if err := s.gate(1).Stop(); err != nil {
				s.t.Errorf("the gate ended with %v", err)
			}
			s.restart(1)
		},
	},
	{
		fault: "gate told to reload bad files (SIGHUP)", topology: standalone, timeout: 5 * time.Second,
		strike: func(s *scene) {
			s.midst()
			g := s.gate(1)
			file, err := os.ReadFile(g.File)
			if err != nil {
				s.t.Fatal(err)
			}
			good := string(file)
			for _, bad := range []string{
				"rules: { no: such thing",
				good[:strings.LastIndex(good, "path: ")], // as if still being written
				strings.Replace(good, "pool: "+reject, "pool: nowhere", 1),
				"",
			} {
				s.reload(g, bad, "configuration not reloaded")
				if up := g.Metric("slotgate_config_reload_success"); up != 0 {
					s.t.Errorf("the gauge is %v after a bad file", up)
				}
				s.count++
			}
			// What it says next is good, and another than before.
			s.reload(g, strings.Replace(good, "max_inflight: 256", "max_inflight: 255", 1), "configuration reloaded")
			if up := g.Metric("slotgate_config_reload_success"); up != 1 {
				s.t.Errorf("the gauge is %v after a good file", up)
			}
			s.count++
		},
		mustSee: func(s *scene, results map[string]*result) string {
			for pool, r := range results {
				if r.failed != 0 {
					return fmt.Sprintf("that no request failed: %d of %s did", r.failed, pool)
				}
			}
			return struck(s, results)
		},
	},
}

// reload puts a file in the place of a gate's, tells the gate, and waits until it has
// said what came of it.
func (s *scene) reload(g *stage.Gate, text, says string) {
	s.t.Helper()
	draft := g.File + ".new"
	if err := os.WriteFile(draft, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(draft, g.File); err != nil {
		s.t.Fatal(err)
	}
	before := strings.Count(g.Log.String(), says)
	if err := g.Signal(syscall.SIGHUP); err != nil {
		s.t.Fatal(err)
	}
	stage.Eventually(s.t, patience, func() string {
		if strings.Count(g.Log.String(), says) == before {
			return fmt.Sprintf("the gate has not said %q", says)
		}
		return ""
	})
}
