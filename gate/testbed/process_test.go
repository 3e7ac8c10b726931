package testbed

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// parentEnv makes TestNothingOutlivesTheTestBinary play the test binary that
// is killed.
const parentEnv = "TESTBED_PARENT"

func TestNothingOutlivesTheTestBinary(t *testing.T) {
	if os.Getenv(parentEnv) != "" {
		children := []int{Redis(t).PID(), Postgres(t).PID()}
		for _, server := range slices.Concat(Sentinel(t).all(), Cluster(t).Nodes()) {
			children = append(children, server.PID())
		}
		fmt.Println("children", children)
		io.Copy(io.Discard, os.Stdin) // until killed
		return
	}

	parent := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	parent.Env = append(os.Environ(), parentEnv+"=1", "TMPDIR="+sharedTempDir(t))
	stdin, err := parent.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	var children []int
	for len(children) == 0 && lines.Scan() {
		list, found := strings.CutPrefix(lines.Text(), "children [")
		for _, word := range strings.Fields(strings.TrimSuffix(list, "]")) {
			if pid, err := strconv.Atoi(word); found && err == nil {
				children = append(children, pid)
			}
		}
	}
	if len(children) != 14 {
		t.Fatalf("the parent named the children %v (%v), want 14", children, parent.Wait())
	}
	handles := make([]int, len(children))
	for i, pid := range children {
		if handles[i], err = unix.PidfdOpen(pid, 0); err != nil {
			t.Fatalf("child %d is not running: %v", pid, err)
		}
		defer unix.Close(handles[i])
	}

	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	parent.Wait()
	for i, handle := range handles {
		awaitExit(t, children[i], handle)
	}
}

// sharedTempDir is a temporary folder in which the account that runs
// PostgreSQL may look, unlike in t.TempDir. What a killed parent leaves in it
// goes with this test.
func sharedTempDir(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "testbed-parent-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	return folder
}

// awaitExit waits until the process behind a pidfd has ended.
func awaitExit(t *testing.T, pid, handle int) {
	t.Helper()
	deadline := time.Now().Add(startTimeout)
	for {
		left := int(time.Until(deadline).Milliseconds())
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, max(left, 0))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			t.Errorf("process %d still runs after its parent was killed", pid)
		}
		return
	}
}

// running tells whether a process exists.
func running(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestNoServerOutlivesItsTest(t *testing.T) {
	t.Parallel()
	var pids []int
	t.Run("life", func(t *testing.T) {
		s, c := Sentinel(t, WithProxies()), Cluster(t, WithProxies())
		all := slices.Concat(s.all(), c.Nodes())
		all[0].Freeze()
		all[1].Restart()
		for _, server := range all {
			pids = append(pids, server.PID())
		}
	})
	for _, pid := range pids {
		if running(pid) {
			t.Errorf("redis-server %d outlived its test", pid)
		}
	}
}
