package faults

import (
	"fmt"
	"time"

	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
)

// backendCells: the store is well, and knows what it granted. What the backend did
// with it is another matter: a time-out, a cut or a 500 leaves it unknown, and a
// booking that nobody was told of is no lost settlement but an unknown hold.
var backendCells = []cell{
	{
		fault: "backend refuses connections", topology: standalone, backend: true,
		strike: func(s *scene) {
			s.midst()
			s.front.Refuse(true)
			s.pause(time.Second)
			s.front.Refuse(false)
		},
		mustSee: answered("502 upstream-failed"),
	},
	troubled("backend hangs", stage.Hang, 2*time.Second, "504 upstream-timeout"),
	troubled("backend commits and hangs", stage.Silence, 2*time.Second, "504 upstream-timeout"),
	troubled("backend cuts its answer in the body", stage.Cut, time.Second, "502 upstream-failed"),
	troubled("backend commits and says 500", stage.Error, time.Second, "500 admitted unknown"),
	troubled("backend says 503", stage.Overload, time.Second, "503 admitted unknown"),
	troubled("backend says 503 with Retry-After", stage.Throttled, time.Second, "503 admitted busy"),
	troubled("backend sends garbage", stage.Garbage, time.Second, "502 upstream-failed"),
	troubled("backend sends bytes that nobody asked for", stage.Stray, time.Second, ""),
}

// troubled is a cell in which every booking meets a trouble for a while; want is an
// answer that clients must see of it.
func troubled(fault string, trouble stage.Trouble, d time.Duration, want string) cell {
	return cell{
		fault: fault, topology: standalone, backend: true, lasts: 2*time.Second + d,
		strike: func(s *scene) {
			s.midst()
			s.front.Make(trouble)
			s.pause(d)
			s.front.Make(stage.None)
		},
		mustSee: func(s *scene, results map[string]*result) string {
			if n := s.front.Met(); n < 3 {
				return fmt.Sprintf("%d requests met it", n)
			}
			if want == "" {
				return ""
			}
			return answered(want)(s, results)
		},
	}
}

// answered is a proof of the fault: every pool's clients were told so.
func answered(what string) func(*scene, map[string]*result) string {
	return func(_ *scene, results map[string]*result) string {
		for pool, r := range results {
			if r.answers[what] == 0 {
				return fmt.Sprintf("no client of %s was told %s", pool, what)
			}
		}
		return ""
	}
}
