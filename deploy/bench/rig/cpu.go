package rig

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU times in /proc. Linux has used 100 a second in everything
// that user space sees for as long as it has had /proc.
const tick = 10 * time.Millisecond

// kthreadd is the parent of the kernel's own threads.
const kthreadd = 2

// Snapshot is the CPU time that every process has used up to one moment.
// Source: proc(5), /proc/PID/stat and /proc/stat.
type Snapshot struct {
	At    time.Time
	tasks map[int]task
	steal int64 // ticks that the hypervisor gave to others
}

// task is one process.
type task struct {
	parent int
	own    int64 // ticks in user and kernel mode
	reaped int64 // the same of children that have ended
}

// TakeSnapshot reads /proc.
func TakeSnapshot() (Snapshot, error) {
	s := Snapshot{At: time.Now(), tasks: map[int]task{}}
	machine, err := os.ReadFile("/proc/stat")
	if err != nil {
		return s, err
	}
	// cpu user nice system idle iowait irq softirq steal …
	first, _, _ := strings.Cut(string(machine), "\n")
	if fields := strings.Fields(first); len(fields) > 8 {
		if s.steal, err = strconv.ParseInt(fields[8], 10, 64); err != nil {
			return s, fmt.Errorf("/proc/stat: %w", err)
		}
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return s, err
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // ended meanwhile
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return s, err
		}
		if s.tasks[pid], err = parseStat(text); err != nil {
			return s, fmt.Errorf("%s: %w", path, err)
		}
	}
	return s, nil
}

// parseStat reads /proc/PID/stat: pid (name) state ppid …, where the name may hold
// anything.
func parseStat(text []byte) (task, error) {
	var t task
	end := bytes.LastIndexByte(text, ')')
	fields := strings.Fields(string(text[end+1:]))
	if end < 0 || len(fields) < 15 {
		return t, fmt.Errorf("%q is not what proc(5) describes", text)
	}
	// Numbered as in proc(5): state is field 3.
	field := func(n int) int64 {
		value, err := strconv.ParseInt(fields[n-3], 10, 64)
		if err != nil {
			return 0
		}
		return value
	}
	t.parent = int(field(4))
	t.own = field(14) + field(15)    // utime, stime
	t.reaped = field(16) + field(17) // cutime, cstime
	return t, nil
}

// within tells whether a process is root or one of its descendants.
func (s Snapshot) within(pid, root int) bool {
	for pid > 0 {
		if pid == root {
			return true
		}
		pid = s.tasks[pid].parent
	}
	return false
}

// Of returns the CPU time that a process and its descendants have used, those that
// have ended included.
func (s Snapshot) Of(pid int) time.Duration {
	var ticks int64
	for other, t := range s.tasks {
		if s.within(other, pid) {
			ticks += t.own + t.reaped
		}
	}
	return time.Duration(ticks) * tick
}

// foreign returns the CPU time of everybody but us and the kernel's threads, which
// work for whoever loads the machine; what the hypervisor took counts too.
func (s Snapshot) foreign() time.Duration {
	ticks := s.steal
	for pid, t := range s.tasks {
		if !s.within(pid, os.Getpid()) && pid != kthreadd && t.parent != kthreadd {
			ticks += t.own + t.reaped
		}
	}
	return time.Duration(ticks) * tick
}

// ForeignSince returns the share of one CPU that processes which are not ours took
// since the earlier snapshot: 0.08 is 8 %.
func (s Snapshot) ForeignSince(earlier Snapshot) float64 {
	return float64(s.foreign()-earlier.foreign()) / float64(s.At.Sub(earlier.At))
}

// PeakRSS returns the most memory that a process and its descendants have had
// resident, in bytes: the sum of each one's own peak.
// Source: proc(5), /proc/PID/status, VmHWM.
func PeakRSS(pid int) (int64, error) {
	s, err := TakeSnapshot()
	if err != nil {
		return 0, err
	}
	var total int64
	for other := range s.tasks {
		if !s.within(other, pid) {
			continue
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", other))
		if err != nil {
			continue // ended meanwhile
		}
		for line := range strings.Lines(string(status)) {
			var kib int64
			if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
				total += kib << 10
			}
		}
	}
	if total == 0 {
		return 0, fmt.Errorf("process %d is gone", pid)
	}
	return total, nil
}
