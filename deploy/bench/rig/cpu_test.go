package rig

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	got, err := parseStat([]byte("42 (a ) (b) c) S 7 1 1 0 -1 4194560 100 200 0 0 11 22 33 44 20 0 1 0 100 0 0"))
	if want := (task{parent: 7, own: 33, reaped: 77}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if _, err := parseStat([]byte("42 (short) S 7")); err == nil {
		t.Error("a short line is read")
	}
}

func TestTimesOfDescendantsAreKept(t *testing.T) {
	at := func(tasks map[int]task) Snapshot { return Snapshot{At: time.Now(), tasks: tasks} }
	before := at(map[int]task{1: {}, 10: {parent: 1, own: 5}, 11: {parent: 10, own: 100}, 12: {parent: 11, own: 3}, 20: {parent: 1, own: 50}})
	// 12 has ended and 11 has waited for it; 13 is new; 20 is no descendant.
	after := at(map[int]task{1: {}, 10: {parent: 1, own: 6}, 11: {parent: 10, own: 110, reaped: 4}, 13: {parent: 11, own: 7}, 20: {parent: 1, own: 90}})
	if got, want := after.Of(10)-before.Of(10), (1+10+1+7)*tick; got != want {
		t.Errorf("took %s, want %s", got, want)
	}
}

// A child's work is ours, not foreign, also after it has ended.
func TestOwnChildrenAreNotForeign(t *testing.T) {
	me := os.Getpid()
	before := Snapshot{At: time.Unix(0, 0), tasks: map[int]task{1: {}, me: {parent: 1, own: 1}, me + 1: {parent: 1, own: 10}}, steal: 5}
	after := Snapshot{At: time.Unix(1, 0), tasks: map[int]task{
		1: {}, me: {parent: 1, own: 1, reaped: 100}, me + 1: {parent: 1, own: 12}, kthreadd: {own: 4}, 77: {parent: kthreadd, own: 40},
	}, steal: 6}
	if got, want := after.ForeignSince(before), 0.03; got < want-1e-9 || got > want+1e-9 {
		t.Errorf("foreign share %v, want %v", got, want)
	}
}

func TestSnapshotSeesAChild(t *testing.T) {
	child := exec.Command("sh", "-c", "echo ready; read line")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer in.Close()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	s, err := TakeSnapshot()
	if err != nil {
		t.Fatal(err)
	}
	if !s.within(child.Process.Pid, os.Getpid()) {
		t.Errorf("child %d of %d is not seen as one", child.Process.Pid, os.Getpid())
	}
	if rss, err := PeakRSS(child.Process.Pid); err != nil || rss < 1<<16 {
		t.Errorf("peak RSS %d, %v", rss, err)
	}
}
