package truth

import (
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

// fence is that of the pool's term, 0 while another leads.
func (p *Pool) fence() int64 {
	p.lead.mu.Lock()
	defer p.lead.mu.Unlock()
	return p.lead.fence
}

// A gate that is killed leads for as long as its lock lives; then another looks.
func TestALeaderThatIsKilledIsFollowedWithinOneLease(t *testing.T) {
	s := newStage(t)
	leader := s.other(false)
	leader.says("leads true")
	s.own.Start()
	if got := s.own.Load(t.Context(), "1"); got != gate.LoadDone {
		t.Fatalf("load: %v", got)
	}
	d, got := s.decide("1", "ann") // it moves, and is to be looked at
	if got.Verdict != decision.Admitted {
		t.Fatalf("decide: %v", got.Verdict)
	}
	s.exec("UPDATE slot SET remain = remain - 1")
	s.settle(settlement(&d, &got, rules.Booked))

	if err := leader.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	took := s.until("this gate leads", s.own.Leads)
	t.Logf("another gate led %v after the kill; the lease is %v", took, processLease)
	if took > processLease+500*time.Millisecond { // the machine's share
		t.Errorf("another gate led only after %v, want one lease, %v", took, processLease)
	}
	s.exec("UPDATE slot SET remain = remain - 4") // behind the gates
	s.until("the new leader finds what was booked behind it", func() bool { return s.left() == 5 })
}

// A leader that stands still between its read and its apply, for longer than its
// lease, wakes with a value that is not true any more.
func TestALeaderThatStoodStillDoesNoHarm(t *testing.T) {
	s := newStage(t)
	leader := s.other(true)
	leader.says("leads true")
	if got := s.own.Load(t.Context(), "1"); got != gate.LoadDone {
		t.Fatalf("load: %v", got)
	}
	d, got := s.decide("1", "ann")
	if got.Verdict != decision.Admitted {
		t.Fatalf("decide: %v", got.Verdict)
	}
	s.exec("UPDATE slot SET remain = remain - 1")
	s.settle(settlement(&d, &got, rules.Booked))
	leader.says("read 1") // 9 are left, it believes
	leader.freeze()

	s.own.Start()
	s.until("this gate leads", s.own.Leads)
	s.exec("UPDATE slot SET remain = remain - 6") // behind the gates
	// The look lease of the one that stands still would keep this gate off for the
	// source's time-out: an operator's look does not wait for it.
	forced := &look{pool: s.own, slot: "1", force: true, fence: s.own.fence()}
	asked, looked, err := forced.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if seen, err := forced.finish(t.Context(), asked, looked); err != nil || seen.result != LookApplied {
		t.Fatalf("the new leader's look: %+v, %v", seen, err)
	}
	if left := s.left(); left != 3 {
		t.Fatalf("%d left after the new leader's look, want 3", left)
	}

	if _, err := io.WriteString(leader.stdin, "\n"); err != nil { // it may go on when it wakes
		t.Fatal(err)
	}
	if err := leader.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	leader.says("leads false") // it has noticed
	if left := s.left(); left != 3 {
		t.Errorf("%d left after the old leader woke, want 3", left)
	}
	if !s.own.Leads() {
		t.Error("the old leader took the lead back")
	}
}
