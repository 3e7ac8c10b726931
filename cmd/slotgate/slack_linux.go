package main

import (
	"os"
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
	program, err := os.Executable()
	slack, _ := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil || time.Duration(slack) != usualSlack || os.Getenv(relaxed) != "" {
		return
	}
	if unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(timerSlack), 0, 0, 0) == nil {
		_ = unix.Exec(program, os.Args, append(os.Environ(), relaxed+"="+timerSlack.String()))
	}
}
