package faults

import (
	"os"
	"strings"
	"syscall"
	"time"
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
		fault: "gate told to reload a bad file (SIGHUP)", topology: standalone,
		strike: func(s *scene) {
			s.midst()
			g := s.gate(1)
			if err := os.WriteFile(g.File, []byte("rules: { no: such thing"), 0o600); err != nil {
				s.t.Fatal(err)
			}
			for range 3 {
				if err := g.Signal(syscall.SIGHUP); err != nil {
					s.t.Fatal(err)
				}
			}
		},
		mustSee: func(s *scene, _ map[string]*result) string {
			if !strings.Contains(s.gate(1).Log.String(), "reload") {
				return "the gate did not speak of a reload"
			}
			return ""
		},
	},
}
