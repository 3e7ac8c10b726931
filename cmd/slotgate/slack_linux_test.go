package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// tellsSlack makes this program a gate's beginning, which tells its timer slack and its id.
const tellsSlack = "SLOTGATE_TEST_TELLS_SLACK"

func init() {
	if os.Getenv(tellsSlack) != "" {
		relaxTimers()
		slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
		fmt.Println(time.Duration(slack), os.Getpid(), err)
		os.Exit(0)
	}
}

func TestAGateHasTimerSlack(t *testing.T) {
	for _, c := range []struct {
		name, env   string
		given, want time.Duration
	}{
		{"as Linux gives it", "", usualSlack, timerSlack},
		{"another was set for it", "", 200 * time.Microsecond, 200 * time.Microsecond},
		{"where asking for it had no effect", relaxed + "=1ms", usualSlack, usualSlack},
	} {
		t.Run(c.name, func(t *testing.T) {
			gate := exec.Command("/proc/self/exe")
			gate.Env = append(os.Environ(), tellsSlack+"=1", c.env)
			var told strings.Builder
			gate.Stdout, gate.Stderr = &told, &told
			if err := startWithSlack(gate, c.given); err != nil {
				t.Fatal(err)
			}
			err := gate.Wait()
			if want := fmt.Sprintln(c.want, gate.Process.Pid, error(nil)); err != nil || told.String() != want {
				t.Errorf("it told %q (%v), want %q", told.String(), err, want)
			}
		})
	}
}

// startWithSlack starts a program from a thread of that slack, and ends the thread.
func startWithSlack(gate *exec.Cmd, slack time.Duration) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0); err != nil {
			started <- err
			return
		}
		started <- gate.Start()
	}()
	return <-started
}
