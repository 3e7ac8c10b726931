package main

import (
	"os"
	"os/exec"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// timerSlack is how much later than it asked a thread of the gate may be woken. Nothing here
// is timed more closely than to some milliseconds.
const timerSlack = time.Millisecond

// usualSlack is what Linux gives a thread of whom nobody has said otherwise (prctl(2)).
const usualSlack = 50 * time.Microsecond

// relaxed is set in the environment of a process that was made with timerSlack.
const relaxed = "SLOTGATE_TIMER_SLACK"

// relaxTimers gives all threads of this process timerSlack, unless another has been set for
// it, as systemd's TimerSlackNSec does. The Go runtime's own monitor (sysmon) sleeps 20 µs at
// a time while there is work. With Linux's slack it wakes thousands of times a second, and has
// other threads woken to take over from those that it finds in a system call: an eighth of
// the processor time of a booking. A thread has its slack from the one that made it, and the
// monitor is there before anything of ours: the process is begun anew, with the same id. Where
// that cannot be done, it goes on as it is.
func relaxTimers() {
	runtime.LockOSThread() // which has the slack, and is what the process goes on with
	defer runtime.UnlockOSThread()
	slack, _ := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if time.Duration(slack) != usualSlack || os.Getenv(relaxed) != "" {
		return
	}
	program, found := startedBy()
	if !found {
		return
	}
	if unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(timerSlack), 0, 0, 0) == nil {
		_ = unix.Exec(program, os.Args, append(os.Environ(), relaxed+"="+timerSlack.String()))
	}
}

// startedBy is the path that this program was started by, of which the process has its name
// (pidof). Not found: another program lies there by now, or a loader (ld.so) is what runs, and
// would take our arguments for its own. Nor where this program has more rights than who
// started it, whose word the path is.
func startedBy() (path string, found bool) {
	path, err := exec.LookPath(os.Args[0])
	if err != nil || os.Getuid() != os.Geteuid() || os.Getgid() != os.Getegid() {
		return "", false
	}
	there, err := os.Stat(path)
	if err != nil {
		return "", false
	}
	running, err := os.Stat("/proc/self/exe")
	return path, err == nil && os.SameFile(there, running)
}
