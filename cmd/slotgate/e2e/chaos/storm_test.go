package chaos

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// storm is one plan carried out.
type storm struct {
	t       *testing.T
	plan    plan
	arena   *arena
	history *history
	nemesis *nemesis
	first   int // number of its first lesson
	ledger  []entry
}

// run carries the plan out on lessons from first on, and judges what came of it.
func (a *arena) run(t *testing.T, p plan, first int) {
	t.Helper()
	history := newHistory()
	s := &storm{
		t: t, plan: p, arena: a, history: history, first: first,
		nemesis: &nemesis{arena: a, history: history},
	}
	defer s.tell()
	ctx, stop := context.WithCancel(t.Context())
	var crowd sync.WaitGroup
	for number, steps := range p.clients {
		crowd.Go(func() { newClient(number, a, history, first).run(ctx, steps) })
	}
	defer crowd.Wait()
	defer stop()
	s.nemesis.run(p.faults)
	crowd.Wait()
	s.rest()
	s.finale(ctx)
	s.judge()
}

// tell logs what is needed to understand a failure.
func (s *storm) tell() {
	if !s.t.Failed() {
		return
	}
	s.t.Logf("%v", s.plan)
	s.t.Logf("troubles %v; the store forgot: %v", s.nemesis.troubles, s.nemesis.forgot)
	if path, err := s.write(); err != nil {
		s.t.Error(err)
	} else {
		s.t.Logf("every call (kept with -artifacts): %s", path)
	}
}

// finale books what the storm has left, as nobody disturbs it: where truth is known,
// every seat that nobody holds can still be had, and not one more.
func (s *storm) finale(ctx context.Context) {
	s.t.Helper()
	buyer := newClient(clients, s.arena, s.history, s.first)
	defer buyer.web.CloseIdleConnections()
	for _, sale := range s.sales() {
		free := max(0, sale.remain-s.held(sale.lesson))
		for n := range free + 1 {
			got := s.buy(ctx, buyer, sale.lesson, n, n < free)
			v := got.verdict()
			if !s.plan.truth || got.mode == "degraded" || v == silent || v == unknown {
				break // not disturbed by the storm, but by the machine
			}
			if (v == booked) != (n < free) {
				s.t.Errorf("at rest lesson %d had %d seats left that nobody held; buyer %d of them was told %v", sale.lesson, free, n+1, got)
			}
		}
	}
}

// buy books for one more student. One who should get a seat asks again for as long as a
// look may count those twice that were booked just before.
func (s *storm) buy(ctx context.Context, buyer *client, lesson, n int, patient bool) (got call) {
	student := fmt.Sprint("late", n)
	for began, try := time.Now(), 0; ; try++ {
		got = buyer.send(ctx, call{
			client: clients, action: book, lesson: lesson, student: student, principal: student,
			key: fmt.Sprintf("late-%d-%d-%d", lesson, n, try), gate: n % gates,
		})
		if !patient || !s.plan.truth || got.verdict() != soldOut || time.Since(began) > lag+hot+twiceSlack || !sleep(ctx, lag) {
			return got
		}
	}
}

// twiceSlack is what a look may be late on a busy machine.
const twiceSlack = time.Second
