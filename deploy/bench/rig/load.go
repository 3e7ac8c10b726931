package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// Load is one run of wrk: a closed loop, each connection sends its next request when
// it has the answer to the last.
type Load struct {
	URL         string
	Connections int
	Duration    time.Duration // whole seconds, at least one
	Script      string        // path of a Lua script whose done prints a Seen as JSON
	Args        []string      // of the script
}

// Seen is what clients saw.
type Seen struct {
	Requests int64 `json:"requests"` // answered
	Micros   int64 `json:"micros"`   // the run took
	Bytes    int64 `json:"bytes"`    // of answers
	Refused  int64 `json:"refused"`  // answers with status 400 and above
	Broken   int64 `json:"broken"`   // connections refused or broken, time-outs
	P50      int64 `json:"p50"`      // latencies in µs
	P90      int64 `json:"p90"`
	P99      int64 `json:"p99"`
	P999     int64 `json:"p999"`
	Max      int64 `json:"max"`
}

// Run runs wrk with two threads where the machine has them.
func (l Load) Run(ctx context.Context) (Seen, error) {
	path, err := look("wrk")
	if err != nil {
		return Seen{}, err
	}
	args := append([]string{
		"-t", strconv.Itoa(min(2, runtime.NumCPU(), l.Connections)), "-c", strconv.Itoa(l.Connections),
		"-d", fmt.Sprintf("%ds", int(max(l.Duration, time.Second)/time.Second)), "-s", l.Script, l.URL, "--",
	}, l.Args...)
	// As in start: the thread that forks has to stay until wrk has ended.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		return Seen{}, fmt.Errorf("wrk: %w\n%s%s", err, out, failed.Bytes())
	}
	return parseSeen(out)
}

// parseSeen finds the line that the script printed among those of wrk.
func parseSeen(out []byte) (Seen, error) {
	var seen Seen
	for line := range bytes.Lines(out) {
		if bytes.HasPrefix(line, []byte("{")) {
			if err := json.Unmarshal(line, &seen); err != nil {
				return seen, fmt.Errorf("wrk's script printed %q: %w", line, err)
			}
		}
	}
	if seen.Requests == 0 {
		return seen, fmt.Errorf("wrk had no answer:\n%s", out)
	}
	return seen, nil
}
