package main

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// tellsSlack makes this program a gate's beginning, which tells its timer slack, its id and its name.
const tellsSlack = "SLOTGATE_TEST_TELLS_SLACK"

func init() {
	if os.Getenv(tellsSlack) != "" {
		relaxTimers()
		slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
		comm, _ := os.ReadFile("/proc/self/comm")
		fmt.Println(time.Duration(slack), os.Getpid(), err, strings.TrimSpace(string(comm)))
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
			if want := fmt.Sprintln(c.want, gate.Process.Pid, error(nil), "exe"); err != nil || told.String() != want {
				t.Errorf("it told %q (%v), want %q", told.String(), err, want)
			}
		})
	}
}

func TestAGateKeepsTheNameThatItWasStartedBy(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "gate-of-tests")
	if err := os.Symlink(program, name); err != nil {
		t.Fatal(err)
	}
	if slack, comm := toldBy(t, exec.Command(name)); slack != timerSlack.String() || comm != "gate-of-tests" {
		t.Errorf("%s has a slack of %s", comm, slack)
	}
}

// What runs is not what the path leads to that it was started by: it would begin another
// program. A loader that executed itself would not find the gate any more.
func TestAGateThatIsNotWhereItsNameLeads(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	renamed := exec.Command(program)
	renamed.Args = []string{"/bin/sh"}
	started := []*exec.Cmd{renamed}
	file, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if section := file.Section(".interp"); section != nil { // as with -race
		loader, err := section.Data()
		if err != nil {
			t.Fatal(err)
		}
		started = append(started, exec.Command(strings.TrimRight(string(loader), "\x00"), program))
	}
	for _, gate := range started {
		if slack, _ := toldBy(t, gate); slack != usualSlack.String() {
			t.Errorf("%v has a slack of %s", gate.Args, slack)
		}
	}
}

// toldBy runs a gate's beginning with the usual slack.
func toldBy(t *testing.T, gate *exec.Cmd) (slack, comm string) {
	t.Helper()
	gate.Env = append(os.Environ(), tellsSlack+"=1")
	var told strings.Builder
	gate.Stdout, gate.Stderr = &told, &told
	if err := startWithSlack(gate, usualSlack); err != nil {
		t.Fatal(err)
	}
	if err := gate.Wait(); err != nil {
		t.Fatalf("%v: %s", err, &told)
	}
	fields := strings.Fields(told.String())
	if len(fields) == 0 {
		t.Fatalf("%v told nothing", gate.Args)
	}
	return fields[0], fields[len(fields)-1]
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
